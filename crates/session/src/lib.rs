//! Recording without `weft run`: a process begins and finishes a session itself. Its files have the names that users of
//! DFTracer and PerfFlowAspect expect (`weftline-dropin`), or form a run directory.
//!
//! ```text
//! options ─▶ begin ─▶ <dir>/.<name>.weft/  a hidden run directory; the recorder writes into shared memory there
//!                          │ finish, at exit, or `weft recover` after a kill
//!                          ▼
//!            weftline-drain makes <host>-<pid>-<tag>.pfw.gz of each process
//!                          ▼ publish
//!            log_file-app-4711.pfw.gz · perfflow.array.host.4711.pfw
//! ```
//!
//! | module | holds |
//! |---|---|
//! | `session` | begin, finish, forked children, the end of the process |
//! | [`leftovers`] | what killed processes left, for the next session and for `weft recover` |
//! | `publish` | from the hidden directory to named files |
//! | `run` | a run directory for a program's own API |
//! | `app`, `host` | the name of a process, and whether it is alive |
//! | `raw` | the only `unsafe` code |
//!
//! Front-ends call this crate; it prints nothing itself, except at the end of a process, when no front-end can.
#![deny(unsafe_code)]

mod app;
mod error;
mod host;
pub mod leftovers;
mod publish;
#[allow(unsafe_code, reason = "the table's functions, atexit, and system calls where nothing else may be called")]
mod raw;
mod run;
mod session;

pub use app::app_name;
pub use error::{Result, SessionError};
pub use publish::Published;
pub use run::launcher;
pub use session::{Begun, Plan, begin, finish};

/// Names libweft_preload.so where it is not beside the command, in the installation or in the Python package.
pub const LIBRARY_VARIABLE: &str = "WEFT_PRELOAD_LIB";
