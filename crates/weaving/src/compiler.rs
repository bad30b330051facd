//! Which compiler a command is, and which libLLVM it loads.
//!
//! Decided by the program's file, without running it: starting clang takes as long as compiling a small file. Only a wrapper
//! (`mpicc`, a script) is asked who it is.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::elf::Needs;
use crate::{OLDEST, Result, WeaveError};

/// Programs that stand before a compiler, or are called by its name and call it.
const LAUNCHERS: [&str; 4] = ["ccache", "sccache", "distcc", "icecc"];

/// The libLLVM that a program or plugin loads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Llvm {
    /// Its name for the loader, such as `libLLVM-14.so.1` or `libLLVM.so.19.1`.
    pub name: String,
    /// The file, if it lies where the loader looks.
    pub file: Option<PathBuf>,
    /// Its major version.
    pub major: u32,
}

impl Llvm {
    /// That of a file; `None` where the file needs none.
    pub fn of(path: &Path) -> Result<Option<Llvm>> {
        let unreadable = |source| WeaveError::Unreadable { path: path.to_owned(), source };
        let needs = Needs::of(path).map_err(unreadable)?.unwrap_or_default();
        let found = needs.libraries.iter().find_map(|name| Some((name, major_of(name)?)));
        Ok(found.map(|(name, major)| Llvm { name: name.clone(), file: needs.file_of(name), major }))
    }

    /// Would both be the same copy in one process?
    pub fn is_same(&self, other: &Llvm) -> bool {
        self.name == other.name && self.file == other.file
    }

    /// As the user knows it: the file, else the name.
    pub fn shown(&self) -> String {
        self.file.as_ref().map_or_else(|| self.name.clone(), |file| file.display().to_string())
    }
}

/// The major version in a library's name; `None` for other libraries.
fn major_of(library: &str) -> Option<u32> {
    let rest = library.strip_prefix("libLLVM")?;
    let digits = rest.strip_prefix('-').or_else(|| rest.strip_prefix(".so."))?;
    digits.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
}

/// What a command turned out to be.
#[derive(Debug)]
pub enum Compiler {
    /// A clang that a plugin can be made for.
    Clang {
        /// Its file.
        program: PathBuf,
        /// What it loads.
        llvm: Llvm,
    },
    /// gcc, which has no such plugins.
    Gcc,
}

/// Looks at the command of a compiler.
pub fn identify(command: &[OsString]) -> Result<Compiler> {
    let name = command.get(position(command)).ok_or(WeaveError::NoCompiler)?;
    let program = find(name).ok_or_else(|| WeaveError::NoSuchCompiler { name: name.clone() })?;
    if is_named(&program, &["gcc", "g++"]) {
        return Ok(Compiler::Gcc);
    }
    if is_named(&program, &["clang"]) && Needs::of(&program).ok().flatten().is_some() {
        return clang(program);
    }
    wrapped(name, &program)
}

fn is_launcher(word: &OsStr) -> bool {
    Path::new(word).file_name().is_some_and(|name| LAUNCHERS.iter().any(|launcher| name == *launcher))
}

/// Where the compiler stands in a command: first, or behind launchers, as in `ccache clang`.
pub fn position(command: &[OsString]) -> usize {
    command.iter().position(|word| !is_launcher(word)).unwrap_or(0)
}

/// Is one of these words part of the file's name?
fn is_named(program: &Path, words: &[&str]) -> bool {
    let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
    words.iter().any(|word| name.contains(word))
}

/// The file behind a command: links followed, and launchers that carry the compiler's name passed over.
fn find(name: &OsStr) -> Option<PathBuf> {
    if name.as_bytes().contains(&b'/') {
        return Path::new(name).canonicalize().ok();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_program =
        |path: &PathBuf| path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0);
    std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .filter(is_program)
        .filter_map(|path| path.canonicalize().ok())
        .find(|path| !is_launcher(path.as_os_str()))
}

