//! What a crate may pull in: whoever traces a program must not carry an analysis stack into it.

use super::Finding;
use crate::repo;

/// Package, and families of crates it must never reach. A family is a crate name and everything that starts with it.
const FORBIDDEN: [(&str, &[&str]); 10] = [
    ("weftline-format", HEAVY),
    ("weftline-recorder", HEAVY),
    ("weftline-preload", HEAVY),
    ("weftline-collect", HEAVY),
    ("weftline-drain", HEAVY),
    ("weftline-standalone", HEAVY),
    ("weftline", HEAVY),
    ("weftline-capi", HEAVY),
    ("weftline-python", HEAVY),
    ("weftline-cli", &["datafusion"]),
];
const HEAVY: &[&str] = &["arrow", "datafusion", "tokio", "clap"];

pub(super) fn check() -> Result<Vec<Finding>, String> {
    let mut findings = Vec::new();
    for (package, families) in FORBIDDEN {
        let tree = repo::output(
            env!("CARGO"),
            &["tree", "--quiet", "--package", package, "--edges", "normal", "--prefix", "none", "--format", "{p}"],
        )?;
        findings.extend(
            forbidden_in(&tree, families).map(|reached| {
                Finding::of(package, format!("reaches {reached}; see the invariants of ARCHITECTURE.md"))
            }),
        );
    }
    Ok(findings)
}

/// The crates of a `cargo tree` listing that belong to one of `families`.
fn forbidden_in<'a>(tree: &'a str, families: &'a [&str]) -> impl Iterator<Item = &'a str> {
    tree.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| {
        families.iter().any(|family| {
            name == family || name.starts_with(&format!("{family}-")) || name.starts_with(&format!("{family}_"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::{HEAVY, forbidden_in};

    fn check(tree: &str, expected: &[&str]) {
        assert_eq!(forbidden_in(tree, HEAVY).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn families_are_found_and_namesakes_are_not() {
        check("weftline-format v0.1.0 (/a)\nlibc v0.2.1\narrowhead v1.0.0", &[]);
        check("a v1\narrow-array v59.0.0\ntokio v1\nclap_derive v4", &["arrow-array", "tokio", "clap_derive"]);
    }
}
