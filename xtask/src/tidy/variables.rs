//! docs/env.md has every environment variable that the sources read.
//!
//! It finds names by the syntax of reads in each language, without following values: a name that is composed at run time is not found.

use std::collections::BTreeSet;

use super::{Finding, Source, is_fixture};
use crate::repo;

const DOCUMENT: &str = "docs/env.md";

/// Names that need no row: the tool that runs the file sets them.
const OF_OTHERS: [(&str, &str); 3] = [
    ("OUT_DIR", "cargo, for build scripts"),
    ("PYO3_NO_PYTHON", "tools/wheels, for PyO3's build script"),
    ("VERSION_CODENAME", "/etc/os-release, which the script reads"),
];
/// What cargo tells build scripts.
const OF_CARGO: [&str; 4] = ["CARGO_CFG_", "CARGO_FEATURE_", "CARGO_MANIFEST_", "CARGO_PKG_"];

/// Prefixes of our own names and of those whose programs we stand in for: such a text is a variable wherever it stands.
const OWN: [&str; 3] = ["WEFT_", "DFTRACER_", "PERFFLOW_"];

/// How a file says that it reads a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Language {
    Rust,
    /// Tests set variables of their own for the programs that they start; only what a test itself reads counts.
    RustTest,
    Python,
    C,
    Shell,
    Make,
}

pub(super) fn check() -> Result<Vec<Finding>, String> {
    let document = repo::read(&repo::root().join(DOCUMENT))?;
    let documented = documented(&document);
    let mut findings = Vec::new();
    let mut look = |path: &str, language: Language, text: &str| {
        let missing =
            reads(language, text).into_iter().filter(|(_, name)| !documented.contains(name) && !is_foreign(name));
        findings.extend(missing.map(|(line, name)| {
            Finding::at(
                path,
                line,
                format!("{name} is not in {DOCUMENT}; its rows are in crates/cli/src/commands/pages/variables.rs"),
            )
        }));
    };
    for source in Source::all()?.iter().filter(|source| !source.path.starts_with("xtask/")) {
        look(&source.path, if source.is_test() { Language::RustTest } else { Language::Rust }, &source.text);
    }
    for top in ["crates", "compat", "examples", "tools", "weave", "Makefile"] {
        let path = repo::root().join(top);
        let files = if path.is_file() { vec![path] } else { repo::files_below(&path)? };
        for path in files {
            let shown = repo::shown(&path);
            if let Some(language) = language_of(&shown) {
                look(&shown, language, &repo::read(&path)?);
            }
        }
    }
    Ok(findings)
}

/// Languages other than Rust. Tests in them only set variables, for programs that they start.
fn language_of(path: &str) -> Option<Language> {
    let end = path.rsplit(['.', '/']).next()?;
    match end {
        _ if path.contains("/tests/") || is_fixture(path) => None,
        "py" | "pth" => Some(Language::Python),
        "c" | "cc" | "cpp" | "h" | "hpp" => Some(Language::C),
        "sh" => Some(Language::Shell),
        "Makefile" => Some(Language::Make),
        _ => None,
    }
}

/// Names in backticks.
fn documented(document: &str) -> BTreeSet<&str> {
    document.lines().flat_map(|line| line.split('`').skip(1).step_by(2)).collect()
}

fn is_foreign(name: &str) -> bool {
    OF_OTHERS.iter().any(|(known, _)| *known == name) || OF_CARGO.iter().any(|prefix| name.starts_with(prefix))
}

/// Lines and names of the variables that `text` reads.
fn reads(language: Language, text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    // The rest of a list of names that has begun.
    let mut in_list = false;
    for (number, line) in (1..).zip(text.lines()) {
        if language == Language::Rust && line.contains("#[cfg(test)]") {
            break;
        }
        // `env!` is compiled in: build scripts set what it names.
        if line.trim_start().starts_with("//") || line.contains("env!(") {
            continue;
        }
        // Of texts: a table of another type has more in it than names.
        let begins = line.contains("const ") && line.contains("VARIABLE") && line.contains("&str");
        in_list |= language == Language::Rust && begins;
        let says = |words: &[&str]| words.iter().any(|word| line.contains(word));
        let names: Vec<&str> = match language {
            Language::Rust if in_list || says(&["env::var", "variable(", "set_var(", "given(", "lookup("]) => {
                texts(line, &['"']).filter(|name| is_name(name)).collect()
            }
            Language::Rust => texts(line, &['"']).filter(|name| is_name(name) && is_own(name)).collect(),
            Language::RustTest if says(&["env::var(", "env::var_os("]) => {
                texts(line, &['"']).filter(|name| is_name(name)).collect()
            }
            Language::Python if says(&["os.environ", "getenv"]) => {
                texts(line, &['"', '\'']).filter(|name| is_name(name)).collect()
            }
            Language::C if says(&["getenv("]) => texts(line, &['"']).filter(|name| is_name(name)).collect(),
            Language::Shell => in_braces(line).collect(),
            Language::Make => {
                line.split_once("?=").map(|(name, _)| name.trim()).filter(|name| is_name(name)).into_iter().collect()
            }
            Language::RustTest | Language::Python | Language::C => Vec::new(),
        };
        found.extend(names.into_iter().map(|name| (number, name)));
        if line.contains(';') {
            in_list = false;
        }
    }
    found
}

