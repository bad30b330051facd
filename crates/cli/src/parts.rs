//! Optional parts of an installation: those that are installed, and the command that adds each of the others.
//!
//! `weft doctor` lists them, `tools/install.sh` and the Python packages end with that list, and a verb whose part is missing names the same command.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use weftline_weaving::Installation;

use crate::commands::run;
use crate::library::LIBRARY;

/// The program that answers `weft query`: apart, because DataFusion is most of what there would be to build and to download.
pub(crate) const SQL_PROGRAM: &str = "weft-sql";
/// Names that program where it is not with the command.
pub(crate) const SQL_VARIABLE: &str = "WEFT_SQL";
/// The directory of the Python package `weftline-sql`, beside that of `weftline`.
const SQL_PACKAGE: &str = "weftline_sql";

/// What an installation may lack.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Component {
    /// `weft query`
    Query,
    /// `--kernel`
    Kernel,
    /// Plugins of `weft weave`
    Weave,
}

/// Where this `weft` comes from, which decides how parts are added.
enum Origin {
    /// The Python package.
    Package,
    /// cargo's target directory.
    BuildTree,
    /// `make install`, or the archive of `make dist`.
    Prefix(PathBuf),
}

/// A part and whether it is there.
pub(crate) struct State {
    pub(crate) present: bool,
    /// One line: what was found, or what adds it.
    pub(crate) text: String,
}

/// All parts.
pub(crate) fn states() -> Vec<State> {
    let there = |text: String| State { present: true, text };
    let query = match sql_program() {
        Some(program) => there(format!("weft query: answered by {}", program.display())),
        None => absent(Component::Query, "weft query", "weft-sql is not installed"),
    };
    let kernel = match cfg!(feature = "kernel") {
        true => there("--kernel: built in; needs root, or CAP_BPF and CAP_PERFMON".into()),
        false => absent(Component::Kernel, "--kernel", "not built in"),
    };
    let majors: Vec<String> =
        Installation::around(own_directory()).plugin_majors().iter().map(u32::to_string).collect();
    let weave = match majors.is_empty() {
        false => there(format!("weft weave: plugins for clang {}", majors.join(", "))),
        true => absent(Component::Weave, "weft weave", "no plugin for clang"),
    };
    vec![query, kernel, weave]
}

fn absent(part: Component, name: &str, what: &str) -> State {
    State { present: false, text: format!("{name}: {what}; {} adds it", remedy(part)) }
}

/// The command that adds a part to this installation, for the middle of a sentence.
pub(crate) fn remedy(part: Component) -> String {
    let origin = Origin::of(&own_directory().unwrap_or_default());
    let make = |target: &str| match &origin {
        Origin::Prefix(prefix) => format!("`make {target} install PREFIX={}` in a checkout", prefix.display()),
        _ => format!("`make {target}`"),
    };
    match (part, &origin) {
        (Component::Query, Origin::Package) => "`pip install weftline-sql`".into(),
        (Component::Query, _) => make("sql"),
        // Only packages that were built without clang lack it.
        (Component::Kernel, Origin::Package) => {
            "with clang installed, `pip install --force-reinstall --no-deps .` in a checkout".into()
        }
        (Component::Kernel, _) => make("kernel"),
        (Component::Weave, Origin::BuildTree) => make("weave"),
        (Component::Weave, _) => "`weft weave --setup`".into(),
    }
}

/// The program that answers queries: named by the variable, beside this one, in its Python package, or on PATH.
pub(crate) fn sql_program() -> Option<PathBuf> {
    if let Some(given) = std::env::var_os(SQL_VARIABLE).filter(|value| !value.is_empty()) {
        return Some(given.into());
    }
    let own = own_directory().unwrap_or_default();
    let packaged = || Some(own.parent()?.parent()?.join(SQL_PACKAGE).join("bin").join(SQL_PROGRAM));
    let places = [Some(own.join(SQL_PROGRAM)), packaged()];
    let found = places.into_iter().flatten().find(|place| place.is_file());
    found.or_else(|| run::search(OsStr::new(SQL_PROGRAM)))
}

impl Origin {
    fn of(directory: &Path) -> Origin {
        let prefix = directory.parent().unwrap_or(directory);
        if prefix.join("_command.py").is_file() {
            Origin::Package
        } else if directory.join(LIBRARY).is_file() {
            Origin::BuildTree
        } else {
            Origin::Prefix(prefix.to_owned())
        }
    }
}

/// The directory of the running command; nothing where the system does not tell, and then nothing is found with it.
pub(crate) fn own_directory() -> Option<PathBuf> {
    let command = std::env::current_exe().ok()?;
    let command = command.canonicalize().unwrap_or(command);
    Some(command.parent().map(Path::to_owned).unwrap_or(command))
}
