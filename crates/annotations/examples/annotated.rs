//! A program that uses every kind of annotation of the crate.
//!
//! `weft run -- annotated` shows a little of each; with a word, only that part: `annotated futures`. The tests of the
//! product run each part and know exactly what its trace must hold, so each part says what that is.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, reason = "a program, not a library")]

use std::error::Error;
use std::fmt::Debug;
use std::future::Future;
use std::io;
use std::num::ParseIntError;
use std::path::Path;
use std::pin::Pin;
use std::process::Command;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

use weftline::{counter, instant, meta, span};

type Outcome = Result<(), Box<dyn Error>>;

type Part = fn() -> Outcome;

const PARTS: [(&str, Part); 9] = [
    ("nested", nested),
    ("early", early),
    ("methods", methods),
    ("instants", instants),
    ("threads", threads),
    ("futures", futures),
    ("pointcuts", pointcuts),
    ("usage", usage),
    ("panics", panics),
];

fn main() -> Outcome {
    match std::env::args().nth(1).as_deref() {
        None => PARTS.iter().filter(|(name, _)| *name != "panics").try_for_each(|(_, part)| part()),
        Some("children") => children(),
        Some(wanted) => match PARTS.iter().find(|(name, _)| *name == wanted) {
            Some((_, part)) => part(),
            None => Err(format!("there is no part {wanted:?}").into()),
        },
    }
}

/// Spans within spans, and I/O within those: `outer` > 2 × `item` > `store` > `write` > open, write, close.
fn nested() -> Outcome {
    let mut outer = span!("outer", items = 2, label = "two files");
    for index in 0..2_usize {
        let _item = span!("item", index);
        store(Path::new(&format!("{index}.bin")), 1000 * (index + 1))?;
    }
    let before = Instant::now();
    {
        let _nap = span!("nap");
        thread::sleep(Duration::from_millis(30));
    }
    // The program's own measurement, to compare the trace with.
    outer.record("nap_at_most_ns", &u64::try_from(before.elapsed().as_nanos())?);
    println!("stored");
    Ok(())
}

#[weftline::trace(category = "data", args(path = %path.display(), bytes))]
fn store(path: &Path, bytes: usize) -> io::Result<()> {
    let _span = span!(cat: "io", "write");
    std::fs::write(path, vec![7; bytes])
}

/// `?` and `return` end a span as well as the last line does: `parse` three times, `rest` in the last one only.
fn early() -> Outcome {
    for text in ["x", "", "12"] {
        println!("{text:?} is {:?}", parse(text).ok());
    }
    Ok(())
}

#[weftline::trace(err, args(text))]
fn parse(text: &str) -> Result<i64, ParseIntError> {
    if text.is_empty() {
        return Ok(0);
    }
    let number = text.parse()?;
    let _rest = span!("rest", number);
    Ok(number)
}

struct Loader<T> {
    items: Vec<T>,
}

#[weftline::trace(category = "loader", args(all), skip(quiet))]
impl<T: Clone + Debug> Loader<T> {
    fn item(&self, index: usize, quiet: bool) -> Option<T> {
        if quiet { None } else { self.items.get(index).cloned() }
    }

    fn add(&mut self, item: T) {
        self.items.push(item);
    }

    #[weftline::trace(name = "size", args(at_least = self.items.len()))]
    fn len(&self) -> usize {
        self.items.len()
    }

