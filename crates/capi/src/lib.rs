//! `libweft.so` and `libweft.a`: annotations for C and C++.
//!
//! The header `include/weft.h` is generated from the signatures and comments here (`cargo xtask docs`); `include/weft.hpp` adds RAII for C++. Events
//! go to the process's one recorder ([`weftline::locate`]): that of `weft run` if there is one, else
//! that of the session which `weft_start` begins.
//!
//! Every function keeps these rules:
//! - NULL is allowed for every pointer and does the least harmful thing.
//! - Nothing panics, whatever the arguments, since no caller could catch it.
//! - While nothing is recorded a call costs a load and a branch.
//!
//! `dftracer/` and `perfflow/` are libraries of their own, because not every program should get their symbols. They let this library
//! begin and end recording ([`drop_ins`]); all three need `entry/`.

mod drop_ins;
mod installation;
mod session;
mod site;
mod span;
mod woven;
