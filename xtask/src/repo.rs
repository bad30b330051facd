//! Where things are in the checkout, and how chores read files and run commands.
//!
//! Errors are plain sentences: a chore's only reader is the developer who started it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The checkout's root: xtask's own directory is compiled in, so the current directory does not matter.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Where cargo puts the product.
pub(crate) fn release_dir() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from).join("release")
}

/// `path` as it is written in messages: relative to the root.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

pub(crate) fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", shown(path)))
}

/// All files below `directory` in sorted order, without hidden and build directories. A missing directory is empty.
pub(crate) fn files_below(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_path_buf()];
    while let Some(directory) = pending.pop() {
        if !directory.is_dir() {
            continue;
        }
        let fail = |error: std::io::Error| format!("cannot list {}: {error}", shown(&directory));
        for entry in fs::read_dir(&directory).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
            if path.is_dir() {
                if !name.starts_with('.') && name != "target" && name != "__pycache__" {
                    pending.push(path);
                }
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Runs a command at the root and returns what it printed; its failure is an error that carries its own words.
pub(crate) fn output<S: AsRef<OsStr>>(program: impl AsRef<OsStr>, arguments: &[S]) -> Result<String, String> {
    let program = program.as_ref();
    let output = Command::new(program)
        .args(arguments)
        .current_dir(root())
        .output()
        .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    if !output.status.success() {
        let words = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{} failed ({}): {}", program.display(), output.status, words.trim()));
    }
    String::from_utf8(output.stdout).map_err(|_| format!("{} printed bytes that are not UTF-8", program.display()))
}
