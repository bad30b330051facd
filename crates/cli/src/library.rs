//! Finds the library that `weft run` injects.

use std::fmt::Display;
use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use weftline_session::LIBRARY_VARIABLE;

use crate::usage::Usage;

/// File name of the library.
pub(crate) const LIBRARY: &str = "libweft_preload.so";

/// Finds the library: the variable, beside the command (a build tree), or `../lib/weftline` (an installation).
pub(crate) fn find() -> anyhow::Result<PathBuf> {
    if let Some(given) = std::env::var_os(LIBRARY_VARIABLE).filter(|value| !value.is_empty()) {
        let path = PathBuf::from(given);
        // The loader would complain of it in every program.
        let found = path.canonicalize().and_then(|path| File::open(&path).map(|_| path));
        let wrong = |why: &dyn Display| {
            Usage::error(format!("{LIBRARY_VARIABLE} names {}, which cannot be used: {why}", path.display()))
        };
        return match found {
            Ok(found) if found.is_dir() => Err(wrong(&"it is a directory")),
            Ok(found) if has_separator(&found) => Err(wrong(&NO_SEPARATOR)),
            Ok(found) => Ok(found),
            Err(error) => Err(wrong(&error)),
        };
    }
    let command = std::env::current_exe().context("cannot find the directory of weft")?;
    let directory = command.parent().unwrap_or(&command);
    let places = [
        directory.join(LIBRARY),
        directory.join("../lib/weftline").join(LIBRARY),
        directory.join("../lib").join(LIBRARY),
    ];
    for place in &places {
        if let Ok(found) = place.canonicalize() {
            if has_separator(&found) {
                bail!("{}: {NO_SEPARATOR}; install weft elsewhere", found.display());
            }
            return Ok(found);
        }
    }
    bail!("{LIBRARY} is neither beside {} nor in ../lib/weftline; set {LIBRARY_VARIABLE}", command.display())
}

const NO_SEPARATOR: &str = "its path has a colon or a space, which LD_PRELOAD cannot express";

/// The loader splits LD_PRELOAD at both; there is no way to quote them.
fn has_separator(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().iter().any(|byte| matches!(byte, b':' | b' '))
}
