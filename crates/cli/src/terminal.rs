//! Colour and units for what people read.

use std::io::IsTerminal;

use crate::args::Color;

/// Whether to colour stdout and stderr.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Terminal {
    stdout: bool,
    stderr: bool,
}

impl Terminal {
    pub(crate) fn new(color: Color) -> Terminal {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let decide = |is_terminal: bool| match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto if set("NO_COLOR") => false,
            Color::Auto => set("CLICOLOR_FORCE") || (is_terminal && !dumb),
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

/// `12,345`
pub(crate) fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// `1.2 GiB`
pub(crate) fn bytes(n: u64) -> String {
    let mut value = n as f64;
    let mut unit = 0;
    const UNITS: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{n} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// `1.23 s`, `4.5 ms`, `830 ns`
pub(crate) fn time(ns: u64) -> String {
    match ns {
        0..1_000 => format!("{ns} ns"),
        1_000..1_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        1_000_000_000..600_000_000_000 => format!("{:.2} s", ns as f64 / 1e9),
        _ => {
            let seconds = ns / 1_000_000_000;
            format!("{} h {:02} min {:02} s", seconds / 3600, seconds / 60 % 60, seconds % 60)
        }
    }
}

/// An error with its causes, without those that the text before already tells.
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

/// Control characters in names must not reach the terminal.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units() {
        assert_eq!((count(0), count(999), count(1_234_567)), ("0".into(), "999".into(), "1,234,567".into()));
        assert_eq!((bytes(1023), bytes(1536), bytes(5 << 30)), ("1023 B".into(), "1.5 KiB".into(), "5.0 GiB".into()));
        assert_eq!(
            (time(830), time(1_500_000), time(7_325_000_000_000)),
            ("830 ns".into(), "1.5 ms".into(), "2 h 02 min 05 s".into())
        );
        assert_eq!(printable("a\x1b[31m\nb"), "a\u{fffd}[31m\u{fffd}b");
    }

    #[test]
    fn tables_align() {
        let rows = [vec!["a".into(), "1".into()], vec!["long".into(), "22".into()]];
        assert_eq!(table(&rows, " "), " a      1\n long  22\n");
    }
}
