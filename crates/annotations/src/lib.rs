//! Annotate Rust code: spans, instants and counters go into the same trace as the program's I/O calls.
//!
//! ```
//! #[weftline::trace(args(index))]
//! fn load(index: usize) -> usize {
//!     let _span = weftline::span!("decode", index = index, codec = "png");
//!     weftline::counter!("queue", length = 3);
//!     index * 2
//! }
//! assert_eq!(load(21), 42);
//! ```
//!
//! Run the program under `weft run`, and its spans are in the run. Run it by itself, and each annotation costs a load and a
//! branch. Nothing here panics, blocks or writes to a file; `weft` counts and reports what cannot be written.
//!
//! - [`span!`], [`instant!`], [`counter!`], [`meta!`] annotate a place; [`macro@trace`] and [`macro@critical_path`] a function.
//! - [`Traced`] times a future by its polls and by its whole life; the attributes use it for `async fn`.
//! - With the feature `gpu`, spans under `weft run --span-usage` also record the usage of NVIDIA GPUs.
//! - With the feature `tracing`, `layer()` makes spans of the crate `tracing` appear as well.
//! - [`front`] is the base for front-ends of other languages; [`locate`] finds the process's one recorder.
#![deny(unsafe_code)]

mod args;
mod critical;
mod events;
pub mod front;
mod future;
#[cfg(feature = "gpu")]
mod gpu;
#[cfg(feature = "tracing")]
pub mod layer;
pub mod locate;
mod macros;
mod span;
mod text;

pub use args::Value;
pub use future::Traced;
#[cfg(feature = "tracing")]
pub use layer::layer;
pub use span::Span;
pub use weftline_macros::{critical_path, trace};

/// What the macros expand to. Not for direct use: it changes with them.
#[doc(hidden)]
pub mod expansion {
    pub use crate::args::{Any, Args, Debugged, Displayed};
    pub use crate::critical::{AsyncPointcut, Pointcut, add_scope};
    pub use crate::events::{counter, instant, meta};
    pub use crate::future::{Life, TracedResult};
    pub use crate::span::{Site, call, note_error};
    pub use crate::text::Text;
}

/// Whether anything is recorded now. For annotations whose arguments are costly to make.
#[inline(always)]
pub fn is_on() -> bool {
    locate::recording().is_some()
}

#[cfg(doctest)]
#[doc = include_str!("../../../docs/annotate.md")]
struct Page;
