//! What `weft weave` knows: compilers, their command lines, the plugin that fits, and how it is built.
//!
//! | module | holds |
//! |---|---|
//! | [`command`] | a compiler's command with the flags that weave |
//! | [`compiler`] | which compiler a command is, and which libLLVM it loads |
//! | [`elf`] | the libraries that a program or library needs |
//! | [`mod@line`] | what a compiler's command line does: compile, link, neither |
//! | [`flags`] | the flags that bring the plugin and the runtime library into a compiler's work |
//! | [`installation`] | where plugins and runtime libraries lie |
//! | [`setup`] | builds the plugin on this machine |
//! | [`error`] | what can go wrong, in sentences for the user |
//!
//! A plugin shares memory with the compiler: both must use the very same libLLVM, or the compiler dies in strange ways. So nothing is
//! guessed from version numbers; the files that both load are compared.
//!
//! The plugin itself is `weave/`, a workspace of its own; this crate carries its sources. Nothing here prints: the command does.
#![forbid(unsafe_code)]

pub mod command;
pub mod compiler;
pub mod elf;
pub mod error;
pub mod flags;
pub mod installation;
pub mod line;
pub mod setup;

pub use command::{Woven, woven};
pub use error::{Result, WeaveError};
pub use flags::{Abi, WeaveOptions};
pub use installation::Installation;

/// The oldest LLVM that the plugin is written for.
pub const OLDEST: u32 = 14;
