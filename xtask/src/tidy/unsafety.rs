//! `unsafe` lives where ARCHITECTURE.md says, with a reason beside every use; all other crates forbid it.

use super::split::{Line, split};
use super::{Finding, Source};
use crate::repo;

const HEADING: &str = "## Where unsafe lives";
/// A SAFETY note may stand above the statement that contains the block, not only above the block's own line.
const CODE_LINES_BETWEEN: usize = 4;

pub(super) fn check() -> Result<Vec<Finding>, String> {
    let places = allowed_places(&repo::read(&repo::root().join("ARCHITECTURE.md"))?)?;
    let sources = Source::all()?;
    let mut findings: Vec<Finding> = sources.iter().flat_map(|source| check_file(source, &places)).collect();
    findings.extend(check_roots(&sources, &places));
    Ok(findings)
}

/// Path prefixes named in the first column of the table. A cell may name several: `preload`, `drain/src/map.rs`.
fn allowed_places(architecture: &str) -> Result<Vec<String>, String> {
    let section =
        architecture.split_once(HEADING).ok_or_else(|| format!("ARCHITECTURE.md has no heading `{HEADING}`"))?.1;
    let places: Vec<String> = section
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.trim().strip_prefix('|')?.split('|').next())
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .map(|name| {
            let name = name.trim_start_matches("crates/").trim_start_matches("weftline-").trim_end_matches('/');
            // A row names a crate without its directory; only the weaver lies beside `crates/`.
            if name.starts_with("weave") { name.to_owned() } else { format!("crates/{name}") }
        })
        .collect();
    if places.is_empty() {
        return Err(format!("no row under `{HEADING}` names a crate in backticks"));
    }
    Ok(places)
}

fn is_allowed(path: &str, places: &[String]) -> bool {
    places
        .iter()
        .any(|place| path.strip_prefix(place.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')))
}

fn check_file(source: &Source, places: &[String]) -> Vec<Finding> {
    let lines = split(&source.text);
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let mut uses = unsafe_uses(&line.code).peekable();
        if uses.peek().is_none() {
            continue;
        }
        if !is_allowed(&source.path, places) {
            let message = format!("`unsafe` outside the places of ARCHITECTURE.md, \"{}\"", &HEADING[3..]);
            findings.push(Finding::at(&source.path, index + 1, message));
        } else if uses.any(|after| needs_note(&after)) && !has_note(&lines, index) {
            findings.push(Finding::at(
                &source.path,
                index + 1,
                "`unsafe` without a `// SAFETY:` note that names the fact",
            ));
        }
    }
    findings
}

/// What follows each keyword `unsafe` of a line.
fn unsafe_uses(code: &str) -> impl Iterator<Item = String> + '_ {
    const WORD: &str = "unsafe";
    let part_of_name = |character: char| character.is_alphanumeric() || character == '_';
    code.match_indices(WORD).filter_map(move |(at, _)| {
        let after = &code[at + WORD.len()..];
        let whole = !code[..at].ends_with(part_of_name) && !after.starts_with(part_of_name);
        whole.then(|| after.trim_start().to_owned())
    })
}

/// Blocks and impls assert something; declarations (`unsafe fn`, `unsafe extern`) and attributes only ask for it.
fn needs_note(after: &str) -> bool {
    after.starts_with('{') || after.starts_with("impl")
}

fn has_note(lines: &[Line], index: usize) -> bool {
    let noted = |line: &Line| line.comment.contains("SAFETY");
    if noted(&lines[index]) || lines.get(index + 1).is_some_and(|next| next.is_blank_code() && noted(next)) {
        return true;
    }
    let mut code_lines = 0;
    for line in lines[..index].iter().rev() {
        if noted(line) {
            return true;
        }
        if !line.is_blank_code() {
            code_lines += 1;
        }
        if code_lines > CODE_LINES_BETWEEN {
            return false;
        }
    }
    false
}

