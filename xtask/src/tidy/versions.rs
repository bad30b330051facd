//! One version: files that cannot take it from the workspace's manifest say the same.

use super::Finding;
use crate::repo;

/// Files with a copy of the version, and what stands before each copy. A line counts when it starts so.
const COPIES: [(&str, &[&str]); 4] = [
    ("CITATION.cff", &["version: "]),
    ("weave/Cargo.toml", &["version = \""]),
    ("compat/dftracer/pyproject.toml", &["version = \"", "dependencies = [\"weftline=="]),
    ("compat/perfflowaspect/pyproject.toml", &["version = \"", "dependencies = [\"weftline=="]),
];

pub(super) fn check() -> Result<Vec<Finding>, String> {
    let read = |name: &str| repo::read(&repo::root().join(name));
    let manifest = read("Cargo.toml")?;
    let version = stated(&manifest, "version = \"").map(|(_, version)| version).ok_or("Cargo.toml has no version")?;
    let mut findings = Vec::new();
    for (name, starts) in COPIES {
        findings.extend(compare(name, &read(name)?, starts, version));
    }
    Ok(findings)
}

fn compare(name: &str, text: &str, starts: &[&str], version: &str) -> Vec<Finding> {
    let differs = |start: &&str| match stated(text, start) {
        Some((_, found)) if found == version => None,
        Some((line, found)) => Some(Finding::at(name, line, format!("version {found}, but Cargo.toml has {version}"))),
        None => Some(Finding::of(name, format!("no line starts with `{start}`: which version is it?"))),
    };
    starts.iter().filter_map(differs).collect()
}

/// Line number and version of the first line that starts so.
fn stated<'a>(text: &'a str, start: &str) -> Option<(usize, &'a str)> {
    (1..).zip(text.lines()).find_map(|(number, line)| {
        let rest = line.strip_prefix(start)?;
        Some((number, rest.split('"').next().unwrap_or(rest).trim()))
    })
}

#[cfg(test)]
mod tests {
    use super::compare;

    fn check(text: &str, starts: &[&str], expected: &[&str]) {
        let found: Vec<_> = compare("f", text, starts, "0.2.0")
            .into_iter()
            .map(|finding| format!("{}: {}", finding.place, finding.message))
            .collect();
        assert_eq!(found, expected, "in {text:?}");
    }

    #[test]
    fn copies_of_the_version_are_compared() {
        let starts = &["version = \"", "dependencies = [\"weftline=="];
        check("a: b\nversion: 0.2.0\n", &["version: "], &[]);
        check("a: b\nversion: 0.1.0\n", &["version: "], &["f:2: version 0.1.0, but Cargo.toml has 0.2.0"]);
        check("version = \"0.2.0\"\ndependencies = [\"weftline==0.2.0\"]\n", starts, &[]);
        check(
            "version = \"0.2.0\"\ndependencies = [\"weftline==0.1.0\"]\n",
            starts,
            &["f:2: version 0.1.0, but Cargo.toml has 0.2.0"],
        );
        check("cff-version: 1.2.0\n", &["version: "], &["f: no line starts with `version: `: which version is it?"]);
    }
}
