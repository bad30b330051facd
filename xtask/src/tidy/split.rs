//! Splits Rust text, line by line, into code and comment, so that rules do not trip over strings and prose.
//!
//! Not a parser: it knows comments, string and character literals and nothing else. String contents are dropped.

/// One line: what the compiler reads, and what only people read.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) code: String,
    pub(super) comment: String,
}

impl Line {
    pub(super) fn is_blank_code(&self) -> bool {
        self.code.trim().is_empty()
    }
}

/// What the text at a position belongs to; carried over line ends.
enum State {
    Code,
    BlockComment { depth: usize },
    Text,
    RawText { hashes: usize },
}

pub(super) fn split(text: &str) -> Vec<Line> {
    let mut state = State::Code;
    text.lines().map(|line| split_line(line, &mut state)).collect()
}

fn split_line(line: &str, state: &mut State) -> Line {
    let mut out = Line::default();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let taken = match state {
            State::BlockComment { depth } => {
                let step = if rest.starts_with("/*") {
                    *depth += 1;
                    2
                } else if rest.starts_with("*/") {
                    *depth -= 1;
                    2
                } else {
                    first.len_utf8()
                };
                out.comment.push_str(&rest[..step]);
                if *depth == 0 {
                    *state = State::Code;
                }
                step
            }
            State::Text => match first {
                '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
                '"' => {
                    out.code.push('"');
                    *state = State::Code;
                    1
                }
                _ => first.len_utf8(),
            },
            State::RawText { hashes } => {
                let closing = 1 + *hashes;
                if first == '"' && rest[1..].bytes().take_while(|byte| *byte == b'#').count() >= *hashes {
                    out.code.push('"');
                    *state = State::Code;
                    closing
                } else {
                    first.len_utf8()
                }
            }
            State::Code => {
                if rest.starts_with("//") {
                    out.comment.push_str(rest);
                    rest.len()
                } else if rest.starts_with("/*") {
                    *state = State::BlockComment { depth: 1 };
                    out.comment.push_str("/*");
                    2
                } else if let Some((prefix, hashes)) = raw_text_opening(rest, &out.code) {
                    out.code.push('"');
                    *state = State::RawText { hashes };
                    prefix
                } else if first == '"' {
                    out.code.push('"');
                    *state = State::Text;
                    1
                } else if let Some(length) = character_literal(rest) {
                    out.code.push_str("' '");
                    length
                } else {
                    out.code.push(first);
                    first.len_utf8()
                }
            }
        };
        rest = &rest[taken..];
    }
    out
}

/// Length of `r"`, `br##"`, `cr"` … at the start of `rest` and its number of hashes, unless an identifier ends in `r`.
fn raw_text_opening(rest: &str, before: &str) -> Option<(usize, usize)> {
    let prefix = ["r", "br", "cr"].into_iter().find(|prefix| {
        rest.strip_prefix(prefix).is_some_and(|after| after.starts_with('"') || after.starts_with('#'))
    })?;
    if before.ends_with(|previous: char| previous.is_alphanumeric() || previous == '_') {
        return None;
    }
    let hashes = rest[prefix.len()..].bytes().take_while(|byte| *byte == b'#').count();
    let length = prefix.len() + hashes;
    rest[length..].starts_with('"').then_some((length + 1, hashes))
}

/// Length of a character literal at the start of `rest`; a lifetime has no closing quote after one character.
fn character_literal(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('\'')?;
    if inner.starts_with('\\') {
        let close = inner[2..].find('\'')?;
        return Some(1 + 2 + close + 1);
    }
    let character = inner.chars().next()?.len_utf8();
    inner[character..].starts_with('\'').then_some(1 + character + 1)
}

#[cfg(test)]
mod tests {
    use super::split;

    /// `expected` has one `code ⟂ comment` per line.
    fn check(text: &str, expected: &[(&str, &str)]) {
        let lines = split(text);
        let found: Vec<_> = lines.iter().map(|line| (line.code.as_str(), line.comment.as_str())).collect();
        assert_eq!(found, expected, "in {text:?}");
    }

    #[test]
    fn comments_are_told_from_code() {
        check("a // b", &[("a ", "// b")]);
        check("/* a\n/* b */ c */ d", &[("", "/* a"), (" d", "/* b */ c */")]);
        check("//! doc", &[("", "//! doc")]);
    }

    #[test]
    fn literals_are_emptied() {
        check(r#"f("unsafe { // no", x)"#, &[(r#"f("", x)"#, "")]);
        check(r#""a\"b" // c"#, &[(r#""" "#, "// c")]);
        check("r##\"a\"# // b\n\"## + c", &[("\"", ""), ("\" + c", "")]);
        check(r#"br"\" d"#, &[(r#""" d"#, "")]);
        check(r#"'"' '\'' '\u{1F}' 'é' e"#, &[("' ' ' ' ' ' ' ' e", "")]);
    }

    #[test]
    fn lifetimes_and_raw_names_stay() {
        check("fn a<'b>(c: &'b str) {}", &[("fn a<'b>(c: &'b str) {}", "")]);
        check("let r#type = 1;", &[("let r#type = 1;", "")]);
    }
}
