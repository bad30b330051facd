//! One feature set: a crate that several products share has the same features in all of them, so that it is built once.
//!
//! Cargo unifies the features of the packages that one command builds, and each product has its own command. A feature that only one of them
//! enables would build the crate, and everything above it, once more. `crates/unify` names such features; this rule says which are missing there.

mod tree;

use std::collections::{BTreeMap, BTreeSet};

use self::tree::Tree;
use super::Finding;
use crate::repo;

/// Where the features are named.
const UNIFY: &str = "crates/unify/Cargo.toml";
/// The script that knows the product's packages.
const BUILD: &str = "tools/build.sh";
/// The selection that has everything.
const TESTS: &str = "tests";

/// Crates that may be built twice.
const ALLOWED: [(&str, &str); 2] = [
    ("arrow-ipc", "DataFusion asks for compression of IPC, which `weft` does not use"),
    ("parquet", "DataFusion asks for an async reader and all codecs; `weft` must not pay for them"),
];

/// A feature set as `cargo tree` prints it. A crate has two in one build when a build script or macro needs fewer features than the program.
type Variants = BTreeSet<String>;

/// What one command builds: third-party packages (name and version) with their feature sets.
struct Selection {
    name: &'static str,
    packages: BTreeMap<String, Variants>,
}

pub(super) fn check() -> Result<Vec<Finding>, String> {
    let product = product_packages(&repo::read(&repo::root().join(BUILD))?)?;
    let mut product: Vec<&str> = product.iter().map(String::as_str).collect();
    product.extend(["--features", "weftline-cli/kernel"]);
    let everything = list("normal,build,dev", &["--workspace", "--features", "weftline-cli/kernel"])?;
    let selections = [
        Selection::new("product", &list("normal,build", &product)?),
        Selection::new("weftline-pyanalysis", &list("normal,build", &["--package", "weftline-pyanalysis"])?),
        Selection::new("weftline-python", &list("normal,build", &["--package", "weftline-python"])?),
        Selection::new("weftline-sql", &list("normal,build", &["--package", "weftline-sql"])?),
        Selection::new(TESTS, &everything),
    ];
    let mut findings = compare(&selections, &ALLOWED);
    findings.extend(unneeded(&everything));
    Ok(findings)
}

/// `--package NAME …` of the line in tools/build.sh that starts the list of what is built.
fn product_packages(script: &str) -> Result<Vec<String>, String> {
    let words = script.lines().find_map(|line| line.strip_prefix("product=\"")?.strip_suffix('"'));
    let words: Vec<String> = words.unwrap_or_default().split_whitespace().map(str::to_owned).collect();
    if words.is_empty() { Err(format!("{BUILD} has no line product=\"--package …\"")) } else { Ok(words) }
}

/// Without `--no-dedupe`, which takes minutes for the whole workspace: a node's second mention has no children, and `Tree` needs one.
fn list(edges: &str, selection: &[&str]) -> Result<Tree, String> {
    let mut arguments =
        vec!["tree", "--locked", "--quiet", "--edges", edges, "--prefix", "depth", "--format", "{p} [{f}]"];
    arguments.extend(selection);
    Ok(Tree::parse(&repo::output(env!("CARGO"), &arguments)?))
}

impl Selection {
    fn new(name: &'static str, tree: &Tree) -> Self {
        let mut packages: BTreeMap<String, Variants> = BTreeMap::new();
        for node in tree.nodes().filter(|node| !node.is_ours) {
            packages.entry(node.package.clone()).or_default().insert(node.features.clone());
        }
        Self { name, packages }
    }
}

/// Packages of which two selections need builds that the other does not have.
fn compare(selections: &[Selection], allowed: &[(&str, &str)]) -> Vec<Finding> {
    let packages: BTreeSet<&String> = selections.iter().flat_map(|selection| selection.packages.keys()).collect();
    let mut findings = Vec::new();
    let mut met = BTreeSet::new();
    for package in packages {
        let having: Vec<(&str, &Variants)> = selections
            .iter()
            .filter_map(|selection| Some((selection.name, selection.packages.get(package)?)))
            .collect();
        let apart = |(_, one): &&(&str, &Variants)| {
            having.iter().any(|(_, other)| !one.is_subset(other) && !other.is_subset(one))
        };
        let apart: Vec<(&str, &Variants)> = having.iter().filter(apart).copied().collect();
        if apart.is_empty() {
            continue;
        }
        let name = package.split(' ').next().unwrap_or(package);
        if allowed.iter().any(|(known, _)| *known == name) {
            met.insert(name);
        } else {
            findings.push(Finding::of(
                UNIFY,
                format!("{package} is built more than once: {}; name the features here", lacking(&apart)),
            ));
        }
    }
    let stale = allowed.iter().filter(|(name, _)| !met.contains(name));
    findings.extend(stale.map(|(name, reason)| {
        Finding::of("xtask/src/tidy/features.rs", format!("{name} needs no allowance any more ({reason})"))
    }));
    findings
}

