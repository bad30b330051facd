//! Puts the sources of the plugin into the library, which builds it on machines that have no checkout.

use std::path::{Path, PathBuf};

/// The plugin's sources: a workspace of its own beside `crates`.
const WEAVE: &str = "../../weave";
/// What of it builds the plugin.
const PARTS: [&str; 5] = ["Cargo.toml", "Cargo.lock", "build.rs", "shim", "src"];

/// Writes a Rust expression with the name and the text of every source.
fn main() {
    let root = std::fs::canonicalize(WEAVE).unwrap_or_default();
    let mut files = Vec::new();
    for part in PARTS {
        println!("cargo::rerun-if-changed={WEAVE}/{part}");
        gather(&root.join(part), &mut files);
    }
    files.sort();
    let list: String = files
        .iter()
        .filter_map(|file| Some((file.strip_prefix(&root).ok()?, file)))
        .map(|(name, file)| {
            format!("({:?}, include_str!({:?})),\n", name.display().to_string(), file.display().to_string())
        })
        .collect();
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).expect("cargo sets OUT_DIR");
    std::fs::write(out.join("weave_sources.rs"), format!("&[\n{list}]\n")).expect("OUT_DIR can be written");
}

fn gather(path: &Path, into: &mut Vec<PathBuf>) {
    match std::fs::read_dir(path) {
        Ok(entries) => entries.flatten().for_each(|entry| gather(&entry.path(), into)),
        Err(_) if path.is_file() => into.push(path.to_owned()),
        Err(_) => {}
    }
}
