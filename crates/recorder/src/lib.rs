//! The in-process recorder, into which a traced program writes its events.
//!
//! A traced process image maps one *arena*, a pre-allocated file shared with the outside ([`layout`]), and from then on
//! only stores into memory: one 64-byte [`layout::Record`] per event, into a segment that belongs to the calling
//! thread ([`thread`]); segments go to the drain and back by the rules of [`handover`]. A record is complete once its first word is stored, so however the process is killed, the records
//! of all calls that returned are in the file. The drain (crate `weftline-drain`) reads arenas from another process,
//! writes trace files and hands segments back; `weft recover` does the same for what a killed supervisor left.
//!
//! Front-ends store records and never see segments. The preload library calls [`thread::record`] for each hooked call;
//! annotation APIs pass [`annotation::Event`]s through the [`table`], by which all front-ends of a process find
//! the one recorder. Names (paths, strings) are interned in the arena ([`names`]) and referred to by a 32-bit id.
//!
//! # Design constraints
//! - `no_std`, no allocation, no locks, no thread, no file descriptor kept, no syscall in steady state. The library that
//!   carries this code must load into any program: old glibc, seccomp filters, exhausted descriptors, full disks.
//! - Signal handlers may interrupt any instruction here and record events themselves.
//! - After `fork`, and even after a raw `clone`, parent and child share the arena's mapping: the child notices by a page that
//!   the kernel wipes ([`process`]) and takes its own process slot and segments. No syscall is needed for that beyond
//!   `getpid`, so sandboxed children are traced as well.
#![no_std]

pub mod annotation;
pub mod arena;
pub mod clock;
pub mod elf;
pub mod handover;
pub mod identity;
pub mod layout;
pub mod names;
pub mod process;
pub mod scratch;
pub mod sys;
pub mod table;
pub mod thread;
pub mod usage;
