//! A report for people at a terminal.

use weftline_analysis::findings::{Finding, Severity};
use weftline_analysis::table::Field;

use crate::units::{self, heading, printable, shown, sparkline};
use crate::{Report, Section, Shape};

/// Colours text, or does not.
pub trait Paint {
    /// Headings.
    fn strong(&self, text: &str) -> String;
    /// What matters less.
    fn dim(&self, text: &str) -> String;
    /// What is wrong.
    fn bad(&self, text: &str) -> String;
}

/// No colour.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plain;

impl Paint for Plain {
    fn strong(&self, text: &str) -> String {
        text.to_owned()
    }
    fn dim(&self, text: &str) -> String {
        text.to_owned()
    }
    fn bad(&self, text: &str) -> String {
        text.to_owned()
    }
}

/// Names longer than this lose their middle.
const LONGEST_NAME: usize = 60;

/// The report, for a terminal of a width.
pub fn text(report: &Report, width: usize, paint: &dyn Paint) -> String {
    let width = width.clamp(60, 200);
    let mut out = String::from("\n");
    let widest = report.facts.iter().map(|fact| fact.label.chars().count()).max().unwrap_or(0).max(3);
    let label = |label: &str| paint.dim(&format!("{label:>widest$}"));
    out.push_str(&format!("  {}  {}\n", label("run"), paint.strong(&printable(&report.title))));
    for fact in report.facts.iter().filter(|fact| !fact.shown.is_empty()) {
        let value = if fact.alarming { paint.bad(&fact.shown) } else { fact.shown.clone() };
        out.push_str(&format!("  {}  {value}\n", label(fact.label)));
    }
    for section in report.sections.iter().filter(|section| section.table.rows > 0) {
        out.push('\n');
        out.push_str(&paint_section(section, width, paint));
    }
    out.push('\n');
    out.push_str(&findings(report, width, paint));
    out
}

fn paint_section(section: &Section, width: usize, paint: &dyn Paint) -> String {
    let mut out = format!("  {}\n", paint.strong(&section.title));
    match section.shape {
        Shape::Table => out.push_str(&rows(section, paint)),
        Shape::Bars => out.push_str(&bars(section, width)),
        Shape::Timeline => out.push_str(&timeline(section, width, paint)),
    }
    if let Some(note) = &section.note {
        for line in wrap(note, width - 4) {
            out.push_str(&format!("  {}\n", paint.dim(&line)));
        }
    }
    out
}

fn rows(section: &Section, paint: &dyn Paint) -> String {
    let columns: Vec<&str> =
        section.columns.iter().copied().filter(|name| section.table.column(name).is_some()).collect();
    let count = section.table.rows.min(section.rows);
    let mut cells = vec![columns.iter().map(|name| heading(name)).collect::<Vec<_>>()];
    for row in 0..count {
        let cell = |name: &&str| shorten(&shown(name, section.table.get(row, name)), LONGEST_NAME);
        cells.push(columns.iter().map(cell).collect());
    }
    let left: Vec<bool> = columns
        .iter()
        .map(|name| (0..count).any(|row| matches!(section.table.get(row, name), Field::Text(_))))
        .collect();
    let mut out = String::new();
    for (place, line) in align(&cells, &left).into_iter().enumerate() {
        let line = if place == 0 { paint.dim(&line) } else { line };
        out.push_str(&format!("  {line}\n"));
    }
    if section.table.rows > count {
        let more = units::count((section.table.rows - count) as u64);
        out.push_str(&format!("  {}\n", paint.dim(&format!("… and {more} more"))));
    }
    out
}

