//! Checks dependencies: which crate may use which, by the table of ARCHITECTURE.md, and which external crates a crate must never reach.
//!
//! Both hold for every package of the checkout: those of the workspace, and `weave`, `fuzz` and the benchmarks beside it.

mod rooms;

use std::collections::BTreeMap;

use super::Finding;
use crate::repo;
use rooms::{Package, Users};

/// Whoever traces a program must not carry an analysis stack into it.
const HEAVY: &[&str] = &["arrow", "datafusion", "tokio", "clap"];
/// A release build of DataFusion takes a quarter of an hour and 119 MB: only `weft-sql` pays for it.
const ENGINE: &[&str] = &["datafusion"];
/// Pools of threads: not in a traced process.
const POOLS: &[&str] = &["rayon", "crossbeam"];

/// Where a package lies, and the families of crates that it must never reach. A family is a crate name and everything that starts with it. Packages
/// below `crates/` that have no line here may reach everything but [`ENGINE`].
const FORBIDDEN: [(&str, &[&[&str]]); 22] = [
    ("crates/format", &[HEAVY, POOLS]),
    ("crates/recorder", &[HEAVY, POOLS]),
    ("crates/preload", &[HEAVY, POOLS]),
    ("crates/collect", &[HEAVY, POOLS]),
    ("crates/drain", &[HEAVY, POOLS]),
    ("crates/session", &[HEAVY, POOLS]),
    ("crates/dropin", &[HEAVY, POOLS]),
    ("crates/annotations", &[HEAVY, POOLS]),
    ("crates/macros", &[HEAVY, POOLS]),
    ("crates/capi", &[HEAVY, POOLS]),
    ("crates/capi/dftracer", &[HEAVY, POOLS]),
    ("crates/capi/perfflow", &[HEAVY, POOLS]),
    ("crates/python", &[HEAVY, POOLS]),
    ("crates/testkit", &[HEAVY, POOLS]),
    ("crates/unify", &[HEAVY, POOLS]),
    ("crates/weaving", &[HEAVY, POOLS]),
    ("crates/index", &[ENGINE, &["clap", "tokio"]]),
    ("crates/analysis", &[ENGINE, &["clap", "tokio"]]),
    ("crates/sql", &[]),
    ("xtask", &[HEAVY, POOLS]),
    ("weave", &[HEAVY, POOLS]),
    ("fuzz", &[HEAVY, POOLS]),
];

/// Packages that everybody may use because they need nobody.
const INDEPENDENT: [&str; 1] = ["crates/calls"];

pub(super) fn check() -> Result<Vec<Finding>, String> {
    let packages = rooms::packages()?;
    let users = rooms::table(&repo::read(&repo::root().join("ARCHITECTURE.md"))?)?;
    let mut findings = edges(&packages, &users);
    let known = |place: &str| packages.iter().any(|package| package.place == place);
    let gone = FORBIDDEN.iter().filter(|(place, _)| !known(place));
    findings.extend(gone.map(|(place, _)| Finding::of(*place, "is not there; take it out of tidy's rules")));
    for package in &packages {
        let families = FORBIDDEN.iter().find(|(place, _)| *place == package.place);
        let families: Vec<&str> = families.map_or(&[ENGINE][..], |(_, families)| families).concat();
        let reached = reached(package)?;
        findings.extend(forbidden_in(&reached, &families).map(|reached| {
            Finding::of(&package.place, format!("reaches {reached}; see the invariants of ARCHITECTURE.md"))
        }));
        if INDEPENDENT.contains(&package.place.as_str()) {
            let needed = reached.lines().skip(1);
            findings.extend(
                needed.map(|needed| Finding::of(&package.place, format!("reaches {needed}; it may depend on nothing"))),
            );
        }
    }
    Ok(findings)
}

/// Uses that the table does not allow, packages without a row, and rows without a package.
fn edges(packages: &[Package], users: &BTreeMap<String, Users>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in packages {
        if !users.contains_key(package.row()) {
            findings.push(Finding::of(&package.place, "has no row in the table \"The crates\" of ARCHITECTURE.md"));
        }
        let used = packages.iter().filter(|other| package.dependencies.contains(&other.name));
        for used in used.filter(|used| users.get(used.row()).is_some_and(|users| !users.allow(package.row()))) {
            let message = format!("uses {}, which ARCHITECTURE.md does not allow it to", used.row());
            findings.push(Finding::of(&package.place, message));
        }
    }
    for row in users.keys().filter(|row| !packages.iter().any(|package| package.row() == *row)) {
        findings.push(Finding::of("ARCHITECTURE.md", format!("has a row for {row}, which is no package")));
    }
    findings
}

/// The names of all packages that one reaches, itself included, one per line.
fn reached(package: &Package) -> Result<String, String> {
    if package.in_workspace {
        let edges = ["tree", "--quiet", "--edges", "normal", "--prefix", "none", "--format", "{p}", "--package"];
        return repo::output(env!("CARGO"), &[&edges[..], &[package.name.as_str()]].concat());
    }
    // Workspaces of their own: what is locked is more than what is reached, and needs no download.
    let lock = repo::read(&repo::root().join(&package.place).join("Cargo.lock"))?;
    let names = lock.lines().filter_map(|line| line.strip_prefix("name = \"")?.strip_suffix('"'));
    Ok(names.collect::<Vec<_>>().join("\n"))
}

/// The crates of a list that belong to one of `families`.
fn forbidden_in<'a>(tree: &'a str, families: &'a [&str]) -> impl Iterator<Item = &'a str> {
    tree.lines().filter_map(|line| line.split_whitespace().next()).filter(|name| {
        families.iter().any(|family| {
            name == family || name.starts_with(&format!("{family}-")) || name.starts_with(&format!("{family}_"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_are_found_and_namesakes_are_not() {
        let check = |tree: &str, expected: &[&str]| {
            assert_eq!(forbidden_in(tree, HEAVY).collect::<Vec<_>>(), expected);
        };
        check("weftline-format v0.1.0 (/a)\nlibc v0.2.1\narrowhead v1.0.0", &[]);
        check("a v1\narrow-array v59.0.0\ntokio v1\nclap_derive v4", &["arrow-array", "tokio", "clap_derive"]);
    }

    #[test]
    fn uses_are_those_of_the_table() {
        let package = |place: &str, dependencies: &[&str]| {
            let name = format!("weftline-{}", place.trim_start_matches("crates/"));
            let dependencies = dependencies.iter().map(|name| (*name).to_owned()).collect();
            Package { place: place.to_owned(), name, dependencies, in_workspace: true }
        };
        let packages =
            [package("crates/a", &[]), package("crates/b", &["weftline-a"]), package("weave", &["weftline-a"])];
        let check = |table: &str, expected: &[&str]| {
            let users = rooms::table(&format!("## The crates\n\n{table}\n## More\n| `z` | | `a` |\n")).expect("rows");
            let places: Vec<String> = edges(&packages, &users).into_iter().map(|finding| finding.place).collect();
            assert_eq!(places, expected, "{table}");
        };
        check("| `a` | job | everything |\n| `b` | job | nobody |\n| `weave` | job | nobody: a plugin |", &[]);
        check("| `a` | job | `b` |\n| `b` | job | nobody |\n| `weave` | job | nobody |", &["weave"]);
        check("| `a` | job | `b`, `weave` |\n| `b` | job | nobody |", &["weave"]);
        check(
            "| `a` | job | everything |\n| `b`, `weave` | job | nobody |\n| `c` | job | nobody |",
            &["ARCHITECTURE.md"],
        );
    }
}
