//! For tests only: compiles small C programs, runs them with and without tracing, and compares what happened.
//!
//! | module | holds |
//! |---|---|
//! | [`product`] | finding (or building) the `weft` under test |
//! | [`compile`] | C programs from `programs/`, compiled once per content and flags |
//! | [`scratch`] | directories that vanish unless the test failed |
//! | [`run`] | running a command with a time limit; [`run::Outcome`] |
//! | [`tree`] | what files a command left |
//! | [`table`] | a trace reduced to counts per call, file and result |
//! | [`case`] | [`case::Case`]: one program, what must be the same, what must be in the trace |
//! | [`strace`] | the kernel's view, for comparison |
//! | [`random`] | random moments that can be repeated |
//! | [`hostile`] | hostile runs and programs, and what must still hold |
//! | [`soak`] | kills at random moments with attacks in between, any number of rounds |
//!
//! A missing precondition (a compiler, root, a tool) is a failure that says what is missing, never a skipped test.
//! Functions here panic with a message, which fails the test.
#![forbid(unsafe_code)]

pub mod case;
pub mod compile;
pub mod hostile;
pub mod product;
pub mod random;
pub mod run;
pub mod scratch;
pub mod soak;
pub mod strace;
pub mod table;
pub mod tree;

pub use case::{Case, Finished};
pub use scratch::Scratch;
