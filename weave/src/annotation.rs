//! Parses `annotate("…")`: `@critical_path(pointcut='around', scope='io', flow='in', category='solver')`.
//!
//! The grammar is PerfFlowAspect's with a category, read strictly. There, characters that mean nothing are skipped, so that every foreign annotation is an
//! empty one of its own; here they are errors, and what does not look like ours is left alone.
//!
//! ```text
//! annotation = { critical }
//! critical   = ("@critical_path" | "@perfflowaspect.aspect.critical_path") "(" [ assign { "," assign } ] ")"
//! assign     = "pointcut" "=" "'" ("around" | "before" | "after") ["_async"] "'"
//!            | "scope" "=" "'" { any character but ' and \ | "\" any character } "'"
//!            | "flow" "=" "'" ("in" | "out" | "inout" | "outin") "'"
//!            | "category" "=" as for scope
//! ```
//! Spaces, tabs and line ends are allowed between the parts. A repeated key replaces its earlier value.

use std::fmt;

/// Where a function's events are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    After,
    #[default]
    Around,
}

/// Where, and whether the events may overlap others of their thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pointcut {
    pub(crate) when: When,
    pub(crate) is_async: bool,
}

impl Pointcut {
    pub(crate) const NAMES: [&str; 6] = ["before", "after", "around", "before_async", "after_async", "around_async"];

    pub(crate) fn from_name(name: &str) -> Option<Pointcut> {
        let (when, is_async) = match name.strip_suffix("_async") {
            Some(when) => (when, true),
            None => (name, false),
        };
        let when = match when {
            "before" => When::Before,
            "after" => When::After,
            "around" => When::Around,
            _ => return None,
        };
        Some(Pointcut { when, is_async })
    }

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self.when as usize + 3 * usize::from(self.is_async)]
    }

    pub(crate) fn has_after(self) -> bool {
        self.when != When::Before
    }
}

/// Arrows between functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Flow {
    #[default]
    None,
    In,
    Out,
    InOut,
    OutIn,
}

impl Flow {
    pub(crate) const NAMES: [&str; 5] = ["NA", "in", "out", "inout", "outin"];

