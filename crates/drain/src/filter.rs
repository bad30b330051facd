//! Filters paths by `--include` and `--exclude`, and categories of calls for drop-ins of tracers that have fewer.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use globset::{Glob, GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};
use weftline_calls::Family;

use crate::{DrainError, Result};

/// Patterns as the user gave them. `*` stays within one directory, `**` does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Patterns {
    pub include: Vec<String>,
    pub exclude: Vec<String>,
    /// Categories of calls that are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
}

/// The patterns, compiled.
#[derive(Debug)]
pub(crate) struct Filter {
    include: GlobSet,
    exclude: GlobSet,
    without: Vec<Family>,
}

impl Filter {
    pub(crate) fn new(patterns: &Patterns) -> Result<Filter> {
        let unwanted = |family: &Family| patterns.without.iter().any(|category| category == family.category());
        Ok(Filter {
            include: compile(&patterns.include)?,
            exclude: compile(&patterns.exclude)?,
            without: Family::CALLS.into_iter().filter(unwanted).collect(),
        })
    }

    /// Whether calls of a family are wanted.
    #[inline]
    pub(crate) fn takes_family(&self, family: Family) -> bool {
        self.without.is_empty() || !self.without.contains(&family)
    }

    /// Whether events on all paths are wanted.
    pub(crate) fn takes_all(&self) -> bool {
        self.include.is_empty() && self.exclude.is_empty()
    }

    /// Whether events on this path are wanted.
    pub(crate) fn takes(&self, path: &[u8]) -> bool {
        let path = Path::new(OsStr::from_bytes(path));
        (self.include.is_empty() || self.include.is_match(path)) && !self.exclude.is_match(path)
    }
}

/// Whether the patterns of [`DrainOptions`](crate::DrainOptions) are such, before anything is made for a run.
pub fn check_patterns(patterns: &[String]) -> Result<()> {
    compile(patterns).map(drop)
}

fn compile(patterns: &[String]) -> Result<GlobSet> {
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        set.add(glob(pattern).map_err(|source| DrainError::Pattern { pattern: pattern.clone(), source })?);
    }
    let all = || patterns.join(", ");
    set.build().map_err(|source| DrainError::Pattern { pattern: all(), source })
}

fn glob(pattern: &str) -> std::result::Result<Glob, globset::Error> {
    GlobBuilder::new(pattern).literal_separator(true).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(include: &[&str], exclude: &[&str], path: &str, wanted: bool) {
        let strings = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
        let patterns = Patterns { include: strings(include), exclude: strings(exclude), ..Patterns::default() };
        let filter = Filter::new(&patterns).expect("patterns");
        assert_eq!(filter.takes(path.as_bytes()), wanted, "{patterns:?} {path}");
    }

    #[test]
    fn patterns_select() {
        check(&[], &[], "/any", true);
        check(&["/data/**"], &[], "/data/a/b", true);
        check(&["/data/**"], &[], "/etc/passwd", false);
        check(&["/data/*"], &[], "/data/a/b", false);
        check(&[], &["/usr/**", "/proc/**"], "/usr/lib/x", false);
        check(&[], &["/usr/**"], "/data/x", true);
        check(&["/data/**"], &["**/*.tmp"], "/data/a/b.tmp", false);
        check(&["**/*.{bin,dat}"], &[], "/x/y.dat", true);
        check(&["pipe:*"], &[], "pipe:[17]", true);
    }

    #[test]
    fn patterns_are_checked_beforehand() {
        for (pattern, wrong) in [
            ("/data/**", ""),
            ("", ""),
            ("[", "unclosed character class"),
            ("{a,b", "unclosed alternate group"),
            ("[z-a]", "invalid range"),
        ] {
            let why = check_patterns(&[pattern.to_owned()]).err().map(|error| error.to_string()).unwrap_or_default();
            assert_eq!((why.contains(wrong), why.is_empty()), (true, wrong.is_empty()), "{pattern}: {why}");
        }
    }

    #[test]
    fn wrong_patterns_are_named() {
        let patterns = Patterns { include: vec!["/a[".to_owned()], ..Patterns::default() };
        let error = Filter::new(&patterns).expect_err("not a pattern");
        assert!(error.to_string().contains("/a["), "{error}");
    }

    #[test]
    fn families_can_be_left_out() {
        let filter = |without: &[&str]| {
            let without = without.iter().map(|category| (*category).to_owned()).collect();
            Filter::new(&Patterns { without, ..Patterns::default() }).expect("patterns")
        };
        assert!(filter(&[]).takes_family(Family::Wait));
        let some = filter(&["WAIT", "STDIO", "mine"]);
        let left: Vec<Family> = Family::CALLS.into_iter().filter(|family| some.takes_family(*family)).collect();
        assert_eq!(left, [Family::Posix, Family::Network, Family::Process]);
        assert!(some.takes_family(Family::Weft) && some.takes_all());
    }
}