/// Lines of cells of equal widths: texts to the left, numbers to the right.
pub fn align(rows: &[Vec<String>], left: &[bool]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..left.len()).map(width).collect();
    rows.iter()
        .map(|row| {
            let cells =
                row.iter().zip(&widths).zip(left).map(|((cell, width), left)| {
                    if *left { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        })
        .collect()
}

fn bars(section: &Section, width: usize) -> String {
    let [name, length, others @ ..] = section.columns.as_slice() else { return String::new() };
    let numbers: Vec<f64> =
        (0..section.table.rows).map(|row| section.table.get(row, length).number().unwrap_or(0.0)).collect();
    let most = numbers.iter().copied().fold(0.0, f64::max);
    let cells: Vec<Vec<String>> = (0..section.table.rows)
        .map(|row| {
            let all = [name, length].into_iter().chain(others);
            all.map(|column| shown(column, section.table.get(row, column))).collect()
        })
        .collect();
    let left: Vec<bool> = (0..section.columns.len()).map(|place| place == 0).collect();
    let lines = align(&cells, &left);
    let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(longest + 6).clamp(10, 40);
    let mut out = String::new();
    for (line, number) in lines.iter().zip(numbers) {
        let filled = if most > 0.0 { (number / most * room as f64).ceil() as usize } else { 0 };
        out.push_str(&format!("  {line:<longest$}  {}\n", "█".repeat(filled)).replace(" \n", "\n"));
    }
    out
}

fn timeline(section: &Section, width: usize, paint: &dyn Paint) -> String {
    let [_, lines @ ..] = section.columns.as_slice() else { return String::new() };
    let widest = lines.iter().map(|name| heading(name).chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(widest + 24).max(20);
    let mut out = String::new();
    for name in lines {
        let values: Vec<f64> =
            (0..section.table.rows).map(|row| section.table.get(row, name).number().unwrap_or(0.0)).collect();
        let most = values.iter().copied().fold(0.0, f64::max);
        let label = paint.dim(&format!("{:>widest$}", heading(name)));
        out.push_str(&format!("  {label}  {}  {}\n", sparkline(&values, room), shown(name, Field::Float(most))));
    }
    out
}

fn findings(report: &Report, width: usize, paint: &dyn Paint) -> String {
    let mut out = format!("  {}\n", paint.strong("findings"));
    if report.findings.is_empty() {
        out.push_str("  nothing to fix was found\n");
    }
    for finding in &report.findings {
        out.push_str(&one(finding, width, paint));
    }
    for skipped in &report.skipped {
        out.push_str(&format!("  {}\n", paint.dim(&format!("not judged: {}", printable(skipped)))));
    }
    out
}

fn one(finding: &Finding, width: usize, paint: &dyn Paint) -> String {
    let word = format!("{:>8}", finding.severity.word());
    let word = if finding.severity >= Severity::High { paint.bad(&word) } else { paint.strong(&word) };
    let mut out =
        format!("  {word}  {}  {}\n", paint.strong(&finding.title), paint.dim(&format!("({})", finding.rule)));
    let mut add = |label: &str, text: &str| {
        for (place, line) in wrap(&printable(text), width - 14).into_iter().enumerate() {
            let label = if place == 0 { label } else { "" };
            out.push_str(&format!("  {}  {line}\n", paint.dim(&format!("{label:>8}"))));
        }
    };
    add("", &finding.what);
    if !finding.place.files.is_empty() {
        let more = finding.place.file_count.saturating_sub(finding.place.files.len() as u64);
        let more = if more > 0 { format!(" and {} more", units::count(more)) } else { String::new() };
        add("files", &format!("{}{more}", finding.place.files.join(", ")));
    }
    add("do", &finding.advice);
    // In one line, so that it can be copied.
    let query = finding.query.replace('"', "\\\"");
    out.push_str(&format!("  {}  weft query \"{}\"\n", paint.dim(&format!("{:>8}", "show")), printable(&query)));
    out
}

/// A text in lines of at most a width, cut between words.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

/// A long name without its middle: both ends of a path tell most.
pub fn shorten(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let tail = most * 2 / 3;
    let head: String = text.chars().take(most - tail - 1).collect();
    let end: String = text.chars().skip(count - tail).collect();
    format!("{head}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable", 3), ["unbreakable"]);
        assert_eq!(shorten("/a/very/long/path/to/file.dat", 16), "/a/ve…o/file.dat");
        assert_eq!(shorten("short", 16), "short");
    }
}
