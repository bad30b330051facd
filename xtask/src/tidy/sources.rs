//! Rules about source text: modules have a header, files stay short, no unfinished code.

use super::split::split;
use super::{Finding, Source};
use crate::repo;

/// A file past this length was not decided by anybody; split it by what it is about.
const LONGEST_FILE: usize = 800;
/// The README is read in one sitting.
const LONGEST_README: usize = 120;

/// Code that must not be committed, as it looks with string contents removed.
const UNFINISHED: [&str; 3] = ["todo!(", "unimplemented!(", "#[ignore"];
/// Split here so that this file does not contain what it forbids.
const MARKER: &str = concat!("FIX", "ME");

/// Symbols that other programs can see: only the library that is meant to be seen exports any.
const EXPORTS: [&str; 2] = ["no_mangle", "export_name"];
/// Crates that may export, with how many attributes they may carry.
const EXPORTERS: [(&str, usize); 4] =
    [("crates/preload/", usize::MAX), ("crates/capi/", usize::MAX), ("crates/recorder/", 1), ("weave/", 2)];

pub(super) fn check() -> Result<Vec<Finding>, String> {
    let sources = Source::all()?;
    let mut findings: Vec<Finding> = sources.iter().flat_map(check_file).collect();
    findings.extend(check_exports(&sources));
    findings.extend(check_other_files()?);
    match repo::read(&repo::root().join("README.md")).map(|text| text.lines().count()) {
        Ok(lines) if lines <= LONGEST_README => {}
        Ok(lines) => findings.push(Finding::of("README.md", format!("{lines} lines, at most {LONGEST_README}"))),
        Err(message) => findings.push(Finding::of("README.md", message)),
    }
    Ok(findings)
}

fn check_file(source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !source.text.starts_with("//!") {
        findings.push(Finding::at(&source.path, 1, "a module opens with `//!`: what it is and how it relates"));
    }
    let length = source.text.lines().count();
    if length > LONGEST_FILE && !source.is_test() {
        findings.push(Finding::of(&source.path, format!("{length} lines, at most {LONGEST_FILE}")));
    }
    for (number, line) in (1..).zip(split(&source.text)) {
        if let Some(word) = UNFINISHED.iter().find(|word| line.code.contains(**word)) {
            findings.push(Finding::at(&source.path, number, format!("`{word}` must not be committed")));
        }
        if line.comment.contains(MARKER) {
            findings.push(Finding::at(&source.path, number, format!("{MARKER} must not be committed")));
        }
    }
    findings
}

fn check_exports(sources: &[Source]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut counts = [0; EXPORTERS.len()];
    for source in sources {
        for (number, line) in (1..).zip(split(&source.text)) {
            if !EXPORTS.iter().any(|word| line.code.contains(word)) {
                continue;
            }
            match EXPORTERS.iter().position(|(prefix, _)| source.path.starts_with(prefix)) {
                Some(exporter) if counts[exporter] < EXPORTERS[exporter].1 => counts[exporter] += 1,
                Some(exporter) => {
                    let most = EXPORTERS[exporter].1;
                    findings.push(Finding::at(
                        &source.path,
                        number,
                        format!("this crate exports at most {most} symbol(s)"),
                    ));
                }
                None => findings.push(Finding::at(&source.path, number, "this crate must not export symbols")),
            }
        }
    }
    findings
}

/// Scripts and C programs: only the marker is looked for.
fn check_other_files() -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for top in ["crates", "bench", "compat", "examples", "fuzz", "tools", "weave"] {
        for path in repo::files_below(&repo::root().join(top))? {
            let shown = repo::shown(&path);
            if ![".c", ".cc", ".cpp", ".h", ".hpp", ".py", ".sh", ".js", ".toml"].iter().any(|end| shown.ends_with(end))
            {
                continue;
            }
            for (number, line) in (1..).zip(repo::read(&path)?.lines()) {
                if line.contains(MARKER) {
                    findings.push(Finding::at(&shown, number, format!("{MARKER} must not be committed")));
                }
            }
        }
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::{LONGEST_FILE, MARKER, Source, check_exports, check_file};

    /// Checks one file with `text` at `path` and compares the places and messages found.
    fn check(path: &str, text: &str, expected: &[&str]) {
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        let mut findings = check_file(&source);
        findings.extend(check_exports(&[source]));
        let found: Vec<_> = findings.iter().map(|finding| format!("{}: {}", finding.place, finding.message)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_module_says_what_it_is() {
        check("crates/a/src/b.rs", "//! B.\n", &[]);
        check(
            "crates/a/src/b.rs",
            "fn b() {}\n",
            &["crates/a/src/b.rs:1: a module opens with `//!`: what it is and how it relates"],
        );
    }

    #[test]
    fn long_files_are_found_unless_they_are_tests() {
        let long = format!("//! Long.\n{}", "\n".repeat(LONGEST_FILE));
        check("crates/a/src/b.rs", &long, &["crates/a/src/b.rs: 801 lines, at most 800"]);
        check("crates/a/src/b/tests.rs", &long, &[]);
        check("crates/a/tests/b.rs", &long, &[]);
    }

    #[test]
    fn unfinished_code_is_found_in_code_only() {
        check("crates/a/src/b.rs", "//! B: no todo!() here.\nconst C: &str = \"todo!()\";\n", &[]);
        check(
            "crates/a/src/b.rs",
            "//! B.\nfn c() { todo!() }\n",
            &["crates/a/src/b.rs:2: `todo!(` must not be committed"],
        );
        let marked = format!("//! B.\n// {MARKER}\n");
        check("crates/a/src/b.rs", &marked, &[&format!("crates/a/src/b.rs:2: {MARKER} must not be committed")]);
    }

    #[test]
    fn exports_are_counted_per_crate() {
        let two = "//! B.\n#[unsafe(no_mangle)]\n#[unsafe(export_name = \"b\")]\n";
        check("crates/preload/src/b.rs", two, &[]);
        check("crates/recorder/src/b.rs", two, &["crates/recorder/src/b.rs:3: this crate exports at most 1 symbol(s)"]);
        check("weave/src/b.rs", two, &[]);
        let one = "//! B.\n#[no_mangle]\n";
        check("crates/drain/src/b.rs", one, &["crates/drain/src/b.rs:2: this crate must not export symbols"]);
    }
}
