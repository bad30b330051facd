//! Colour and units of terminal output.

use std::io::IsTerminal;
use std::path::PathBuf;

pub(crate) use weftline_analysis::units::{
    bytes, count, counted, path_as_text, percent, percent_floor, printable, tenths, time,
};

use crate::args::Color;

/// Conventions that other programs follow too: no colour, colour in any case, and what the terminal can do.
pub(crate) const COLOR_VARIABLES: [&str; 3] = ["NO_COLOR", "CLICOLOR_FORCE", "TERM"];

/// Whether to colour stdout and stderr.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    stdout: bool,
    stderr: bool,
}

impl Terminal {
    pub(crate) fn new(color: Color) -> Terminal {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let [no_color, force, term] = COLOR_VARIABLES;
        let dumb = std::env::var_os(term).is_some_and(|term| term == "dumb");
        let decide = |is_terminal: bool| match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto if set(no_color) => false,
            Color::Auto => set(force) || (is_terminal && !dumb),
        };
        Terminal { stdout: decide(std::io::stdout().is_terminal()), stderr: decide(std::io::stderr().is_terminal()) }
    }

    pub(crate) fn stdout(self) -> Paint {
        Paint(self.stdout)
    }

    pub(crate) fn stderr(self) -> Paint {
        Paint(self.stderr)
    }
}

/// Colours text, or does not.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint(bool);

impl Paint {
    fn wrap(self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    pub(crate) fn strong(self, text: &str) -> String {
        self.wrap("1", text)
    }

    pub(crate) fn dim(self, text: &str) -> String {
        self.wrap("2", text)
    }

    pub(crate) fn good(self, text: &str) -> String {
        self.wrap("32", text)
    }

    pub(crate) fn bad(self, text: &str) -> String {
        self.wrap("1;31", text)
    }
}

impl weftline_report::text::Paint for Paint {
    fn strong(&self, text: &str) -> String {
        (*self).strong(text)
    }
    fn dim(&self, text: &str) -> String {
        (*self).dim(text)
    }
    fn bad(&self, text: &str) -> String {
        (*self).bad(text)
    }
}

/// An error with its causes, without those that the text before already contains.
pub(crate) fn chain(error: &anyhow::Error) -> String {
    let mut out = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if out.is_empty() {
            out = cause;
        } else if !out.contains(&cause) {
            out.push_str(": ");
            out.push_str(&cause);
        }
    }
    out
}

/// A table: the first column left, the others right.
pub(crate) fn table(rows: &[Vec<String>], indent: &str) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|i| rows.iter().filter_map(|row| row.get(i)).map(|cell| cell.chars().count()).max().unwrap_or(0))
        .collect();
    let mut out = String::new();
    for row in rows {
        out.push_str(indent);
        for (i, cell) in row.iter().enumerate() {
            let padding = " ".repeat(widths[i] - cell.chars().count());
            if i == 0 {
                out.push_str(cell);
                out.push_str(&padding);
            } else {
                out.push_str("  ");
                out.push_str(&padding);
                out.push_str(cell);
            }
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// A path in JSON, where there may be none.
pub(crate) fn maybe_path_as_text<S: serde::Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => path_as_text(path, to),
        None => to.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_align() {
        let rows = [vec!["a".into(), "1".into()], vec!["long".into(), "22".into()]];
        assert_eq!(table(&rows, " "), " a      1\n long  22\n");
    }
}