/// `${NAME:-default}` and `${NAME:?complaint}`: a script that gives a default did not set the variable itself.
fn in_braces(line: &str) -> impl Iterator<Item = &str> {
    line.split("${").skip(1).filter_map(|rest| {
        let (name, after) = rest.split_at(rest.find(|character: char| !is_of_name(character))?);
        (is_name(name) && after.starts_with([':', '-'])).then_some(name)
    })
}

/// What stands between quotes.
fn texts<'a>(line: &'a str, quotes: &'a [char]) -> impl Iterator<Item = &'a str> {
    line.split(quotes).skip(1).step_by(2)
}

fn is_own(name: &str) -> bool {
    OWN.iter().any(|prefix| name.len() > prefix.len() && name.starts_with(prefix))
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_uppercase() || character.is_ascii_digit() || character == '_'
}

fn is_name(text: &str) -> bool {
    text.len() > 2 && text.starts_with(|first: char| first.is_ascii_uppercase()) && text.chars().all(is_of_name)
}

#[cfg(test)]
mod tests {
    use super::{Language, documented, is_foreign, language_of, reads};

    fn check(language: Language, text: &str, expected: &[&str]) {
        let found: Vec<_> = reads(language, text).into_iter().map(|(_, name)| name).collect();
        assert_eq!(found, expected, "in {text:?}");
    }

    #[test]
    fn rust_reads_by_functions_and_lists() {
        check(Language::Rust, "std::env::var_os(\"A_B\").is_some(); \"Not\"", &["A_B"]);
        check(Language::Rust, "let path = process::variable(environment, \"LD_AUDIT\");", &["LD_AUDIT"]);
        check(
            Language::Rust,
            "const X_VARIABLES: &[&str] =\n    &[\"ONE\",\n     \"TWO\"];\nf(\"GET\");",
            &["ONE", "TWO"],
        );
        check(Language::Rust, "row(\"DFTRACER_INIT\", \"FUNCTION\")", &["DFTRACER_INIT"]);
        check(Language::Rust, "const T_VARIABLES: [Row; 1] = [row(\"WEFT_A\", \"FUNCTION\")];", &["WEFT_A"]);
        check(Language::Rust, "const V: &str = env!(\"WEFT_VERSION\");", &[]);
        check(Language::Rust, "// env::var(\"A_B\")\n#[cfg(test)]\nenv::var(\"C_D\")", &[]);
        check(Language::RustTest, "command.env(\"WEFT_X\", \"1\");\nenv::var(\"WEFT_Y\")", &["WEFT_Y"]);
    }

    #[test]
    fn other_languages_read_in_their_ways() {
        check(Language::Python, "a = os.environ.get('A_B') or \"C_D\" in os.environ\nb = \"E_F\"", &["A_B", "C_D"]);
        check(Language::C, "char *a = getenv(\"A_B\"); puts(\"C_D\");", &["A_B", "C_D"]);
        check(Language::C, "puts(\"C_D\");", &[]);
        check(Language::Shell, "a=${A_B:-x} b=${C_D} c=\"${E_F:?set it}\" d=${target%%.*}", &["A_B", "E_F"]);
        check(Language::Make, "PREFIX  ?= /usr\nTARGET := x\n", &["PREFIX"]);
    }

    #[test]
    fn files_and_names_are_told_apart() {
        let languages = [
            ("tools/a.sh", Some(Language::Shell)),
            ("Makefile", Some(Language::Make)),
            ("compat/a/src/b.pth", Some(Language::Python)),
            ("compat/tests/a.py", None),
            ("crates/a/src/b.rs", None),
        ];
        for (path, expected) in languages {
            assert_eq!(language_of(path), expected, "{path}");
        }
        let names = documented("| `A_B`, `C_D` | x `weft` |\n");
        assert!(names.contains("A_B") && names.contains("C_D") && !names.contains("x"));
        assert!(is_foreign("OUT_DIR") && is_foreign("CARGO_FEATURE_KERNEL") && !is_foreign("CARGO"));
    }
}