/// Which selection lacks which features that another one has.
fn lacking(selections: &[(&str, &Variants)]) -> String {
    let features = |variants: &Variants| -> BTreeSet<String> {
        variants.iter().flat_map(|set| set.split(',')).filter(|name| !name.is_empty()).map(str::to_owned).collect()
    };
    let all: BTreeSet<String> = selections.iter().flat_map(|(_, variants)| features(variants)).collect();
    let mut sentences = Vec::new();
    for (name, variants) in selections {
        let own = features(variants);
        let missing: Vec<&str> = all.difference(&own).map(String::as_str).collect();
        if !missing.is_empty() {
            sentences.push(format!("{name} lacks {}", missing.join(", ")));
        }
    }
    if sentences.is_empty() {
        // The same features, joined in other ways for programs and for build scripts.
        let sets = |variants: &Variants| variants.iter().map(|set| format!("[{set}]")).collect::<Vec<_>>().join(" ");
        sentences.extend(selections.iter().map(|(name, variants)| format!("{name} has {}", sets(variants))));
    }
    sentences.join("; ")
}

/// Packages that `crates/unify` names and nothing else needs. A package that is needed only because of a feature that is named there is not found.
fn unneeded(everything: &Tree) -> Vec<Finding> {
    let reached = everything.reached_without("weftline-unify");
    everything
        .children_of("weftline-unify")
        .filter(|package| !reached.contains(*package))
        .map(|package| Finding::of(UNIFY, format!("{package} is named here, and no product needs it")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::tree::Tree;
    use super::{ALLOWED, Selection, compare, product_packages, unneeded};

    /// Compares listings of `cargo tree`, the last of which stands for everything, and expects these messages.
    fn check_allowing(allowed: &[(&str, &str)], trees: &[(&'static str, &str)], expected: &[&str]) {
        let selections: Vec<_> = trees.iter().map(|(name, tree)| Selection::new(name, &Tree::parse(tree))).collect();
        let mut findings = compare(&selections, allowed);
        findings.extend(unneeded(&Tree::parse(trees.last().map_or("", |(_, tree)| tree))));
        let found: Vec<_> = findings.into_iter().map(|finding| finding.message).collect();
        assert_eq!(found, expected, "in {trees:?}");
    }

    fn check(trees: &[(&'static str, &str)], expected: &[&str]) {
        check_allowing(&[], trees, expected);
    }

    #[test]
    fn a_feature_of_one_product_alone_is_found() {
        check(&[("a", "0x v1 (/x) []\n1syn v2 [full]"), ("b", "0y v1 (/y) []\n1syn v2 [full]")], &[]);
        check(
            &[("a", "0syn v2 [full,visit]"), ("b", "0syn v2 [fold,full]"), ("c", "0syn v1 [other]")],
            &["syn v2 is built more than once: a lacks fold; b lacks visit; name the features here"],
        );
        check(
            &[("a", "0syn v2 []"), ("b", "0syn v2 [full] (*)")],
            &["syn v2 is built more than once: a lacks full; name the features here"],
        );
    }

    #[test]
    fn a_build_that_another_product_needs_too_costs_nothing() {
        check(&[("a", "0syn v2 [full]"), ("b", "0syn v2 [full]\n0syn v2 []")], &[]);
        check(
            &[("a", "0syn v2 [f]\n0syn v2 [g]"), ("b", "0syn v2 [f,g]")],
            &["syn v2 is built more than once: a has [f] [g]; b has [f,g]; name the features here"],
        );
    }

    #[test]
    fn our_own_packages_are_not_compared() {
        check(&[("a", "0x v1 (/x) [f]"), ("b", "0x v1 (proc-macro) (/x) []")], &[]);
        check(
            &[("a", "0x v1 (proc-macro) [f]"), ("b", "0x v1 (proc-macro) []")],
            &["x v1 is built more than once: b lacks f; name the features here"],
        );
    }

    #[test]
    fn what_is_allowed_must_happen() {
        let allowed = &[("parquet", "large")];
        check_allowing(allowed, &[("a", "0parquet v1 []"), ("b", "0parquet v1 [f]")], &[]);
        check_allowing(allowed, &[("a", "0parquet v1 []")], &["parquet needs no allowance any more (large)"]);
        assert!(ALLOWED.iter().all(|(_, reason)| !reason.is_empty()));
    }

    #[test]
    fn a_name_that_nothing_needs_is_found() {
        let unify = "1weftline-unify v0 (/u) []\n2syn v2 []\n3quote v1 []\n";
        let format = "0weftline-format v0 (/f) []\n";
        check(&[("all", &format!("{format}{unify}"))], &["syn v2 is named here, and no product needs it"]);
        check(&[("all", &format!("{format}{unify}1serde v1 []\n2syn v2 [] (*)"))], &[]);
        // The second mention of a node has no children of its own.
        check(&[("all", &format!("{format}{unify}\n0other v1 (/o) []\n1derive v1 []\n2syn v2 [] (*)"))], &[]);
    }

    #[test]
    fn the_product_is_what_the_script_builds() {
        let script = "cargo=x\nproduct=\"--package a --package b\"\nproduct=\"$product --package c\"\n";
        assert_eq!(product_packages(script).expect("a list"), ["--package", "a", "--package", "b"]);
        assert!(product_packages("cargo=x\n").is_err());
    }
}
