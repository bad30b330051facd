//! The attributes of the crate `weftline`. They expand to safe code.
//!
//! | module | holds |
//! |---|---|
//! | `options` | the options in the attribute's parentheses |
//! | `fields` | arguments that a function records |
//! | `weave` | the code that is put into a function's body |
//! | `traced` | `#[weftline::trace]`, on functions and impl blocks |
//! | `critical` | `#[weftline::critical_path]` |
//!
//! If the attribute has a mistake, the item itself is still emitted: one mistake, one message. Inserted code refers to
//! everything by absolute paths; its variables are invisible to the function's own code.
#![forbid(unsafe_code)]

mod critical;
mod fields;
mod options;
#[cfg(test)]
mod tests;
mod traced;
mod weave;

use proc_macro::TokenStream;

/// Records each call of a function, or of every function of an `impl` block.
///
/// ```
/// #[weftline::trace]
/// fn step() {}
///
/// #[weftline::trace(name = "read one", category = "io", args(path, kind = ?kind, bytes = data.len()), err)]
/// fn read(path: &str, kind: std::io::ErrorKind, data: &[u8]) -> Result<u8, std::num::ParseIntError> {
///     path.parse()
/// }
///
/// #[weftline::trace(args(all), skip(secret))]
/// async fn send(to: u32, secret: &str) -> usize {
///     secret.len() + to as usize
/// }
///
/// struct Loader;
///
/// #[weftline::trace(category = "data")]
/// impl Loader {
///     fn open(&self) {} // `Loader::open`
///     #[weftline::trace(args(index))]
///     fn item(&self, index: usize) -> usize { index }
///     #[weftline::trace(skip)]
///     fn len(&self) -> usize { 3 }
/// }
/// # step(); assert!(read("x", std::io::ErrorKind::Other, &[1]).is_err());
/// # Loader.open(); assert_eq!(Loader.item(2) + Loader.len(), 5); drop(send(1, "s"));
/// ```
///
/// | option | meaning |
/// |---|---|
/// | `name = "…"` | the event's name. Default: the function's name; in a traced `impl` block `Type::function`, where it replaces the type's name |
/// | `category = "…"`, `cat = "…"` | its category. Default: `app` |
/// | `args(a, b = x + 1, c = ?y, d = %z)` | arguments to record when the function begins. `?` tells a value by its `Debug`, `%` by its `Display`; others implement `weftline::Value` |
/// | `args(all)` | every parameter but `self` and those whose name begins with `_`: as `Value`, else by its `Debug`, else not at all |
/// | `skip(a, b)` | parameters that `args(all)` leaves out |
/// | `skip` | within a traced `impl` block: this function is not traced |
/// | `err` | the function returns a `Result`: of an `Err`, its `Display` is recorded as the argument `error` |
///
/// The span ends when the function returns in any way; a panic is recorded as `error`. An `async fn` is recorded by its polls, and
/// by its whole life as an async span, which has the arguments (see `weftline::Traced`). A function that is not `async` and returns a future
/// is timed until it returns the future. Methods, generic functions, `extern "C"` and `unsafe` functions can be traced:
///
/// ```
/// #[weftline::trace]
/// unsafe fn first(of: *const u8) -> u8 {
///     unsafe { *of }
/// }
/// assert_eq!(unsafe { first([7].as_ptr()) }, 7);
/// ```
///
/// A `const fn` cannot: it may run at compile time. In a traced `impl` block such functions are left as they are.
///
/// ```compile_fail
/// #[weftline::trace]
/// const fn answer() -> u32 { 42 }
/// ```
///
/// ```compile_fail
/// #[weftline::trace(nmae = "typing error")]
/// fn answer() -> u32 { 42 }
/// ```
#[proc_macro_attribute]
pub fn trace(options: TokenStream, item: TokenStream) -> TokenStream {
    traced::expand(options.into(), &item.into()).into()
}

/// Records a function that is likely to be on the critical path of a workflow, in the manner of aspect-oriented programming.
///
/// ```
/// #[weftline::critical_path]
/// fn simulate() {}
///
/// #[weftline::critical_path(pointcut = "before_async", scope = "job-7", name = "job")]
/// fn submit() {}
///
/// #[weftline::critical_path(pointcut = "after_async", scope = "job-7", name = "job")]
/// fn completed() {}
///
/// #[weftline::critical_path(category = "io")]
/// fn load() {}
/// # simulate(); submit(); completed(); load();
/// ```
///
/// | pointcut | what is recorded |
/// |---|---|
/// | `around` (default) | the call as a span; an `async fn` by its polls and its whole life |
/// | `before`, `after` | only the start, only the end of a span of the thread |
/// | `around_async` | the call as an async span, which may overlap others |
/// | `before_async`, `after_async` | only the start, only the end of an async span; functions with the same `scope` mean the same span, on whatever threads. Give both the same `name`: viewers want one |
///
/// `scope = "…"` is recorded as the argument `scope`. `name = "…"` replaces the function's name. The category is the module's path, unless
/// `category = "…"` (or `cat`) gives another.
///
/// ```compile_fail
/// #[weftline::critical_path(pointcut = "arround")]
/// fn simulate() {}
/// ```
#[proc_macro_attribute]
pub fn critical_path(options: TokenStream, item: TokenStream) -> TokenStream {
    critical::expand(options.into(), &item.into()).into()
}
