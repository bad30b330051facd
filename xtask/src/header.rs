//! Makes `crates/capi/include/weft.h` from its template and from the Rust code that it describes.
//!
//! The template holds what is C (structs, macros); functions come from the exported functions of `crates/capi/src` with their doc
//! comments, kinds of events from the recorder. So the header cannot declare what the library does not have.

use std::path::PathBuf;

use crate::repo;

const TEMPLATE: &str = "crates/capi/include/weft.h.in";
const HEADER: &str = "crates/capi/include/weft.h";
const SPANS: &str = "crates/capi/src/span.rs";
const SESSIONS: &str = "crates/capi/src/session.rs";
const WOVEN: &str = "crates/capi/src/woven.rs";
const KINDS: &str = "crates/recorder/src/annotation.rs";

/// Longest line of a comment.
const WIDTH: usize = 120;

/// Rust types of signatures, and what C calls them.
const TYPES: [(&str, &str); 11] = [
    ("*mut Woven", "weft_woven *"),
    ("*mut Span", "weft_span *"),
    ("*mut Site", "weft_site *"),
    ("*const c_char", "const char *"),
    ("c_int", "int "),
    ("i64", "int64_t "),
    ("u64", "uint64_t "),
    ("usize", "size_t "),
    ("f64", "double "),
    ("()", "void "),
    ("", "void "),
];

/// Where the header lies, and what it must be.
pub(crate) fn expected() -> Result<(PathBuf, String), String> {
    let read = |path: &str| repo::read(&repo::root().join(path));
    let (spans, sessions) = (read(SPANS)?, read(SESSIONS)?);
    let mut functions = declarations(&sessions)?;
    functions.extend(declarations(&spans)?);
    let words = constant(&spans, "SPAN_WORDS").ok_or_else(|| format!("{SPANS} has no SPAN_WORDS"))?;
    let text = read(TEMPLATE)?
        .replace("@GENERATED@", "Made by `cargo xtask docs` from weft.h.in and the library's source; do not edit.")
        .replace("@SPAN_WORDS@", words)
        .replace("@KINDS@", &kinds(&read(KINDS)?)?)
        .replace("@FUNCTIONS@", &functions.join("\n\n"))
        .replace("@WOVEN@", &declarations(&read(WOVEN)?)?.join("\n\n"));
    Ok((repo::root().join(HEADER), text))
}

/// C declarations of all exported functions of a Rust file, in its order.
fn declarations(source: &str) -> Result<Vec<String>, String> {
    source
        .split("#[unsafe(no_mangle)]\n")
        .skip(1)
        .zip(source.split("#[unsafe(no_mangle)]\n"))
        .map(declaration)
        .collect()
}

/// One declaration, from what stands behind the attribute and what stands before it.
fn declaration((behind, before): (&str, &str)) -> Result<String, String> {
    let signature = behind.split_once('{').map_or(behind, |(signature, _)| signature);
    let fail = || format!("not a signature that a header can have: {}", signature.trim());
    let (name, rest) = signature.split_once("fn ").and_then(|(_, rest)| rest.split_once('(')).ok_or_else(fail)?;
    let (parameters, result) = rest.rsplit_once(')').ok_or_else(fail)?;
    let in_c = |rust: &str| TYPES.iter().find(|(ours, _)| *ours == rust.trim()).map(|(_, theirs)| *theirs);
    let parameters: Option<Vec<String>> = parameters
        .split(',')
        .filter(|parameter| !parameter.trim().is_empty())
        .map(|parameter| {
            let (name, kind) = parameter.split_once(':')?;
            Some(format!("{}{}", in_c(kind)?, name.trim()))
        })
        .collect();
    let parameters = parameters.ok_or_else(fail)?;
    let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    let result = in_c(result.trim().trim_start_matches("->")).ok_or_else(fail)?;
    let about = comment(before).ok_or_else(|| format!("{name} has no doc comment"))?;
    Ok(format!("{about}\n{result}{name}({parameters});"))
}

/// The doc comment at the end of a text as a C comment.
fn comment(text: &str) -> Option<String> {
    let mut lines: Vec<&str> = text.lines().rev().map_while(|line| line.trim().strip_prefix("///")).collect();
    lines.reverse();
    let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
    if words.is_empty() {
        return None;
    }
    let one = format!("/* {} */", words.join(" "));
    if one.len() <= WIDTH {
        return Some(one);
    }
    let mut out = vec![String::from(" *")];
    for word in words {
        if out.last().is_some_and(|line| line.len() + 1 + word.len() > WIDTH) {
            out.push(String::from(" *"));
        }
        if let Some(line) = out.last_mut() {
            line.push(' ');
            line.push_str(word);
        }
    }
    Some(format!("/*\n{}\n */", out.join("\n")))
}

