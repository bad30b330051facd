//! Functions behave the same with the attributes as without, and the expansion triggers no lint that a program may have enabled.
//!
//! What is recorded is tested in `crates/testkit`, under `weft run`.
#![forbid(unsafe_code)]
#![deny(warnings)]
#![deny(clippy::all, clippy::pedantic, clippy::nursery, clippy::used_underscore_binding)]
#![allow(
    clippy::future_not_send,
    clippy::multiple_bound_locations,
    clippy::needless_lifetimes,
    clippy::needless_pass_by_value,
    clippy::too_many_arguments,
    clippy::trivially_copy_pass_by_ref,
    clippy::type_repetition_in_bounds,
    reason = "signatures of every shape; the expansion does not make signatures"
)]
#![deny(
    elided_lifetimes_in_paths,
    explicit_outlives_requirements,
    let_underscore_drop,
    missing_docs,
    single_use_lifetimes,
    trivial_casts,
    trivial_numeric_casts,
    unit_bindings,
    unreachable_pub,
    unused_import_braces,
    unused_lifetimes,
    unused_qualifications,
    unused_results
)]

use std::cell::RefCell;
use std::error::Error;
use std::fmt::{Debug, Display, Write as _};
use std::panic::{AssertUnwindSafe, Location, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Runs a future that is never woken from outside.
fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

/// Gives way once.
async fn pause() {
    let mut paused = false;
    std::future::poll_fn(|context| {
        context.waker().wake_by_ref();
        if std::mem::replace(&mut paused, true) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Types that implement nothing that an argument could be told by.
struct Opaque;

// Programs have such names, too.
const SITE: &str = "a name";
const KEY: u32 = 7;

#[weftline::trace(name = SITE, category = module_path!(), args(x, y = KEY + x, text = ?text, shown = %text, ?text))]
fn plain(x: u32, text: &str) -> usize {
    text.len() + x as usize
}

#[weftline::trace(args(all), skip(left_out))]
fn everything<T, D: Debug>(
    number: i8,
    (a, [b, ..]): (char, [u8; 3]),
    &by_reference: &u64,
    mut changed: String,
    debugged: D,
    opaque: Opaque,
    generic: T,
    left_out: &Opaque,
    _ignored: Option<u8>,
) -> (String, T) {
    let (Opaque, Opaque, _debugged) = (opaque, left_out, debugged);
    write!(changed, " {number} {a} {b} {by_reference}").expect("memory is enough");
    (changed, generic)
}

#[weftline::trace]
fn generic<'a, T: Clone, const N: usize>(items: &'a [T; N], at: impl Fn(usize) -> usize) -> Option<&'a T>
where
    T: PartialEq,
{
    let index = at(N);
    if index >= N {
        return None;
    }
    items.get(index)
}

#[weftline::trace(err)]
fn parsed(text: &str) -> Result<Box<dyn Display>, Box<dyn Error>> {
    let number: i32 = text.parse()?;
    if number < 0 {
        return Err("negative".into());
    }
    Ok(Box::new(number))
}

#[weftline::trace(err, args(all))]
fn first_mut<'a>(values: &'a mut Vec<u8>, wanted: &u8) -> Result<&'a mut u8, String> {
    let found = values.iter_mut().find(|value| *value == wanted);
    found.ok_or_else(|| format!("no {wanted}"))
}

#[weftline::trace(err)]
fn opaque_ok(fine: bool) -> Result<impl Iterator<Item = u8>, &'static str> {
    if fine { Ok([1, 2].into_iter()) } else { Err("not fine") }
}

#[weftline::trace]
extern "C" fn called_from_c(value: i32) -> i32 {
    value + 1
}

#[weftline::trace]
#[track_caller]
#[inline]
#[must_use]
fn where_called() -> u32 {
    #![allow(clippy::missing_const_for_fn, reason = "an inner attribute must stay the first thing in the body")]
    Location::caller().line()
}

#[weftline::trace]
fn endless(stop: bool) -> ! {
    if stop {
        std::panic::panic_any("stopped");
    }
    std::process::exit(1)
}

