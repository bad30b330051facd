//! The meaning of a call is defined once, in `calls`: no other code compares a string with the name of a hooked call.

use std::collections::BTreeSet;

use super::split::split;
use super::{Finding, Source};
use crate::repo;

/// The one place that knows calls by their names; what is only there for tests, which have an oracle of their own; and the reader of strace's text,
/// which follows what system calls do to descriptors: nobody else needs to know that.
const HOMES: [&str; 5] =
    ["crates/calls/", "crates/testkit/", "crates/suite/", "crates/import/src/formats/strace/", "xtask/"];
/// Words that are also the name of a call but mean something else there.
const OTHER_WORDS: [(&str, &str, &str); 5] = [
    ("crates/import/src/formats/darshan/counters.rs", "read", "a direction of segments"),
    ("crates/import/src/formats/darshan/counters.rs", "write", "a direction of segments"),
    ("crates/import/src/formats/darshan/segments.rs", "write", "a direction of segments"),
    ("crates/sql/src/tables/event_rows.rs", "system", "a table"),
    ("crates/sql/src/tables/process_rows.rs", "thread_name", "a metadata event"),
];

pub(super) fn check() -> Result<Vec<Finding>, String> {
    let document = repo::read(&repo::root().join("docs/hooks.md"))?;
    let names = names_in(&document);
    if names.is_empty() {
        return Err("docs/hooks.md has no table of calls".to_owned());
    }
    let sources = Source::all()?;
    let mut findings: Vec<Finding> = sources.iter().flat_map(|source| check_file(source, &names)).collect();
    for (path, word, _) in OTHER_WORDS {
        let is_used = |source: &Source| source.path == path && compared(&source.text).any(|(_, found)| found == word);
        if !sources.iter().any(is_used) {
            findings.push(Finding::of(path, format!("does not compare `{word}`; take it out of tidy's rules")));
        }
    }
    Ok(findings)
}

/// The first column of the generated table.
fn names_in(document: &str) -> BTreeSet<&str> {
    document.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(name, _)| name).collect()
}

fn check_file(source: &Source, names: &BTreeSet<&str>) -> Vec<Finding> {
    let is_production = !source.is_test() && !source.path.contains("/examples/");
    if !is_production || HOMES.iter().any(|home| source.path.starts_with(home)) {
        return Vec::new();
    }
    let is_other = |word: &str| OTHER_WORDS.iter().any(|(path, other, _)| (*path, *other) == (&source.path, word));
    compared(production(&source.text))
        .filter(|(_, word)| names.contains(word) && !is_other(word))
        .map(|(line, word)| {
            let message = format!("compares a text with the call `{word}`; ask `weftline_calls` what it means");
            Finding::at(&source.path, line, message)
        })
        .collect()
}

/// A file without the tests at its end.
fn production(text: &str) -> &str {
    text.find("\n#[cfg(test)]\nmod ").map_or(text, |end| &text[..=end])
}

/// Literals that are patterns of a `match` or `matches!`, or stand beside `==` or `!=`, with their lines.
fn compared(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines().zip(split(text))).flat_map(|(number, (line, parts))| {
        // What is behind the code is a comment.
        let code = line.get(..line.len() - parts.comment.len()).unwrap_or(line);
        let mut places: Vec<(usize, &str)> = Vec::new();
        let mut rest = code;
        while let Some((before, literal)) = rest.split_once('"') {
            let Some((word, behind)) = literal.split_once('"') else { break };
            let (before, after) = (before.trim_end_matches('b').trim_end(), behind.trim_start());
            let is_pattern = after.starts_with("=>")
                || after.starts_with('|') && !after.starts_with("||")
                || before.ends_with('|') && !before.ends_with("||")
                || code[..code.len() - literal.len()].contains("matches!(");
            let is_operand = ["==", "!="].iter().any(|sign| before.ends_with(sign) || after.starts_with(sign));
            if is_pattern || is_operand {
                places.push((number, word));
            }
            rest = behind;
        }
        places
    })
}

#[cfg(test)]
mod tests {
    use super::{Source, check_file, names_in};

    /// Checks one file and compares the lines and words found.
    fn check(path: &str, text: &str, expected: &[&str]) {
        let names =
            names_in("| call | known as |\n|---|---|\n| `read` |  |\n| `pread64` | `pread` |\n| `system` | |\n");
        let findings = check_file(&Source { path: path.to_owned(), text: text.to_owned() }, &names);
        let found: Vec<_> = findings.iter().map(|one| format!("{}: {}", one.place, one.message)).collect();
        let expected: Vec<_> = expected
            .iter()
            .map(|place| {
                let (line, word) = place.split_once(' ').expect("a line and a word");
                format!("{path}:{line}: compares a text with the call `{word}`; ask `weftline_calls` what it means")
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn names_of_calls_are_compared_in_one_place_only() {
        let arms = "match name {\n    \"read\" => 1,\n    \"other\" | \"pread64\" => 2,\n    _ => 3,\n}\n";
        check("crates/a/src/b.rs", arms, &["2 read", "3 pread64"]);
        check("crates/calls/src/b.rs", arms, &[]);
        check("crates/a/tests/b.rs", arms, &[]);
        check("crates/a/examples/b.rs", arms, &[]);
        check("crates/a/src/b.rs", &format!("fn f() {{}}\n\n#[cfg(test)]\nmod tests {{\n{arms}}}\n"), &[]);
        check(
            "crates/a/src/b.rs",
            "a == \"read\" || b\"read\" != c && matches!(d, \"read\")\n",
            &["1 read", "1 read", "1 read"],
        );
        check("crates/a/src/b.rs", "if matches!(name, b\"read\") {}\nname != b\"read\";\n", &["1 read", "2 read"]);
    }

    #[test]
    fn names_that_are_not_compared_are_fine() {
        check("crates/a/src/b.rs", "call(\"read\"); // == \"read\"\nlet x = is(\"read\") || y;\n", &[]);
        check("crates/sql/src/tables/event_rows.rs", "\"system\" => 1,\n", &[]);
    }
}
