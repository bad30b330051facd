//! `libweft.so` and `libweft.a`: annotations for C and C++.
//!
//! The header `include/weft.h` is made from the signatures and comments here (`cargo xtask docs`); `include/weft.hpp` adds RAII for C++. What is
//! told goes to the process's one recorder ([`weftline::locate`]): that of `weft run` where there is one, else
//! that of the session which `weft_start` begins.
//!
//! What must hold in every function:
//! - NULL is allowed for every pointer and does the least harmful thing.
//! - Nothing panics, whatever the arguments: there is no caller who could catch it.
//! - While nothing is recorded a call costs a load and a branch.
//!
//! `dftracer/` and `perfflow/` are libraries of their own, because their names would not be welcome in every program. They let this one
//! begin and end recording ([`drop_ins`]); `entry/` is what all three need.

mod drop_ins;
mod installation;
mod session;
mod site;
mod span;
mod woven;