#[weftline::trace]
fn empty() {}

#[test]
fn functions() {
    assert_eq!(plain(2, "four"), 6);
    let (text, back) = everything(-1, ('x', [1, 2, 3]), &9, "s".to_owned(), "d", Opaque, vec![1], &Opaque, None);
    assert_eq!((text.as_str(), back), ("s -1 x 1 9", vec![1]));
    assert_eq!(generic(&[1, 2, 3], |n| n - 1), Some(&3));
    assert_eq!(generic(&["a"], |n| n), None);
    assert_eq!(called_from_c(1), 2);
    assert_eq!(where_called(), line!());
    empty();
    let ended = catch_unwind(|| endless(true)).expect_err("it panics");
    assert_eq!(ended.downcast_ref(), Some(&"stopped"));
}

#[test]
fn results() {
    assert_eq!(parsed("12").expect("a number").to_string(), "12");
    assert_eq!(parsed("-12").err().expect("negative").to_string(), "negative");
    assert!(parsed("x").err().expect("no number").to_string().contains("invalid digit"));
    let mut values = vec![1, 2];
    *first_mut(&mut values, &2).expect("there is one") = 5;
    assert_eq!(first_mut(&mut values, &9), Err("no 9".to_owned()));
    assert_eq!(values, [1, 5]);
    assert_eq!(opaque_ok(true).map(Iterator::sum), Ok(3u8));
    assert!(opaque_ok(false).is_err());
}

#[weftline::trace(args(x, text))]
async fn waits(x: u32, text: &str, log: Rc<RefCell<Vec<u32>>>) -> usize {
    log.borrow_mut().push(x);
    pause().await;
    log.borrow_mut().push(x + 1);
    text.len()
}

#[weftline::trace(err, args(all))]
async fn fails(text: String) -> Result<Box<dyn Display>, Box<dyn Error + Send + Sync>> {
    pause().await;
    let number: u8 = text.parse()?;
    if number == 0 {
        return Err("zero".into());
    }
    Ok(Box::new(number))
}

#[weftline::trace]
async fn made(n: u8) -> impl Iterator<Item = u8> {
    pause().await;
    0..n
}

#[weftline::trace]
async fn borrowed<'a>(of: &'a mut [u8], at: &usize) -> Option<&'a mut u8> {
    pause().await;
    of.get_mut(*at)
}

#[weftline::trace]
async fn never() -> ! {
    pause().await;
    panic!("never")
}

#[test]
fn futures() {
    let log = Rc::new(RefCell::new(Vec::new()));
    let future = waits(5, "abc", Rc::clone(&log));
    assert!(log.borrow().is_empty(), "nothing runs before the first poll");
    assert_eq!((block_on(future), log.take()), (3, vec![5, 6]));
    assert_eq!(block_on(fails("7".into())).expect("a number").to_string(), "7");
    assert_eq!(block_on(fails("0".into())).err().expect("zero").to_string(), "zero");
    assert!(block_on(fails("x".into())).is_err());
    assert_eq!(block_on(made(3)).count(), 3);
    let mut bytes = [1, 2];
    *block_on(borrowed(&mut bytes, &1)).expect("there are two") = 9;
    assert_eq!(bytes, [1, 9]);
    assert!(catch_unwind(|| block_on(never())).is_err());
}

/// Futures can still be sent to other threads.
#[test]
fn futures_are_send() {
    const fn is_send<T: Send>(_: &T) {}
    let future = fails("1".into());
    is_send(&future);
    assert!(block_on(future).is_ok());
}

struct Stack<T> {
    items: Vec<T>,
}

#[weftline::trace(category = "data", args(all))]
impl<T: Debug> Stack<T> {
    const LIMIT: usize = 2;

    const fn new() -> Self {
        Self { items: Vec::new() }
    }

    fn push(&mut self, item: T) -> &mut Self {
        if self.items.len() < Self::LIMIT {
            self.items.push(item);
        }
        self
    }

    #[weftline::trace(err, args(length = self.items.len()))]
    fn pop(mut self) -> Result<T, String> {
        self.items.pop().ok_or_else(|| "empty".to_owned())
    }

