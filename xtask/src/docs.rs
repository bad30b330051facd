//! Documents that mirror code: the release build prints them, and this chore writes them to `docs/` or compares them.
//!
//! The generator is the product itself (`weft docs <name>`), so a document cannot describe another program. The C header is made
//! from source (`header`); `docs/schema.md` is checked by the tests of `weftline-sql`, which alone can print it.

use std::fs;
use std::path::PathBuf;

use crate::{header, repo};

/// Each is `weft docs NAME` and `docs/NAME.md`.
const GENERATED: [&str; 6] = ["hooks", "env", "cli", "findings", "formats", "masking"];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Write,
    Check,
}

pub(crate) fn run(mode: Mode) -> Result<(), String> {
    let weft = repo::release_dir().join("weft");
    if !weft.exists() {
        return Err(format!("{} is missing; `make build` makes it", repo::shown(&weft)));
    }
    let mut documents: Vec<(PathBuf, String)> = vec![header::expected()?];
    for name in GENERATED {
        let path = repo::root().join("docs").join(format!("{name}.md"));
        documents.push((path, repo::output(&weft, &["docs", name])?));
    }
    let mut stale = Vec::new();
    for (path, expected) in documents {
        let present = fs::read_to_string(&path).unwrap_or_default();
        if present == expected {
            continue;
        }
        match mode {
            Mode::Write => {
                fs::write(&path, &expected).map_err(|error| format!("cannot write {}: {error}", repo::shown(&path)))?;
                println!("wrote {}", repo::shown(&path));
            }
            Mode::Check => stale.push(format!("{}: {}", repo::shown(&path), first_difference(&present, &expected))),
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    Err(format!("generated documents are stale; run `cargo xtask docs`\n  {}", stale.join("\n  ")))
}

fn first_difference(present: &str, expected: &str) -> String {
    let (mut have, mut want) = (present.lines(), expected.lines());
    for number in 1.. {
        match (have.next(), want.next()) {
            (None, None) => break,
            (left, right) if left == right => {}
            (left, right) => {
                return format!("line {number} is {:?}, should be {:?}", left.unwrap_or(""), right.unwrap_or(""));
            }
        }
    }
    "line ends differ".to_owned()
}

#[cfg(test)]
mod tests {
    use super::first_difference;

    fn check(present: &str, expected: &str, message: &str) {
        assert_eq!(first_difference(present, expected), message);
    }

    #[test]
    fn the_first_difference_is_named() {
        check("a\nb\n", "a\nc\n", r#"line 2 is "b", should be "c""#);
        check("", "a\n", r#"line 1 is "", should be "a""#);
        check("a", "a\n", "line ends differ");
    }
}