    #[weftline::trace(skip)]
    fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// A traced `impl` block: `Loader::add`, `Loader::item`, `size`; `is_empty` is not there.
fn methods() -> Outcome {
    let mut loader = Loader { items: Vec::new() };
    loader.add(Some("a"));
    println!("{:?} {} {}", loader.item(0, false), loader.len(), loader.is_empty());
    Ok(())
}

/// What has no duration: `miss`, `queue`, `model`.
fn instants() -> Outcome {
    let shape = (3, [1.5, 2.0]);
    instant!(
        "miss",
        small = -3_i8,
        large = u64::MAX,
        half = 0.5_f32,
        yes = true,
        letter = 'é',
        path = Path::new("/a b/\"c\""),
        nothing = None::<u8>,
        something = Some("x"),
        ?shape,
        shown = %format_args!("{}%", 99),
        long = %"y".repeat(2000),
    );
    for length in [1, 5, 2] {
        counter!(cat: "data", "queue", length, waiting = length > 2);
    }
    meta!("model", name = "unet3d", layers = 23);
    Ok(())
}

/// Three threads, each with `worker` > 2 × `step`.
fn threads() -> Outcome {
    let work = |number: u32| {
        let _worker = span!("worker", number);
        for step in 0..2 {
            let _step = span!("step", step);
            thread::sleep(Duration::from_millis(5));
        }
    };
    thread::scope(|scope| (0..3).for_each(|number| drop(scope.spawn(move || work(number)))));
    Ok(())
}

/// A future that is polled by hand: its owner decides when, and on which thread.
type Task = Pin<Box<dyn Future<Output = Result<u32, String>> + Send>>;

fn poll(task: &mut Task) -> Poll<Result<u32, String>> {
    task.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Gives way once.
async fn pause() {
    let mut paused = false;
    std::future::poll_fn(|_| if std::mem::replace(&mut paused, true) { Poll::Ready(()) } else { Poll::Pending }).await;
}

#[weftline::trace(err, args(batch))]
async fn fetch(batch: u32) -> Result<u32, String> {
    thread::sleep(Duration::from_millis(5));
    pause().await;
    thread::sleep(Duration::from_millis(5));
    if batch == 4 { Err("no batch 4".to_owned()) } else { Ok(batch * 2) }
}

/// `fetch` four times: 1 moves to another thread between its two polls, 2 and 4 are polled in turns, 3 is dropped half-way.
fn futures() -> Outcome {
    let mut moved: Task = Box::pin(fetch(1));
    assert!(poll(&mut moved).is_pending());
    thread::sleep(Duration::from_millis(20));
    let result = thread::spawn(move || poll(&mut moved)).join().map_err(|_| "the thread panicked")?;
    println!("{result:?}");

    let mut tasks: [Task; 3] = [2, 3, 4].map(|batch| Box::pin(fetch(batch)) as Task);
    assert!(tasks.iter_mut().all(|task| poll(task).is_pending()));
    let [second, third, fourth] = &mut tasks;
    println!("{:?} {:?}", poll(fourth), poll(second));
    let given_up = std::mem::replace(third, Box::pin(fetch(5)));
    drop(given_up);
    Ok(())
}

/// Every pointcut once; `submit` and `completed` are the two ends of the async span `job`, on two threads.
fn pointcuts() -> Outcome {
    around();
    begins();
    ends();
    submit();
    thread::spawn(completed).join().map_err(|_| "the thread panicked")?;
    whole();
    let mut task: Task = Box::pin(async { Ok(future().await) });
    println!("{:?} {:?}", poll(&mut task), poll(&mut task));
    Ok(())
}

#[weftline::critical_path(pointcut = "around", scope = "one")]
fn around() {}

#[weftline::critical_path(pointcut = "before", name = "by hand")]
fn begins() {}

#[weftline::critical_path(pointcut = "after", name = "by hand")]
fn ends() {}

#[weftline::critical_path(pointcut = "before_async", scope = "job-7", name = "job")]
fn submit() {}

#[weftline::critical_path(pointcut = "after_async", scope = "job-7", name = "job")]
fn completed() {}

#[weftline::critical_path(pointcut = "around_async", category = "io")]
fn whole() {
    thread::sleep(Duration::from_millis(2));
}

#[weftline::critical_path]
async fn future() -> u32 {
    pause().await;
    6
}

/// `burn` uses 50 ms of processor time, `sleep` none, `fill` 64 MiB of memory.
fn usage() -> Outcome {
    {
        let _burn = span!("burn");
        let until = time_on_processor()? + Duration::from_millis(50);
        let mut value = 1_u64;
        while time_on_processor()? < until {
            for round in 0..100_000 {
                value = value.rotate_left(5) ^ round;
            }
            std::hint::black_box(value);
        }
    }
    {
        let _sleep = span!("sleep");
        thread::sleep(Duration::from_millis(50));
    }
    let mut memory = Vec::new();
    {
        let _fill = span!("fill");
        memory.resize(64 << 20, 1_u8);
    }
    println!("{}", memory.len());
    Ok(())
}

/// What this thread has had of the processor: other programs may have it meanwhile.
fn time_on_processor() -> Result<Duration, Box<dyn Error>> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(Duration::from_nanos(text.split(' ').next().unwrap_or_default().parse()?))
}

/// `falls` > `inner`, and the future `falls_later`, end by a panic; `after` does not.
fn panics() -> Outcome {
    std::panic::set_hook(Box::new(|_| {}));
    let caught = std::panic::catch_unwind(falls).is_err();
    let future = std::panic::catch_unwind(|| poll(&mut (Box::pin(falls_later()) as Task))).is_err();
    let _after = span!("after", caught, future);
    println!("{caught} {future}");
    Ok(())
}

#[weftline::trace]
fn falls() {
    let _inner = span!("inner");
    panic!("as planned");
}

#[weftline::trace]
async fn falls_later() -> Result<u32, String> {
    panic!("as planned");
}

/// Two more processes, each with the part `early`.
fn children() -> Outcome {
    for _ in 0..2 {
        let status = Command::new(std::env::current_exe()?).arg("early").status()?;
        instant!("child", success = status.success());
    }
    Ok(())
}
