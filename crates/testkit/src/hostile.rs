//! Runs that somebody prepared, and programs that attack whoever traces them: how they are made, and what must hold all the same.
//!
//! | module | holds |
//! |---|---|
//! | [`bounded`] | running a command within bounds of time and memory |
//! | [`sandbox`] | a place with a run and with things that are none of its business; what changed there |
//! | [`seeds`] | real runs, to be mutated: whole ones, and what kills left |
//! | [`index`] | an index, taken apart and sealed again |
//! | [`mutate`] | one random change after the other to a run directory, each of a kind that its files can have |
//! | [`trial`] | one mutated run under some verbs of `weft`, and what was wrong |
//! | [`attack`] | a program that attacks its own shared memory, under `weft run` |
//!
//! Everything follows from one number, the seed of a [`Random`](crate::random::Random): a trial that failed says which.

pub mod attack;
pub mod bounded;
pub mod index;
pub mod mutate;
pub mod sandbox;
pub mod seeds;
pub mod trial;
