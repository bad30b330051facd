//! `libdftracer_core.so`: DFTracer's C functions on top of Weftline.
//!
//! `include/dftracer/dftracer.h` declares them and has the macros that programs use. The same file is installed as
//! `libdftracer_preload.so`, for `LD_PRELOAD` with `DFTRACER_INIT=PRELOAD`.
//!
//! | module | holds |
//! |---|---|
//! | `session` | `DFTRACER_*`, the beginning and the end of recording |
//! | `region` | functions and regions, with their metadata |
//! | `metadata` | metadata of the process |
//!
//! NULL is allowed for every pointer; nothing panics; without a recorder a region costs a load and a branch.

mod metadata;
mod region;
mod session;
