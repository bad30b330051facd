//! What can go wrong, in sentences for the user: what, where, and what to do.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::OLDEST;

/// Why something cannot be woven, or a plugin cannot be built.
#[derive(Debug, Error)]
pub enum WeaveError {
    /// A command without a compiler.
    #[error("no compiler was named; for example `weft weave -- clang++ -c main.cpp`")]
    NoCompiler,
    /// The command names nothing that can be run.
    #[error("{}: no such compiler", name.display())]
    NoSuchCompiler {
        /// As it was named.
        name: OsString,
    },
    /// A program or plugin could not be looked at.
    #[error("{} cannot be read", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A program that had to be asked something did not start.
    #[error("cannot start {}", program.display())]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A clang that no plugin can share LLVM with.
    #[error(
        "{} has LLVM linked into itself, so no plugin can share it; weave with a clang that uses libLLVM.so, such as those of Debian, Ubuntu, Fedora",
        program.display()
    )]
    LinkedIn {
        /// The clang.
        program: PathBuf,
    },
    /// A clang or an LLVM from before what the plugin is written for.
    #[error("{} is LLVM {version}; weaving needs LLVM {OLDEST} or later", program.display())]
    TooOld {
        /// The clang, or its `llvm-config`.
        program: PathBuf,
        /// As it says.
        version: String,
    },
    /// A wrapper of a clang that cannot be found.
    #[error("{} is a clang, but does not say where it lies; name that clang itself", program.display())]
    Hidden {
        /// The wrapper.
        program: PathBuf,
    },
    /// Some other program.
    #[error("{} is neither clang nor gcc: `weft weave` cannot weave with it", program.display())]
    Unknown {
        /// The program.
        program: PathBuf,
    },
    /// Flags for gcc were asked for.
    #[error("gcc has no flags for weaving; weft.h and weft.hpp have macros for it")]
    NoFlagsForGcc,
    /// A plugin for gcc was asked for.
    #[error("gcc needs no plugin: weft.h and weft.hpp have macros for it; see docs/weave.md")]
    NoPluginForGcc,
    /// The system does not tell where the command lies, beside which all else does.
    #[error("cannot find out where weft itself lies")]
    Nowhere,
    /// There is a plugin, but for another libLLVM.
    #[error(
        "{program} uses {llvm}, and {file} was built for {theirs}: they would not survive each other; `weft weave --setup -- {program}` builds one that fits",
        program = compiler.display(),
        file = plugin.display()
    )]
    OtherPlugin {
        /// The compiler.
        compiler: PathBuf,
        /// The libLLVM that it loads.
        llvm: String,
        /// The plugin.
        plugin: PathBuf,
        /// The libLLVM that the plugin loads.
        theirs: String,
    },
    /// There is none.
    #[error("there is no plugin for LLVM {major}, which {program} is; `weft weave --setup -- {program}` builds it", program = compiler.display())]
    NoPlugin {
        /// The compiler.
        compiler: PathBuf,
        /// Its LLVM.
        major: u32,
    },
    /// PerfFlowAspect's runtime is a shared library only.
    #[error(
        "--abi perfflow needs libperfflow_runtime.so, which cannot be linked with -static; use the default ABI or leave -static out"
    )]
    StaticPerfflow,
    /// An installation without what woven programs load.
    #[error("{file}, which woven programs need, is not with {}; install weft with `make install`", directory.display())]
    NoLibrary {
        /// Its name.
        file: &'static str,
        /// The directory of the command.
        directory: PathBuf,
    },
    /// LLVM's headers are not installed.
    #[error(
        "llvm-config of LLVM {major} is neither beside {} nor on PATH; install its headers (Debian and Ubuntu: llvm-{major}-dev)",
        program.display()
    )]
    NoConfiguration {
        /// The compiler.
        program: PathBuf,
        /// Its LLVM.
        major: u32,
    },
    /// No LLVM at all.
    #[error("no llvm-config is on this machine; install clang and LLVM's headers (Debian and Ubuntu: clang llvm-dev)")]
    NoLlvm,
    /// A program that is called `llvm-config` and is none.
    #[error("{} --version says {said:?}, which is no version", program.display())]
    NoVersion {
        /// The program.
        program: PathBuf,
        /// What it printed.
        said: String,
    },
    /// A build without the plugin's sources.
    #[error("this weft was built without the sources of the plugin; build it from a whole checkout with `make weave`")]
    NoSources,
    /// Something cannot be written.
    #[error("cannot write {}", path.display())]
    Unwritable {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The plugin is built by cargo.
    #[error(
        "cargo, which builds the plugin, cannot be started ({source}); install Rust 1.95 or later from https://rustup.rs"
    )]
    NoCargo {
        /// What the system said.
        source: io::Error,
    },
    /// cargo failed, and has said why.
    #[error(
        "the plugin for LLVM {version} was not built; cargo says why above. It needs a C++ compiler and llvm-{major}-dev"
    )]
    NotBuilt {
        /// The LLVM.
        version: String,
        /// Its major version.
        major: String,
    },
    /// The plugin carries an LLVM of its own.
    #[error("{} is not linked to a shared libLLVM", plugin.display())]
    NotShared {
        /// The plugin.
        plugin: PathBuf,
    },
    /// The linker took another LLVM than the one whose headers were read.
    #[error("{} was built for LLVM {major} and linked to {linked}", plugin.display())]
    OtherLlvm {
        /// The plugin.
        plugin: PathBuf,
        /// The LLVM that was asked for.
        major: String,
        /// The library that it loads.
        linked: String,
    },
    /// No directory takes plugins.
    #[error("there is no directory for it: HOME is not set")]
    NoPlace,
    /// A plugin was built for nothing.
    #[error("the plugin for LLVM {major} was built, but cannot be installed")]
    NotInstalled {
        /// Its LLVM.
        major: String,
        /// Why the last directory did not take it.
        source: Box<WeaveError>,
    },
}

/// The result of whatever can fail here.
pub type Result<T, E = WeaveError> = std::result::Result<T, E>;
