//! C programs from `programs/`, compiled once per content and flags.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::scratch;

/// How to compile a program.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// The compiler: `gcc`, or `musl-gcc`.
    pub compiler: &'static str,
    /// Flags behind [`COMMON`].
    pub flags: &'static [&'static str],
}

/// The usual build. No optimisation and no builtins: the calls in the source are the calls in the program.
pub const PLAIN: Build = Build { compiler: "gcc", flags: &["-O0"] };
/// A shared library.
pub const LIBRARY: Build = Build { compiler: "gcc", flags: &["-O0", "-shared", "-fPIC"] };
/// Linked statically.
pub const STATIC: Build = Build { compiler: "gcc", flags: &["-O0", "-static"] };
/// For 32-bit x86.
pub const CLASS_32: Build = Build { compiler: "gcc", flags: &["-O0", "-m32"] };
/// With AddressSanitizer.
pub const ASAN: Build = Build { compiler: "gcc", flags: &["-O0", "-fsanitize=address"] };
/// With AddressSanitizer inside the executable instead of a library.
pub const ASAN_STATIC: Build = Build { compiler: "gcc", flags: &["-O0", "-fsanitize=address", "-static-libasan"] };
/// With ThreadSanitizer.
pub const TSAN: Build = Build { compiler: "gcc", flags: &["-O0", "-fsanitize=thread"] };
/// Against musl, with its dynamic linker.
pub const MUSL: Build = Build { compiler: "musl-gcc", flags: &["-O0"] };
/// Against musl, statically.
pub const MUSL_STATIC: Build = Build { compiler: "musl-gcc", flags: &["-O0", "-static"] };
/// Fortified at level 2.
pub const FORTIFY_2: Build = Build { compiler: "gcc", flags: &["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"] };
/// Fortified at level 3.
pub const FORTIFY_3: Build = Build { compiler: "gcc", flags: &["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=3"] };
/// Optimised as distributions do it, with everything inlined that headers offer.
pub const OPTIMISED: Build = Build { compiler: "gcc", flags: &["-O2", "-fbuiltin"] };
/// With 64-bit offsets: the `…64` symbols.
pub const LARGE_FILES: Build = Build { compiler: "gcc", flags: &["-O0", "-D_FILE_OFFSET_BITS=64"] };

/// Flags of every build.
pub const COMMON: &[&str] = &["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fno-builtin", "-g", "-pthread"];

/// Where the sources are.
pub fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}

/// Compiles `programs/<name>.c` and returns the program. A build that is already there is taken as it is.
///
/// # Panics
/// With the compiler's words when it fails.
pub fn compile(name: &str, build: Build) -> PathBuf {
    let source = sources().join(name).with_extension("c");
    let mut key = DefaultHasher::new();
    (COMMON, build.compiler, build.flags).hash(&mut key);
    for file in [&source, &sources().join("hazard.h")] {
        fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display())).hash(&mut key);
    }
    let home = scratch::base().join("programs").join(format!("{:016x}", key.finish()));
    let program = home.join(name);
    if program.is_file() {
        return program;
    }
    scratch::make(&home);
    // Tests of several processes may compile the same program at once: the rename makes the last one win, whole.
    let unfinished = home.join(format!(".{name}.{}.{:?}", std::process::id(), std::thread::current().id()));
    let mut command = Command::new(build.compiler);
    command.args(COMMON).args(build.flags).arg("-o").arg(&unfinished).arg(&source).args(["-ldl", "-lrt"]);
    let output = command.output().unwrap_or_else(|error| panic!("{} is needed: {error}", build.compiler));
    assert!(
        output.status.success(),
        "{} {} of {} failed:\n{}",
        build.compiler,
        build.flags.join(" "),
        source.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    fs::rename(&unfinished, &program).unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    program
}
