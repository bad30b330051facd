//! Where the library lies that `weft run` injects.

use std::path::PathBuf;

use anyhow::{Context, bail};
use weftline_standalone::LIBRARY_VARIABLE;

/// File name of the library.
pub(crate) const LIBRARY: &str = "libweft_preload.so";

/// Finds the library: the variable, beside the command (a build tree), or `../lib/weftline` (an installation).
pub(crate) fn find() -> anyhow::Result<PathBuf> {
    if let Some(given) = std::env::var_os(LIBRARY_VARIABLE).filter(|value| !value.is_empty()) {
        let path = PathBuf::from(given);
        return path
            .canonicalize()
            .with_context(|| format!("{LIBRARY_VARIABLE} names {}, which cannot be used", path.display()));
    }
    let command = std::env::current_exe().context("cannot find out where weft itself lies")?;
    let directory = command.parent().unwrap_or(&command);
    let places = [
        directory.join(LIBRARY),
        directory.join("../lib/weftline").join(LIBRARY),
        directory.join("../lib").join(LIBRARY),
    ];
    for place in &places {
        if let Ok(found) = place.canonicalize() {
            // The loader splits LD_PRELOAD at both; there is no way to quote them.
            if found.as_os_str().as_encoded_bytes().iter().any(|byte| matches!(byte, b':' | b' ')) {
                bail!(
                    "{} has a colon or a space in its path, which LD_PRELOAD cannot express; install weft elsewhere",
                    found.display()
                );
            }
            return Ok(found);
        }
    }
    bail!("{LIBRARY} is neither beside {} nor in ../lib/weftline; set {LIBRARY_VARIABLE}", command.display())
}
