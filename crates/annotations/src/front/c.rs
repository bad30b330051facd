//! For front-ends with a C interface: C strings, ids of woven code, and calls into `libweft`.
//!
//! `libdftracer_core` and `libperfflow_runtime` are libraries of their own, because their names would clash with what programs call their
//! functions. They find the process's recorder as everybody does and store events themselves; recording without `weft run` is
//! begun and ended for them by `libweft`, so that only that one carries what writes traces.
//!
//! | module | holds |
//! |---|---|
//! | [`text`] | C strings, and names made of them |
//! | [`session`] | what the drop-in libraries ask of `libweft` |
//! | [`pairs`] | ids that join the ends of async spans and flows of woven code |
//! | [`place`] | where a library lies |

pub mod pairs;
pub mod place;
pub mod session;
pub mod text;
