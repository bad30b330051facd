//! Puts the revision into `weft --version`.

use std::process::Command;

fn main() {
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