    #[weftline::trace(skip)]
    const fn len(&self) -> usize {
        self.items.len()
    }

    async fn drained(self: Box<Self>) -> Vec<T> {
        pause().await;
        self.items
    }
}

trait Greets {
    #[weftline::trace]
    fn greet(&self, whom: &str) -> String {
        format!("hello {whom}")
    }
    fn leave(self) -> impl Future<Output = u8>;
}

#[weftline::trace]
impl Greets for &Opaque {
    async fn leave(self) -> u8 {
        pause().await;
        3
    }
}

#[test]
fn methods() {
    let mut stack = Stack::new();
    assert_eq!(stack.push(1).push(2).push(3).len(), 2);
    assert_eq!(stack.pop(), Ok(2));
    assert_eq!(Stack::<u8>::new().pop(), Err("empty".to_owned()));
    let mut other = Box::new(Stack::new());
    assert_eq!(other.push("x").len(), 1);
    assert_eq!(block_on(other.drained()), ["x"]);
    assert_eq!((&Opaque).greet("you"), "hello you");
    assert_eq!(block_on((&Opaque).leave()), 3);
}

#[weftline::critical_path]
fn around(x: u8) -> u8 {
    x
}

#[weftline::critical_path(pointcut = "around", scope = SITE, name = "other")]
async fn around_future(x: u8) -> u8 {
    pause().await;
    x
}

#[weftline::critical_path(pointcut = "before")]
fn before(x: u8) -> u8 {
    x
}

#[weftline::critical_path(pointcut = "after", scope = "s")]
fn after(x: u8) -> Result<u8, String> {
    if x > 1 {
        return Err("more than one".to_owned());
    }
    Ok(x)
}

#[weftline::critical_path(pointcut = "before_async", scope = "s")]
fn before_async(x: u8) -> u8 {
    x
}

#[weftline::critical_path(pointcut = "after_async", scope = "s")]
async fn after_async(x: u8) -> u8 {
    pause().await;
    x
}

#[weftline::critical_path(pointcut = "around_async")]
fn around_async(x: u8) -> u8 {
    x
}

#[test]
fn pointcuts() {
    assert_eq!(
        [around(1), block_on(around_future(2)), before(3), before_async(4), block_on(after_async(5)), around_async(6)],
        [1, 2, 3, 4, 5, 6]
    );
    assert_eq!((after(1), after(2)), (Ok(1), Err("more than one".to_owned())));
}

/// What a function owns goes in the usual order: its variables, then its parameters.
struct Noted(&'static str, Rc<RefCell<Vec<&'static str>>>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.1.borrow_mut().push(self.0);
    }
}

#[weftline::trace]
fn drops(_first: Noted, second: Noted, fail: bool) -> usize {
    let _local = Noted("local", Rc::clone(&second.1));
    assert!(!fail, "as asked");
    second.0.len()
}

#[test]
fn what_is_dropped_when() {
    for fail in [false, true] {
        let log = Rc::new(RefCell::new(Vec::new()));
        let (first, second) = (Noted("first", Rc::clone(&log)), Noted("second", Rc::clone(&log)));
        let ended = catch_unwind(AssertUnwindSafe(|| drops(first, second, fail)));
        assert_eq!(ended.ok(), (!fail).then_some(6));
        assert_eq!(log.take(), ["local", "second", "first"], "fail: {fail}");
    }
}

/// Nothing records here, so nothing that is only for a record may be computed.
#[test]
fn off_means_nothing_is_computed() {
    fn dear() -> u8 {
        unreachable!("nobody asked")
    }
    #[weftline::trace(args(cost = dear()))]
    fn cheap() -> u8 {
        1
    }
    assert!(!weftline::is_on());
    let span = weftline::span!("span", cost = dear());
    assert!(!span.is_on());
    weftline::instant!("instant", cost = ?dear());
    weftline::counter!(cat: "c", "counter", cost = %dear());
    weftline::meta!("meta", cost = dear(),);
    assert_eq!(cheap(), 1);
}