fn clang(program: PathBuf) -> Result<Compiler> {
    match Llvm::of(&program)? {
        None => Err(WeaveError::LinkedIn { program }),
        Some(llvm) if llvm.major < OLDEST => Err(WeaveError::TooOld { program, version: llvm.major.to_string() }),
        Some(llvm) => Ok(Compiler::Clang { program, llvm }),
    }
}

/// A program with another name: asked who it is.
fn wrapped(name: &OsStr, program: &Path) -> Result<Compiler> {
    let asked = Command::new(name).arg("--version").stdin(Stdio::null()).stderr(Stdio::null()).output();
    let words = asked.map_err(|source| WeaveError::NotStarted { program: name.into(), source })?.stdout;
    let words = String::from_utf8_lossy(&words).into_owned();
    match version_of(&words) {
        Version::Clang { major, directory } => {
            let beside = [format!("clang-{major}"), "clang".to_owned()];
            let real = beside.iter().find_map(|name| Path::new(&directory?).join(name).canonicalize().ok());
            clang(real.ok_or_else(|| WeaveError::Hidden { program: program.to_owned() })?)
        }
        Version::Gcc => Ok(Compiler::Gcc),
        Version::Other => Err(WeaveError::Unknown { program: program.to_owned() }),
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Version<'a> {
    Clang { major: &'a str, directory: Option<&'a str> },
    Gcc,
    Other,
}

/// What `--version` tells.
fn version_of(words: &str) -> Version<'_> {
    // Vendors of other clangs put their name before the word: their LLVM is not that of the release with the number.
    let first = words.lines().next().unwrap_or_default();
    let ours =
        ["", "Debian ", "Ubuntu "].iter().find_map(|vendor| first.strip_prefix(vendor)?.strip_prefix("clang version "));
    if let Some(version) = ours {
        let major = version.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default();
        return Version::Clang { major, directory: words.lines().find_map(|line| line.strip_prefix("InstalledDir: ")) };
    }
    // What gcc's `--version` says, and no other program of the GNU project.
    if words.contains("see the source for copying conditions") { Version::Gcc } else { Version::Other }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_major_version_is_in_the_name() {
        for (name, expected) in [
            ("libLLVM-14.so.1", Some(14)),
            ("libLLVM-17.so", Some(17)),
            ("libLLVM.so.18.1", Some(18)),
            ("libLLVM.so.21.1-rust-1.95.0-stable", Some(21)),
            ("libLLVM.so.19.0git", Some(19)),
            ("libLLVMSupport.so.14", None),
            ("libclang-cpp.so.19.1", None),
            ("libLLVM.so", None),
        ] {
            assert_eq!(major_of(name), expected, "{name}");
        }
    }

    #[test]
    fn compilers_say_who_they_are() {
        let clang = |major, directory| Version::Clang { major, directory };
        for (words, expected) in [
            (
                "Debian clang version 19.1.7 (3~deb12u1)\nTarget: x86_64-pc-linux-gnu\nThread model: posix\nInstalledDir: /usr/lib/llvm-19/bin\n",
                clang("19", Some("/usr/lib/llvm-19/bin")),
            ),
            ("clang version 17.0.6 (Fedora 17.0.6-2.fc39)\nTarget: x86_64-redhat-linux-gnu\n", clang("17", None)),
            (
                "AMD clang version 17.0.0 (https://github.com/RadeonOpenCompute/llvm-project roc-6.0.2)\n",
                Version::Other,
            ),
            ("Apple clang version 15.0.0 (clang-1500.3.9.4)\n", Version::Other),
            (
                "gcc (Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.\nThis is free software; see the source for copying conditions.  There is NO\n",
                Version::Gcc,
            ),
            ("true (GNU coreutils) 9.1\nCopyright (C) 2022 Free Software Foundation, Inc.\n", Version::Other),
            ("Intel(R) oneAPI DPC++/C++ Compiler 2024.0.0\n", Version::Other),
            ("", Version::Other),
        ] {
            assert_eq!(version_of(words), expected, "{words}");
        }
    }
}