/// A crate without a row forbids `unsafe` in each of its roots.
fn check_roots(sources: &[Source], places: &[String]) -> Vec<Finding> {
    let is_root = |path: &str| path.ends_with("/src/lib.rs") || path.ends_with("/src/main.rs");
    let has_row = |path: &str| {
        let directory = path.split("/src/").next().unwrap_or(path);
        places.iter().any(|place| place == directory || place.starts_with(&format!("{directory}/")))
    };
    sources
        .iter()
        .filter(|source| is_root(&source.path) && !has_row(&source.path))
        .filter(|source| !split(&source.text).iter().any(|line| line.code.contains("#![forbid(unsafe_code)]")))
        .map(|source| Finding::at(&source.path, 1, "a crate without `unsafe` says `#![forbid(unsafe_code)]`"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Source, allowed_places, check_file, check_roots};

    const ARCHITECTURE: &str = "# A\n\n## Where unsafe lives\n\n| place | why |\n|---|---|\n\
        | `preload` | hooks |\n| `weave/src/llvm.rs` | LLVM |\n| `crates/drain/src/map.rs`, `weftline-recorder` | memory |\n\n## Next\n| `cli` | no |\n";

    /// Checks one file at `path` and compares the lines found.
    fn check(path: &str, text: &str, expected: &[&str]) {
        let places = allowed_places(ARCHITECTURE).expect("the table parses");
        let source = Source { path: path.to_owned(), text: text.to_owned() };
        let mut findings = check_file(&source, &places);
        findings.extend(check_roots(&[source], &places));
        let found: Vec<_> = findings.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(found, expected, "in {text:?}");
    }

    #[test]
    fn the_table_is_read_up_to_the_next_heading() {
        let places = allowed_places(ARCHITECTURE).expect("the table parses");
        assert_eq!(places, ["crates/preload", "weave/src/llvm.rs", "crates/drain/src/map.rs", "crates/recorder"]);
        assert!(allowed_places("# no table").is_err());
    }

    #[test]
    fn only_listed_places_may_use_it() {
        let text = "// SAFETY: it holds.\nunsafe { f() }";
        check("crates/preload/src/a.rs", text, &[]);
        check("crates/drain/src/map.rs", text, &[]);
        check("crates/drain/src/other.rs", text, &["crates/drain/src/other.rs:2"]);
        check("weave/src/llvm.rs", text, &[]);
        check("weave/src/name.rs", text, &["weave/src/name.rs:2"]);
        check("crates/preloaded/src/a.rs", text, &["crates/preloaded/src/a.rs:2"]);
        check("crates/cli/src/a.rs", "deny(unsafe_op_in_unsafe_fn); \"unsafe\"; // unsafe", &[]);
    }

    #[test]
    fn blocks_and_impls_need_a_note() {
        let path = "crates/preload/src/a.rs";
        check(path, "unsafe { f() }", &["crates/preload/src/a.rs:1"]);
        check(path, "unsafe impl Sync for A {}", &["crates/preload/src/a.rs:1"]);
        check(path, "unsafe extern \"C\" fn f() {}", &[]);
        check(path, "#[unsafe(naked)]", &[]);
        check(path, "unsafe {\n    // SAFETY: inside.\n    f()\n}", &[]);
        check(path, "// SAFETY: above.\nlet a =\n    f(\n        unsafe { g() });", &[]);
        check(
            path,
            "// SAFETY: too far.\na();\nb();\nc();\nd();\ne();\nunsafe { g() }",
            &["crates/preload/src/a.rs:7"],
        );
    }

    #[test]
    fn other_crates_forbid_it() {
        check("crates/cli/src/main.rs", "//! C.\n#![forbid(unsafe_code)]\n", &[]);
        check("crates/cli/src/main.rs", "//! C.\n", &["crates/cli/src/main.rs:1"]);
        check("crates/drain/src/lib.rs", "//! D.\n", &[]);
    }
}
