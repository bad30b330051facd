//! Puts the revision into `weft --version`, and the sources of the weaver's plugin into `weft weave --setup`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The plugin's sources: a workspace of its own beside `crates`.
const WEAVE: &str = "../../weave";
/// What of it builds the plugin.
const PARTS: [&str; 5] = ["Cargo.toml", "Cargo.lock", "build.rs", "shim", "src"];

fn main() {
    revision();
    weave_sources();
}

/// A Rust expression with the name and the text of every source.
fn weave_sources() {
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

fn revision() {
    let revision = Command::new("git")
        .args(["rev-parse", "--short=9", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .and_then(|output| String::from_utf8(output.stdout).ok());
    let version = env!("CARGO_PKG_VERSION");
    match revision {
        Some(revision) => println!("cargo::rustc-env=WEFT_VERSION={version} ({})", revision.trim()),
        None => println!("cargo::rustc-env=WEFT_VERSION={version}"),
    }
    // HEAD only names the branch; the log changes with every commit.
    println!("cargo::rerun-if-changed=../../.git/HEAD");
    println!("cargo::rerun-if-changed=../../.git/logs/HEAD");
}
