//! The packages of the checkout, from their manifests, and the table of ARCHITECTURE.md that says who may use them.

use std::collections::BTreeMap;

use crate::repo;
use crate::tidy::RUST_TOPS;

const HEADING: &str = "## The crates";

/// A package.
pub(super) struct Package {
    /// Its directory, relative to the root.
    pub(super) place: String,
    pub(super) name: String,
    /// What it needs when it runs: packages by name.
    pub(super) dependencies: Vec<String>,
    /// Whether it belongs to the workspace of the root.
    pub(super) in_workspace: bool,
}

impl Package {
    /// What the table calls it.
    pub(super) fn row(&self) -> &str {
        self.place.strip_prefix("crates/").unwrap_or(&self.place)
    }
}

/// Who may use a package.
pub(super) enum Users {
    Everything,
    These(Vec<String>),
}

impl Users {
    pub(super) fn allow(&self, row: &str) -> bool {
        match self {
            Users::Everything => true,
            Users::These(rows) => rows.iter().any(|known| known == row),
        }
    }
}

/// All packages, in the order of their places.
pub(super) fn packages() -> Result<Vec<Package>, String> {
    let root = repo::root();
    let mut packages = Vec::new();
    for top in RUST_TOPS {
        for path in repo::files_below(&root.join(top))? {
            let shown = repo::shown(&path);
            if let Some(place) = shown.strip_suffix("/Cargo.toml") {
                packages.extend(read(place, &repo::read(&path)?));
            }
        }
    }
    Ok(packages)
}

/// The package of a manifest. Tables and keys are looked at line by line: xtask has no dependency that could read TOML.
fn read(place: &str, manifest: &str) -> Option<Package> {
    let mut table = "";
    let mut name = None;
    let mut dependencies = Vec::new();
    for line in manifest.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        if let Some(header) = line.strip_prefix('[') {
            table = header.trim_end_matches(']');
        } else if let Some((key, value)) = line.split_once('=') {
            let key = key.trim().split('.').next().unwrap_or_default();
            if table == "package" && key == "name" {
                name = Some(value.trim().trim_matches('"').to_owned());
            } else if table == "dependencies" || table.ends_with(".dependencies") {
                dependencies.push(key.to_owned());
            }
        }
    }
    let in_workspace = !manifest.lines().any(|line| line.trim() == "[workspace]");
    Some(Package { place: place.to_owned(), name: name?, dependencies, in_workspace })
}

/// The rows of the table: the crates of the first column, and in the last one who may use them.
pub(super) fn table(architecture: &str) -> Result<BTreeMap<String, Users>, String> {
    let section =
        architecture.split_once(HEADING).ok_or_else(|| format!("ARCHITECTURE.md has no heading `{HEADING}`"))?.1;
    let quoted = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<String>>();
    let mut rows = BTreeMap::new();
    for line in section.lines().take_while(|line| !line.starts_with("## ")) {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        let [crates, _, users] = cells[..] else { continue };
        for name in quoted(crates) {
            // Behind a colon stands how it is used by those who do not name it in their manifest.
            let users = users.split(':').next().unwrap_or_default();
            let users = if users.starts_with("everything") { Users::Everything } else { Users::These(quoted(users)) };
            rows.insert(name, users);
        }
    }
    if rows.is_empty() { Err(format!("no row under `{HEADING}` names a crate in backticks")) } else { Ok(rows) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_tell_name_and_dependencies() {
        let manifest = "[package]\nname = \"a\"\n[dependencies]\nb.workspace = true\n# c = 1\nd = { path = \"x\" }\n\
                        [dev-dependencies]\ne = \"1\"\n[target.'cfg(unix)'.dependencies]\nf = \"1\"\n";
        let package = read("crates/a", manifest).expect("a package");
        assert_eq!((package.name.as_str(), package.row(), package.in_workspace), ("a", "a", true));
        assert_eq!(package.dependencies, ["b", "d", "f"]);
        assert!(!read("weave", &format!("[workspace]\n{manifest}")).expect("a package").in_workspace);
    }
}