    pub(crate) fn from_name(name: &str) -> Option<Flow> {
        match name {
            "in" => Some(Flow::In),
            "out" => Some(Flow::Out),
            "inout" => Some(Flow::InOut),
            "outin" => Some(Flow::OutIn),
            _ => None,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// What was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Annotation {
    pub(crate) pointcut: Pointcut,
    pub(crate) scope: Option<String>,
    pub(crate) flow: Flow,
    /// In place of the one that the runtime gives events.
    pub(crate) category: Option<String>,
}

/// Why an annotation cannot be read: a part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wrong(String);

impl fmt::Display for Wrong {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

const HEADS: [&str; 2] = ["@critical_path", "@perfflowaspect.aspect.critical_path"];
/// Slips of the pen in a head that is still taken for ours.
const SLIPS: usize = 3;

impl Annotation {
    /// Reads `text`, over what earlier annotations of the same function said.
    pub(crate) fn read(&mut self, text: &str) -> Result<(), Wrong> {
        let mut rest = Rest(text);
        rest.skip_blanks();
        loop {
            rest.critical(self)?;
            rest.skip_blanks();
            if rest.0.is_empty() {
                return Ok(());
            }
        }
    }
}

/// Whether this is meant to be our annotation.
pub(crate) fn looks_like_ours(text: &str) -> bool {
    let text = text.trim_start();
    let head = text.split('(').next().unwrap_or(text).trim_end();
    text.starts_with('@') && (head.contains("critical_path") || HEADS.iter().any(|ours| is_near(head, ours)))
        || text.starts_with("critical_path")
}

/// Are at most [`SLIPS`] letters of `text` missing, too many or wrong?
fn is_near(text: &str, wanted: &str) -> bool {
    if text.len().abs_diff(wanted.len()) > SLIPS {
        return false;
    }
    let mut row: Vec<usize> = (0..=wanted.len()).collect();
    for (line, letter) in text.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = line + 1;
        for (column, other) in wanted.bytes().enumerate() {
            let replaced = diagonal + usize::from(!letter.eq_ignore_ascii_case(&other));
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[wanted.len()] <= SLIPS
}

/// What has not been read yet.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn skip_blanks(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t', '\n']);
    }

    fn take(&mut self, token: &str) -> bool {
        self.skip_blanks();
        match self.0.strip_prefix(token) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str, after: &str) -> Result<(), Wrong> {
        match self.take(token) {
            true => Ok(()),
            false => Err(Wrong(format!("`{token}` is missing after `{after}`{}", self.found()))),
        }
    }

    fn found(&self) -> String {
        match self.0.split_whitespace().next() {
            Some(word) => format!(", where `{word}` stands"),
            None => String::new(),
        }
    }

    fn word(&mut self) -> &'a str {
        self.skip_blanks();
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.' | '@');
        let length = self.0.find(|letter| !is_part(letter)).unwrap_or(self.0.len());
        let (word, rest) = self.0.split_at(length);
        self.0 = rest;
        word
    }

    fn critical(&mut self, to: &mut Annotation) -> Result<(), Wrong> {
        let head = self.word();
        if !HEADS.contains(&head) {
            let found = if head.is_empty() { self.0 } else { head };
            return Err(Wrong(format!("`@critical_path(...)` is meant, not `{found}`")));
        }
        self.expect("(", head)?;
        if self.take(")") {
            return Ok(());
        }
        loop {
            let last = self.assign(to)?;
            if self.take(")") {
                return Ok(());
            }
            if !self.take(",") {
                return Err(Wrong(format!("`,` or `)` is missing after {last}{}", self.found())));
            }
        }
    }

    /// Reads one assignment; which it was, for messages.
    fn assign(&mut self, to: &mut Annotation) -> Result<&'static str, Wrong> {
        let key = self.word();
        let key = match ["pointcut", "scope", "flow", "category"].into_iter().find(|known| *known == key) {
            Some(key) => key,
            None if key.is_empty() => {
                return Err(Wrong(format!("`pointcut`, `scope`, `flow` or `category` is missing{}", self.found())));
            }
            None => return Err(Wrong(format!("`{key}` is none of `pointcut`, `scope`, `flow` and `category`"))),
        };
        self.expect("=", key)?;
        let value = self.quoted(key)?;
        let one_of = |names: &[&str]| Wrong(format!("{key} cannot be '{value}', only {}", names.join(", ")));
        match key {
            "pointcut" => to.pointcut = Pointcut::from_name(value).ok_or_else(|| one_of(&Pointcut::NAMES))?,
            "flow" => to.flow = Flow::from_name(value).ok_or_else(|| one_of(&Flow::NAMES[1..]))?,
            // Without a text there is none, as in Python.
            "category" => to.category = Some(value.to_owned()).filter(|text| !text.is_empty()),
            _ => to.scope = Some(value.to_owned()),
        }
        Ok(key)
    }

