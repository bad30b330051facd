//! The rules of ARCHITECTURE.md that a machine can check, one module per kind of rule.
//!
//! A rule reads the tree and returns what it found; nothing stops at the first finding, so one run shows all of them.

mod calls;
mod dependencies;
mod features;
mod library;
mod sources;
mod split;
mod unsafety;
mod variables;
mod versions;

use crate::repo;

/// One broken rule: where, and what to do about it.
pub(crate) struct Finding {
    place: String,
    message: String,
}

impl Finding {
    fn at(file: &str, line: usize, message: impl Into<String>) -> Self {
        Self { place: format!("{file}:{line}"), message: message.into() }
    }

    fn of(place: impl Into<String>, message: impl Into<String>) -> Self {
        Self { place: place.into(), message: message.into() }
    }
}

type Rule = fn() -> Result<Vec<Finding>, String>;

const RULES: [(&str, Rule); 8] = [
    ("sources", sources::check),
    ("unsafe code", unsafety::check),
    ("dependencies", dependencies::check),
    ("calls by name", calls::check),
    ("one feature set", features::check),
    ("environment variables", variables::check),
    ("versions", versions::check),
    ("the injected library", library::check),
];

pub(crate) fn run() -> Result<(), String> {
    let mut broken = 0;
    for (name, rule) in RULES {
        match rule() {
            Ok(findings) if findings.is_empty() => println!("tidy: {name}: ok"),
            Ok(findings) => {
                broken += findings.len();
                for Finding { place, message } in findings {
                    eprintln!("tidy: {place}: {message}");
                }
            }
            Err(message) => {
                broken += 1;
                eprintln!("tidy: {name}: {message}");
            }
        }
    }
    if broken == 0 { Ok(()) } else { Err(format!("tidy: {broken} finding(s)")) }
}

/// Directories with Rust sources: the workspace, and the workspaces beside it that need LLVM, another toolchain, or what is only there to be measured.
const RUST_TOPS: [&str; 5] = ["crates", "xtask", "weave", "fuzz", "bench"];

/// A Rust file of the project, as the source rules see it.
struct Source {
    /// Relative to the root, with `/`.
    path: String,
    text: String,
}

impl Source {
    /// All Rust files that cargo compiles here: modules, tests, benches, build scripts, fuzz targets.
    fn all() -> Result<Vec<Self>, String> {
        let root = repo::root();
        let mut sources = Vec::new();
        for top in RUST_TOPS {
            for path in repo::files_below(&root.join(top))? {
                let shown = repo::shown(&path);
                if shown.ends_with(".rs") && !is_fixture(&shown) {
                    sources.push(Self { text: repo::read(&path)?, path: shown });
                }
            }
        }
        Ok(sources)
    }

    /// Test code may be long: it is data.
    fn is_test(&self) -> bool {
        self.path.contains("/tests/") || self.path.ends_with("/tests.rs")
    }
}

/// Programs that tests compile and trace; they are input, not part of the workspace.
fn is_fixture(path: &str) -> bool {
    path.contains("/fixtures/") || path.contains("/programs/")
}
