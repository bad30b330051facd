//! Builds the plugin on this machine, for a compiler or for every LLVM there is.
//!
//! The sources are part of this crate, so a package that holds only `weft` is enough. What else it takes is on the machine or is
//! named in the error: cargo, a C++ compiler and the headers of that LLVM.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::compiler::{Compiler, Llvm, identify};
use crate::installation::{Installation, PLUGIN};
use crate::{OLDEST, Result, WeaveError};

/// Paths and texts of the files of `weave/`.
static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/weave_sources.rs"));

/// The name that builds written for PerfFlowAspect load.
const OLD_NAME: &str = "libWeavePass.so";
/// The newest major version that is looked for when no compiler is named.
const NEWEST: u32 = 30;

/// Builds and installs; what was made, in order. The sources, and what cargo makes of them, are kept in `work`.
pub fn build(command: &[OsString], work: &Path, installation: &Installation) -> Result<Vec<PathBuf>> {
    let configurations = if command.is_empty() { all_configurations()? } else { vec![configuration_of(command)?] };
    configurations.iter().map(|configuration| build_for(configuration, work, installation)).collect()
}

/// `llvm-config` of the LLVM that a compiler is part of.
fn configuration_of(command: &[OsString]) -> Result<PathBuf> {
    let Compiler::Clang { program, llvm } = identify(command)? else { return Err(WeaveError::NoPluginForGcc) };
    let beside = Some(program.with_file_name("llvm-config")).filter(|path| path.is_file());
    let found = beside.or_else(|| on_path(&format!("llvm-config-{}", llvm.major)));
    found.ok_or(WeaveError::NoConfiguration { program, major: llvm.major })
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

fn all_configurations() -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = (OLDEST..=NEWEST)
        .filter_map(|major| {
            let debian = PathBuf::from(format!("/usr/lib/llvm-{major}/bin/llvm-config"));
            Some(debian).filter(|path| path.is_file()).or_else(|| on_path(&format!("llvm-config-{major}")))
        })
        .collect();
    if found.is_empty() {
        found.extend(on_path("llvm-config"));
    }
    if found.is_empty() { Err(WeaveError::NoLlvm) } else { Ok(found) }
}

fn build_for(configuration: &Path, work: &Path, installation: &Installation) -> Result<PathBuf> {
    let version = version_of(configuration)?;
    let major = version.split('.').next().unwrap_or_default().to_owned();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    write_sources(work)?;
    let target = work.join(format!("target-{major}"));
    let mut command = Command::new(&cargo);
    command.args(["build", "--release", "--quiet"]).current_dir(work).stdin(Stdio::null());
    command.env("WEFT_LLVM_CONFIG", configuration).env("CARGO_TARGET_DIR", &target);
    if work.join("Cargo.lock").is_file() {
        command.arg("--locked");
    }
    let status = command.status().map_err(|source| WeaveError::NoCargo { source })?;
    if !status.success() {
        return Err(WeaveError::NotBuilt { version, major });
    }
    install(&target.join("release").join(PLUGIN), &major, installation)
}

fn version_of(configuration: &Path) -> Result<String> {
    let asked = Command::new(configuration).arg("--version").stdin(Stdio::null()).output();
    let output = asked.map_err(|source| WeaveError::NotStarted { program: configuration.to_owned(), source })?;
    usable(configuration, &String::from_utf8_lossy(&output.stdout))
}

/// The version that an `llvm-config` printed, if the plugin can be built for it.
fn usable(configuration: &Path, said: &str) -> Result<String> {
    let (program, version) = (configuration.to_owned(), said.trim().to_owned());
    match version.split('.').next().and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major >= OLDEST => Ok(version),
        Some(_) => Err(WeaveError::TooOld { program, version }),
        None => Err(WeaveError::NoVersion { program, said: version }),
    }
}

/// Writes what differs, so that cargo sees what has changed and nothing else.
fn write_sources(work: &Path) -> Result<()> {
    if SOURCES.is_empty() {
        return Err(WeaveError::NoSources);
    }
    for (name, text) in SOURCES {
        let path = work.join(name);
        if fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            continue;
        }
        let directory = path.parent().unwrap_or(work);
        let written = fs::create_dir_all(directory).and_then(|()| fs::write(&path, text));
        written.map_err(|source| WeaveError::Unwritable { path, source })?;
    }
    Ok(())
}

/// Copies the plugin into the first directory that takes it.
fn install(built: &Path, major: &str, installation: &Installation) -> Result<PathBuf> {
    let plugin = built.to_owned();
    let Some(llvm) = Llvm::of(built)? else { return Err(WeaveError::NotShared { plugin }) };
    if llvm.major.to_string() != major {
        return Err(WeaveError::OtherLlvm { plugin, major: major.to_owned(), linked: llvm.name });
    }
    let mut why = WeaveError::NoPlace;
    for place in installation.places_for_plugins()? {
        let directory = place.join(major);
        match copy(built, &directory) {
            Ok(file) => return Ok(file),
            Err(source) => why = WeaveError::Unwritable { path: directory, source },
        }
    }
    Err(WeaveError::NotInstalled { major: major.to_owned(), source: Box::new(why) })
}

fn copy(built: &Path, directory: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(directory)?;
    let file = directory.join(PLUGIN);
    // A compiler may have the old one loaded at this moment: it keeps its file.
    let unfinished = directory.join(format!(".{PLUGIN}.{}", std::process::id()));
    fs::copy(built, &unfinished).and_then(|_| fs::rename(&unfinished, &file))?;
    let old = directory.join(OLD_NAME);
    let _ = fs::remove_file(&old);
    std::os::unix::fs::symlink(PLUGIN, &old)?;
    Ok(file.canonicalize().unwrap_or(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A package without a checkout builds from these.
    #[test]
    fn the_sources_of_the_plugin_are_here() {
        let work = tempfile::tempdir().expect("a temporary directory");
        write_sources(work.path()).expect("written");
        let manifest = fs::read_to_string(work.path().join("Cargo.toml")).expect("a manifest");
        assert!(manifest.contains("[package]") && work.path().join("src/lib.rs").is_file(), "{manifest}");
        let before = fs::metadata(work.path().join("Cargo.toml")).and_then(|data| data.modified()).expect("a time");
        write_sources(work.path()).expect("nothing to write");
        let after = fs::metadata(work.path().join("Cargo.toml")).and_then(|data| data.modified()).expect("a time");
        assert_eq!(before, after, "cargo would build again what has not changed");
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let installation = Installation::around(None);
        let built = install(&std::env::current_exe().expect("a path"), "19", &installation);
        assert!(matches!(built, Err(WeaveError::NotShared { .. })), "{built:?}");
        let missing = version_of(&place.path().join("llvm-config"));
        assert!(matches!(missing, Err(WeaveError::NotStarted { .. })), "{missing:?}");
    }

    #[test]
    fn versions_are_checked() {
        let configuration = Path::new("llvm-config");
        assert_eq!(usable(configuration, "19.1.7\n").expect("new enough"), "19.1.7");
        assert_eq!(usable(configuration, "14.0.6\n").expect("the oldest"), "14.0.6");
        let old = usable(configuration, "13.0.1\n");
        assert!(matches!(&old, Err(WeaveError::TooOld { version, .. }) if version == "13.0.1"), "{old:?}");
        let odd = usable(configuration, "no version\n");
        assert!(matches!(&odd, Err(WeaveError::NoVersion { said, .. }) if said == "no version"), "{odd:?}");
    }
}
