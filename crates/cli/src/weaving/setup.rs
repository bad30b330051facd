//! Builds the plugin on this machine, for a compiler or for every LLVM there is.
//!
//! The sources are part of this program, so a package that holds only `weft` is enough. What else it takes is on the machine or is
//! named in the error: cargo, a C++ compiler and the headers of that LLVM.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, anyhow, bail};
use weftline_index::input::CACHE_VARIABLES;

use super::OLDEST;
use super::compiler::{Compiler, Llvm, identify};
use super::flags::{PLUGIN, plugin_directories, user_plugins};

/// Paths and texts of the files of `weave/`.
static SOURCES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/weave_sources.rs"));

/// The name that builds written for PerfFlowAspect load.
const OLD_NAME: &str = "libWeavePass.so";
/// The newest major version that is looked for when no compiler is named.
const NEWEST: u32 = 30;

/// Builds and installs; what was made, in order.
pub(crate) fn build(command: &[OsString]) -> anyhow::Result<Vec<PathBuf>> {
    let configurations = if command.is_empty() { all_configurations()? } else { vec![configuration_of(command)?] };
    configurations.iter().map(|configuration| build_for(configuration)).collect()
}

/// `llvm-config` of the LLVM that a compiler is part of.
fn configuration_of(command: &[OsString]) -> anyhow::Result<PathBuf> {
    let (program, llvm) = match identify(command)? {
        Compiler::Clang { program, llvm } => (program, llvm),
        Compiler::Gcc => bail!("gcc needs no plugin: weft.h and weft.hpp have macros for it; see docs/weave.md"),
    };
    let beside = program.with_file_name("llvm-config");
    let versioned = on_path(&format!("llvm-config-{}", llvm.major));
    [Some(beside).filter(|path| path.is_file()), versioned].into_iter().flatten().next().with_context(|| {
        format!(
            "llvm-config of LLVM {0} is neither beside {1} nor on PATH; install its headers (Debian and Ubuntu: llvm-{0}-dev)",
            llvm.major,
            program.display()
        )
    })
}

fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|file| file.is_file())
}

fn all_configurations() -> anyhow::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = (OLDEST..=NEWEST)
        .filter_map(|major| {
            let debian = PathBuf::from(format!("/usr/lib/llvm-{major}/bin/llvm-config"));
            Some(debian).filter(|path| path.is_file()).or_else(|| on_path(&format!("llvm-config-{major}")))
        })
        .collect();
    if found.is_empty() {
        found.extend(on_path("llvm-config"));
    }
    if found.is_empty() {
        bail!(
            "no llvm-config is on this machine; install clang and LLVM's headers (Debian and Ubuntu: clang llvm-dev)"
        );
    }
    Ok(found)
}

fn build_for(configuration: &Path) -> anyhow::Result<PathBuf> {
    let version = version_of(configuration)?;
    let major = version.split('.').next().unwrap_or_default().to_owned();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let place = work_directory()?;
    write_sources(&place)?;
    let target = place.join(format!("target-{major}"));
    let mut command = Command::new(&cargo);
    command.args(["build", "--release", "--quiet"]).current_dir(&place).stdin(Stdio::null());
    command.env("WEFT_LLVM_CONFIG", configuration).env("CARGO_TARGET_DIR", &target);
    if place.join("Cargo.lock").is_file() {
        command.arg("--locked");
    }
    let status = command.status().map_err(|error| {
        anyhow!("cargo, which builds the plugin, cannot be started ({error}); install Rust 1.95 or later from https://rustup.rs")
    })?;
    if !status.success() {
        bail!(
            "the plugin for LLVM {version} was not built; cargo says why above. It needs a C++ compiler and llvm-{major}-dev"
        );
    }
    install(&target.join("release").join(PLUGIN), &major)
}

fn version_of(configuration: &Path) -> anyhow::Result<String> {
    let output = Command::new(configuration).arg("--version").stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {}", configuration.display()))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    match version.split('.').next().and_then(|major| major.parse::<u32>().ok()) {
        Some(major) if major >= OLDEST => Ok(version),
        Some(_) => bail!("{} is LLVM {version}; weaving needs LLVM {OLDEST} or later", configuration.display()),
        None => bail!("{} --version says {version:?}, which is no version", configuration.display()),
    }
}

/// Where the sources and what cargo makes of them lie.
fn work_directory() -> anyhow::Result<PathBuf> {
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let [cache, home] = CACHE_VARIABLES.map(given);
    let cache = cache.or_else(|| Some(home?.join(".cache")));
    let place = cache.unwrap_or_else(std::env::temp_dir).join("weftline/weave-build");
    fs::create_dir_all(&place).with_context(|| format!("cannot make {}", place.display()))?;
    Ok(place)
}

/// Writes what differs, so that cargo sees what has changed and nothing else.
fn write_sources(place: &Path) -> anyhow::Result<()> {
    if SOURCES.is_empty() {
        bail!(
            "this weft was built without the sources of the plugin; build it from a whole checkout with `make weave`"
        );
    }
    for (name, text) in SOURCES {
        let path = place.join(name);
        if fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            continue;
        }
        let directory = path.parent().unwrap_or(place);
        fs::create_dir_all(directory)
            .and_then(|()| fs::write(&path, text))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Copies the plugin into the first directory that takes it.
fn install(built: &Path, major: &str) -> anyhow::Result<PathBuf> {
    let Some(llvm) = Llvm::of(built)? else { bail!("{} is not linked to a shared libLLVM", built.display()) };
    if llvm.major.to_string() != major {
        bail!("{} was built for LLVM {major} and linked to {}", built.display(), llvm.name);
    }
    let mut why = anyhow!("there is no directory for it: HOME is not set");
    for place in installation_places()? {
        match copy(built, &place.join(major)) {
            Ok(file) => return Ok(file),
            Err(error) => why = error,
        }
    }
    Err(why).with_context(|| format!("the plugin for LLVM {major} was built, but cannot be installed"))
}

/// A directory that the user named or an installation that has room for plugins comes first, then the user's own.
fn installation_places() -> anyhow::Result<Vec<PathBuf>> {
    let own = user_plugins();
    let is_place = |place: &PathBuf| Some(place) == own.as_ref() || place.parent().is_some_and(Path::is_dir);
    Ok(plugin_directories()?.into_iter().filter(is_place).collect())
}

fn copy(built: &Path, directory: &Path) -> anyhow::Result<PathBuf> {
    let context = || format!("cannot write into {}", directory.display());
    fs::create_dir_all(directory).with_context(context)?;
    let file = directory.join(PLUGIN);
    // A compiler may have the old one loaded at this moment: it keeps its file.
    let unfinished = directory.join(format!(".{PLUGIN}.{}", std::process::id()));
    fs::copy(built, &unfinished).and_then(|_| fs::rename(&unfinished, &file)).with_context(context)?;
    let old = directory.join(OLD_NAME);
    let _ = fs::remove_file(&old);
    std::os::unix::fs::symlink(PLUGIN, &old).with_context(context)?;
    Ok(file.canonicalize().unwrap_or(file))
}
