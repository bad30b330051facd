//! For front-ends with a C interface: C strings, ids of woven code, and calls into `libweft`.
//!
//! `libdftracer_core` and `libperfflow_runtime` are libraries of their own, because their exported names could clash with functions of
//! programs. They find the process's recorder as every front-end does and store events themselves; `libweft` begins and ends
//! recording without `weft run` for them, so that only `libweft` contains the code that writes traces.
//!
//! | module | holds |
//! |---|---|
//! | [`text`] | C strings, and names made of them |
//! | [`session`] | calls of the drop-in libraries into `libweft` |
//! | [`pairs`] | ids that join the ends of async spans and flows of woven code |
//! | [`place`] | the path of a library |

pub mod pairs;
pub mod place;
pub mod session;
pub mod text;