    fn quoted(&mut self, key: &str) -> Result<&'a str, Wrong> {
        self.skip_blanks();
        let Some(text) = self.0.strip_prefix('\'') else {
            return Err(Wrong(format!("the value of `{key}` needs single quotes: {key}='...'")));
        };
        let mut letters = text.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => {
                    letters.next();
                }
                '\'' => {
                    self.0 = &text[at + 1..];
                    return Ok(&text[..at]);
                }
                _ => {}
            }
        }
        Err(Wrong(format!("the value of `{key}` has no closing quote")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `expected` is pointcut, scope and flow, or a part of the message.
    fn check(text: &str, expected: Result<(&str, &str, &str), &str>) {
        let mut read = Annotation::default();
        match (read.read(text), expected) {
            (Ok(()), Ok((pointcut, scope, flow))) => {
                let found = (read.pointcut.name(), read.scope.as_deref().unwrap_or("NA"), read.flow.name());
                assert_eq!(found, (pointcut, scope, flow), "{text:?}");
            }
            (Err(why), Err(part)) => assert!(why.0.contains(part), "{text:?}: {why}"),
            (found, _) => panic!("{text:?}: {found:?}, not {expected:?}"),
        }
        assert!(looks_like_ours(text) || expected.is_err(), "{text:?}");
    }

    const PLAIN: (&str, &str, &str) = ("around", "NA", "NA");

    /// The cases of PerfFlowAspect's own two test programs.
    #[test]
    fn what_the_original_accepts_and_refuses() {
        check("@critical_path()", Ok(PLAIN));
        check("@critical_path  (  )", Ok(PLAIN));
        check("@perfflowaspect.aspect.critical_path ()", Ok(PLAIN));
        check("@critical_path (pointcut='around')", Ok(PLAIN));
        check("@critical_path (pointcut\t='around')", Ok(PLAIN));
        check("@critical_path (pointcut='before', scope='foo')", Ok(("before", "foo", "NA")));
        check("@critical_path (scope='foo', pointcut='before')", Ok(("before", "foo", "NA")));
        check("@critical_path (scope='', pointcut='before')", Ok(("before", "", "NA")));
        check("@critical_path (scope='', flow='out', pointcut='before')", Ok(("before", "", "out")));
        check("@critical _path()", Err("not `@critical`"));
        check("@critcal_path  (  )", Err("not `@critcal_path`"));
        check("@aspect.critical_path ()", Err("not `@aspect.critical_path`"));
        check("@critical_path (pointcut='arond')", Err("pointcut cannot be 'arond', only before, after, around"));
        check("@critical_path (point_cut='around')", Err("`point_cut` is none of"));
        check(
            "@critical_path (pointcut='before' scope='foo')",
            Err("missing after pointcut, where `scope='foo')` stands"),
        );
        check("@critical_path (scope='bar', pointcut='')", Err("pointcut cannot be ''"));
    }

    #[test]
    fn every_value() {
        for name in Pointcut::NAMES {
            check(&format!("@critical_path(pointcut='{name}')"), Ok((name, "NA", "NA")));
        }
        for name in &Flow::NAMES[1..] {
            check(&format!("@critical_path(flow='{name}')"), Ok(("around", "NA", name)));
        }
        check(r"@critical_path(scope='it\'s \\ here')", Ok(("around", r"it\'s \\ here", "NA")));
        check("@critical_path(scope='größe, (x)')", Ok(("around", "größe, (x)", "NA")));
    }

    #[test]
    fn categories() {
        let of = |text: &str| {
            let mut read = Annotation::default();
            read.read(text).map(|()| read.category)
        };
        for (text, expected) in [
            ("@critical_path()", None),
            ("@critical_path(category='io')", Some("io")),
            ("@critical_path(pointcut='before', category = 'größe, x', scope='s')", Some("größe, x")),
            ("@critical_path(category='a') @critical_path(category='b')", Some("b")),
            ("@critical_path(category='a', category='')", None),
        ] {
            assert_eq!(of(text), Ok(expected.map(str::to_owned)), "{text}");
        }
        check("@critical_path(pointcut='after', category='io')", Ok(("after", "NA", "NA")));
        check("@critical_path(category=io)", Err("needs single quotes"));
        check("@critical_path(categories='io')", Err("`categories` is none of"));
    }

    #[test]
    fn later_keys_replace_earlier_ones() {
        check("@critical_path(pointcut='before') @critical_path(scope='x')", Ok(("before", "x", "NA")));
        check("@critical_path(pointcut='before', pointcut='after')", Ok(("after", "NA", "NA")));
        check("\n @critical_path(flow='in')\n@critical_path(flow='out')\n", Ok(("around", "NA", "out")));
    }

    #[test]
    fn what_the_original_skips_is_wrong_here() {
        check("@critical_path(pointcut=\"around\")", Err("needs single quotes"));
        check("@critical_path(pointcut='around',)", Err("is missing, where `)` stands"));
        check("@critical_path", Err("`(` is missing after `@critical_path`"));
        check("@critical_path(", Err("`pointcut`, `scope`, `flow` or `category` is missing"));
        check("@critical_path()!", Err("not `!`"));
        check("@critical_path(pointcut='around'", Err("missing after pointcut"));
        check("@critical_path(flow='NA')", Err("flow cannot be 'NA', only in, out, inout, outin"));
        check("@critical_path(scope='x)", Err("no closing quote"));
        check(r"@critical_path(scope='x\", Err("no closing quote"));
        check("@critical_path(scope)", Err("`=` is missing after `scope`"));
        check("", Err("is meant"));
    }

    #[test]
    fn ours_and_foreign_ones() {
        for ours in [
            "@critical_path",
            "@critcal_path()",
            "@Critical_Path()",
            "@critical-path()",
            "  @critical _path()",
            "critical_path()",
        ] {
            assert!(looks_like_ours(ours), "{ours:?}");
        }
        for foreign in [
            "",
            "other",
            "suppress warnings about X",
            "@criticize",
            "@",
            "@notnull",
            "see critical_path()",
            "größe",
            "@größe_größe_g()",
        ] {
            assert!(!looks_like_ours(foreign), "{foreign:?}");
        }
    }
}