/// The value of a `const` of a Rust file.
fn constant<'a>(source: &'a str, name: &str) -> Option<&'a str> {
    let declared = source.split_once(&format!("const {name}:"))?.1;
    declared.split_once('=')?.1.split_once(';').map(|(value, _)| value.trim())
}

/// The variants of the recorder's `enum EventKind`, with their comments.
fn kinds(source: &str) -> Result<String, String> {
    let body = source.split_once("pub enum EventKind {").and_then(|(_, rest)| rest.split_once('}'));
    let (body, _) = body.ok_or_else(|| format!("{KINDS} has no `pub enum EventKind`"))?;
    let mut out = Vec::new();
    let mut about = String::new();
    for line in body.lines().map(str::trim).filter(|line| !line.is_empty()) {
        match (line.strip_prefix("///"), line.trim_end_matches(',').split_once(" = ")) {
            (Some(text), _) => about.push_str(&format!(" {}", text.trim())),
            (None, Some((name, number))) => {
                out.push(format!("    /*{about} */\n    WEFT_KIND_{} = {number}", upper_snake(name)));
                about.clear();
            }
            (None, None) => return Err(format!("a variant of EventKind without a number: {line}")),
        }
    }
    Ok(out.join(",\n"))
}

/// `AsyncSpan` as `ASYNC_SPAN`.
fn upper_snake(name: &str) -> String {
    let mut out = String::new();
    for (index, letter) in name.chars().enumerate() {
        if index > 0 && letter.is_uppercase() {
            out.push('_');
        }
        out.extend(letter.to_uppercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{constant, declarations, kinds};

    fn check(source: &str, expected: Result<&[&str], &str>) {
        let expected = expected.map(|all| all.iter().map(|one| (*one).to_owned()).collect()).map_err(str::to_owned);
        assert_eq!(declarations(source), expected);
    }

    #[test]
    fn signatures_become_declarations() {
        check(
            "/// Ends it.\n#[unsafe(no_mangle)]\nunsafe extern \"C\" fn weft_end(span: *mut Span) {\n    f();\n}\n\
             /// An id.\n#[unsafe(no_mangle)]\nextern \"C\" fn weft_id() -> u64 {}",
            Ok(&["/* Ends it. */\nvoid weft_end(weft_span *span);", "/* An id. */\nuint64_t weft_id(void);"]),
        );
        check(
            "/// A.\n#[unsafe(no_mangle)]\nextern \"C\" fn f(\n    a: *const c_char,\n    b: f64,\n) -> *const c_char {}",
            Ok(&["/* A. */\nconst char *f(const char *a, double b);"]),
        );
    }

    #[test]
    fn what_c_cannot_say_is_refused() {
        check("#[unsafe(no_mangle)]\nextern \"C\" fn f() {}", Err("f has no doc comment"));
        check(
            "/// A.\n#[unsafe(no_mangle)]\nextern \"C\" fn f(a: String) {}",
            Err("not a signature that a header can have: extern \"C\" fn f(a: String)"),
        );
    }

    #[test]
    fn long_comments_are_wrapped() {
        let source = format!("/// {}\n#[unsafe(no_mangle)]\nextern \"C\" fn f() {{}}", "word ".repeat(40));
        let all = declarations(&source).expect("a function");
        assert!(all[0].starts_with("/*\n * word") && all[0].lines().all(|line| line.len() <= 120), "{all:?}");
    }

    #[test]
    fn kinds_and_constants_are_read() {
        let source =
            "pub enum EventKind {\n    /// A span.\n    Span = 0,\n    /// Its\n    /// start.\n    AsyncBegin = 4,\n}";
        assert_eq!(
            kinds(source).expect("an enum"),
            "    /* A span. */\n    WEFT_KIND_SPAN = 0,\n    /* Its start. */\n    WEFT_KIND_ASYNC_BEGIN = 4"
        );
        assert_eq!(constant("pub const A: usize = 3;\nconst AB: u8 = 4;", "AB"), Some("4"));
    }
}
