//! What `weft weave` knows: compilers, their command lines, the plugin that fits, and how it is built.
//!
//! | module | holds |
//! |---|---|
//! | [`compiler`] | which compiler a command is, and which libLLVM it loads |
//! | [`elf`] | the libraries that a program or library needs |
//! | [`mod@line`] | what a compiler's command line does: compile, link, neither |
//! | [`flags`] | the plugin and the runtime library of this installation, and the flags that bring them in |
//! | [`setup`] | builds the plugin on this machine |
//!
//! A plugin shares memory with the compiler: both must use the very same libLLVM, or the compiler dies in strange ways. So nothing is
//! guessed from version numbers; the files that both load are compared.

pub(crate) mod compiler;
pub(crate) mod elf;
pub(crate) mod flags;
pub(crate) mod line;
pub(crate) mod setup;

/// The oldest LLVM that the plugin is written for.
pub(crate) const OLDEST: u32 = 14;
