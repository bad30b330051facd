//! Hostile runs, and programs that attack their tracer: how tests make them, and what must still hold.
//!
//! | module | holds |
//! |---|---|
//! | [`bounded`] | running a command within bounds of time and memory |
//! | [`sandbox`] | a directory with a run and with files that must not change; detects changes |
//! | [`seeds`] | real runs to mutate: complete ones, and leftovers of kills |
//! | [`index`] | an index, taken apart and sealed again |
//! | [`mutate`] | one random change after the other to a run directory, each of a kind that its files can have |
//! | [`trial`] | one mutated run under some verbs of `weft`, and what was wrong |
//! | [`attack`] | a program that attacks its own shared memory, under `weft run` |
//!
//! Everything follows from one number, the seed of a [`Random`](crate::random::Random): a failed trial prints it.

pub mod attack;
pub mod bounded;
pub mod index;
pub mod mutate;
pub mod sandbox;
pub mod seeds;
pub mod trial;
