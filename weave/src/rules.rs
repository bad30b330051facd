//! `weft.weave.toml`: which functions are woven without an annotation, for code that cannot be edited.
//!
//! ```toml
//! exclude = ["std::*"]                 # never woven by a rule, nor by -weft-weave-all
//!
//! [[weave]]
//! functions = ["inflate*", "ns::*"]    # readable names without parameters, or symbols; `*` any characters, `?` one
//! exclude = ["inflate_fast"]           # not these
//! files = ["*/inflate.c"]              # only in these source files
//! pointcut = "around"                  # as in an annotation, like scope and flow
//! category = "zlib"                    # of the events
//! at-least = 10                        # instructions that a function must have
//! ```
//! The first rule that names a function counts. An annotation in the source counts more than any rule.

use std::path::Path;

use serde::Deserialize;

use crate::annotation::{Annotation, Flow, Pointcut};
use crate::glob::matches;

/// The file's content.
#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub(crate) struct Rules {
    #[serde(default)]
    exclude: Vec<String>,
    #[serde(default)]
    weave: Vec<Rule>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Rule {
    functions: Vec<String>,
    #[serde(default)]
    exclude: Vec<String>,
    #[serde(default)]
    files: Vec<String>,
    #[serde(default)]
    pointcut: PointcutName,
    scope: Option<String>,
    #[serde(default)]
    flow: FlowName,
    category: Option<String>,
    #[serde(default)]
    at_least: u32,
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(try_from = "String")]
struct PointcutName(Pointcut);

impl TryFrom<String> for PointcutName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let known = Pointcut::from_name(&name).map(PointcutName);
        known.ok_or_else(|| format!("a pointcut is one of {}, not {name:?}", Pointcut::NAMES.join(", ")))
    }
}

#[derive(Debug, Default, Deserialize, PartialEq)]
#[serde(try_from = "String")]
struct FlowName(Flow);

impl TryFrom<String> for FlowName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let known = Flow::from_name(&name).map(FlowName);
        known.ok_or_else(|| format!("a flow is one of {}, not {name:?}", Flow::NAMES[1..].join(", ")))
    }
}

/// A function that a rule may name.
pub(crate) struct Candidate<'a> {
    /// Readable, without parameters.
    pub(crate) name: &'a str,
    pub(crate) symbol: &'a str,
    /// The source file as clang was given it.
    pub(crate) file: &'a str,
    pub(crate) instructions: usize,
}

impl Candidate<'_> {
    fn is_named_by(&self, patterns: &[String]) -> bool {
        patterns.iter().any(|pattern| matches(pattern, self.name) || matches(pattern, self.symbol))
    }
}

impl Rules {
    /// Reads the file; an error is one sentence.
    pub(crate) fn load(path: &Path) -> Result<Rules, String> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("the rules of what is woven cannot be read from {}: {error}", path.display()))?;
        toml::from_str(&text).map_err(|error| format!("{} is not a list of rules: {error}", path.display()))
    }

    /// Is it one that neither a rule nor `-weft-weave-all` weaves?
    pub(crate) fn excludes(&self, candidate: &Candidate<'_>) -> bool {
        candidate.is_named_by(&self.exclude)
    }

    /// What the first rule that names it asks for.
    pub(crate) fn find(&self, candidate: &Candidate<'_>) -> Option<Annotation> {
        let rule = self.weave.iter().find(|rule| {
            candidate.is_named_by(&rule.functions)
                && !candidate.is_named_by(&rule.exclude)
                && candidate.instructions >= rule.at_least as usize
                && (rule.files.is_empty() || rule.files.iter().any(|pattern| matches(pattern, candidate.file)))
        })?;
        let (scope, category) = (rule.scope.clone(), rule.category.clone());
        Some(Annotation { pointcut: rule.pointcut.0, scope, flow: rule.flow.0, category })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
        exclude = ["std::*", "_GLOBAL*"]
        [[weave]]
        functions = ["inflate*"]
        exclude = ["inflate_fast"]
        files = ["*/inflate.c"]
        category = "zlib"
        [[weave]]
        functions = ["ns::*", "_Z3barv"]
        pointcut = "after_async"
        scope = "s"
        flow = "outin"
        at-least = 10
    "#;

    /// `expected` is the pointcut, if a rule names the function.
    fn check(name: &str, symbol: &str, file: &str, instructions: usize, expected: Option<&str>) {
        let rules: Rules = toml::from_str(TEXT).expect("rules");
        let candidate = Candidate { name, symbol, file, instructions };
        let found = rules.find(&candidate).filter(|_| !rules.excludes(&candidate));
        assert_eq!(found.map(|annotation| annotation.pointcut.name()), expected, "{name}");
    }

    #[test]
    fn functions_are_named_by_rules() {
        check("inflate", "inflate", "src/inflate.c", 1, Some("around"));
        check("inflateInit", "inflateInit", "src/inflate.c", 1, Some("around"));
        check("inflate_fast", "inflate_fast", "src/inflate.c", 1, None);
        check("inflate", "inflate", "src/deflate.c", 1, None);
        check("ns::f", "_ZN2ns1fEv", "a.cpp", 10, Some("after_async"));
        check("ns::f", "_ZN2ns1fEv", "a.cpp", 9, None);
        check("bar", "_Z3barv", "a.cpp", 99, Some("after_async"));
        check("std::sort", "_ZSt4sort", "a.cpp", 99, None);
    }

    #[test]
    fn all_that_a_rule_says_is_kept() {
        let rules: Rules = toml::from_str(TEXT).expect("rules");
        let of = |name, file| rules.find(&Candidate { name, symbol: name, file, instructions: 50 });
        let of_zlib = Annotation { category: Some("zlib".to_owned()), ..Annotation::default() };
        assert_eq!(of("inflate", "/inflate.c"), Some(of_zlib));
        let Annotation { scope, flow, category, .. } = of("ns::f", "").expect("a rule");
        assert_eq!((scope.as_deref(), flow, category), (Some("s"), Flow::OutIn, None));
    }

    #[test]
    fn mistakes_are_named() {
        let check = |text: &str, part: &str| {
            let why = toml::from_str::<Rules>(text).expect_err(text).to_string();
            assert!(why.contains(part), "{text}: {why}");
        };
        check("[[weave]]\npointcut = \"around\"", "missing field `functions`");
        check("[[weave]]\nfunctions = [\"f\"]\npointcut = \"arond\"", "a pointcut is one of before, after, around");
        check("[[weave]]\nfunctions = [\"f\"]\nflow = \"up\"", "a flow is one of in, out, inout, outin");
        check("[[weave]]\nfunction = [\"f\"]", "unknown field `function`");
        check("[[woven]]", "unknown field `woven`");
        check("exclude = 3", "line 1");
    }

    #[test]
    fn files_that_are_missing_are_named() {
        let why = Rules::load(Path::new("/no/such/weft.weave.toml")).expect_err("no file");
        assert!(why.contains("/no/such/weft.weave.toml"), "{why}");
    }
}
