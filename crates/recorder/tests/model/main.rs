//! Model tests of the hand-over of segments (`weftline_recorder::handover`) and of the index of names, beyond what running programs would show.
//!
//! - `../../loom/interleavings.rs`, a workspace of its own (`make test-loom`): threads, the drain and forked processes at the same time, in all orders up to
//!   a number of preemptions and with all values that the memory orderings permit. Its words are loom's: they cannot lie in mapped memory, which is why the
//!   hand-over is generic.
//! - [`interruptions`]: a thread that is killed, or interrupted by a signal handler, at each of its steps in turn.
//! - [`heap`]: the production words and layout, in memory of the heap with threads of the system. Nothing in it is mapped, so that Miri can run it
//!   (`cargo +nightly miri test -p weftline-recorder --test model heap`).
//!
//! A model that cannot fail proves nothing: interleavings and interruptions also run with injected faults ([`arena::Fault`]), and must detect each.

#[allow(dead_code, reason = "interleavings.rs uses the rest")]
mod arena;
mod heap;
mod interruptions;
