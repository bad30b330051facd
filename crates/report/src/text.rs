//! A report as text for a terminal.

use weftline_analysis::findings::{Finding, Severity};
use weftline_analysis::table::{Column, Field, ValueKind};
use weftline_analysis::units::{self, printable};

use crate::sparkline::{curve, sparkline};
use crate::{Property, Report, Section, Shape};

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

/// The report, for a terminal of a width: the verdict, the properties, the findings, then the tables.
pub fn text(report: &Report, width: usize, paint: &dyn Paint) -> String {
    let width = width.clamp(60, 200);
    let mut out = String::from("\n");
    if let Some(headline) = &report.headline {
        out.push_str(&verdict(headline, report.findings.first(), width, paint));
    }
    out.push_str(&properties(&report.title, &report.properties, width, paint));
    out.push_str(&findings(report, width, paint));
    for section in report.sections.iter().filter(|section| section.is_shown()) {
        out.push('\n');
        out.push_str(&paint_section(section, width, paint));
    }
    out
}

/// The first sentence.
pub fn verdict(headline: &str, worst: Option<&Finding>, width: usize, paint: &dyn Paint) -> String {
    let bad = worst.is_some_and(|finding| finding.severity >= Severity::High);
    let lines = wrap(&printable(headline), width.saturating_sub(4));
    let painted = lines.iter().map(|line| if bad { paint.bad(line) } else { paint.strong(line) });
    painted.map(|line| format!("  {line}\n")).collect::<String>() + "\n"
}

/// What is known of the run as a whole.
pub fn properties(title: &str, properties: &[Property], width: usize, paint: &dyn Paint) -> String {
    let shown = || properties.iter().filter(|property| !property.shown.is_empty());
    let widest = shown().map(|property| property.label.chars().count()).max().unwrap_or(0).max(3);
    let mut out = format!("  {}  {}\n", paint.dim(&format!("{:>widest$}", "run")), paint.strong(&printable(title)));
    for property in shown() {
        for (place, line) in wrap(&property.shown, width.saturating_sub(widest + 4)).into_iter().enumerate() {
            let label = paint.dim(&format!("{:>widest$}", if place == 0 { property.label } else { "" }));
            let line = if property.alarming { paint.bad(&line) } else { line };
            out.push_str(&format!("  {label}  {line}\n"));
        }
    }
    out
}

fn paint_section(section: &Section, width: usize, paint: &dyn Paint) -> String {
    let mut out = format!("  {}\n", paint.strong(&section.title));
    match section.shape {
        Shape::Table => out.push_str(&rows(section, width, paint)),
        Shape::Bars => out.push_str(&bars(section, width, paint)),
        Shape::Timeline => out.push_str(&timeline(section, width, paint)),
    }
    if let Some(note) = &section.note {
        for line in wrap(note, width - 4) {
            out.push_str(&format!("  {}\n", paint.dim(&line)));
        }
    }
    out
}

fn rows(section: &Section, width: usize, paint: &dyn Paint) -> String {
    let shown: Vec<usize> = section.shown_rows().take(section.rows).collect();
    let all = section.shown_rows().count();
    let columns: Vec<&Column> = section.shown_columns().collect();
    let is = |kind: ValueKind| columns.iter().map(move |column| column.values.kind() == kind);
    let left: Vec<bool> = is(ValueKind::Text).zip(is(ValueKind::Curve)).map(|(text, curve)| text || curve).collect();
    let curves = is(ValueKind::Curve).any(|curve| curve);
    let cell = |line: usize, place: usize, room: Room| match line.checked_sub(1).map(|line| shown[line]) {
        None => crate::heading(columns[place]),
        Some(row) => match columns[place].values.get(row) {
            Field::Curve(points) => curve(points, room.curve),
            _ => shorten(&columns[place].shown(row), room.name),
        },
    };
    let lines = fit_cells(shown.len() + 1, &left, curves, width.saturating_sub(2), cell);
    let mut out = String::new();
    for (place, line) in lines.into_iter().enumerate() {
        let line = if place == 0 { paint.dim(&line) } else { line };
        out.push_str(&format!("  {line}\n"));
    }
    if all > shown.len() {
        let more = units::count((all - shown.len()) as u64);
        out.push_str(&format!("  {}\n", paint.dim(&format!("… and {more} more"))));
    }
    out
}

/// Lines of a table with a heading, in a width. `left`: which columns are texts.
pub fn fit(cells: &[Vec<String>], left: &[bool], width: usize) -> Vec<String> {
    fit_cells(cells.len(), left, false, width, |line, column, room| {
        let cell = &cells[line][column];
        if left[column] { shorten(cell, room.name) } else { cell.clone() }
    })
}

/// How long names and curves may be.
#[derive(Clone, Copy)]
struct Room {
    name: usize,
    curve: usize,
}

/// Lines of cells that are made to fit. The columns stand in the order of their weight: what does not fit goes, the last one first, once curves and
/// names are short.
fn fit_cells(
    lines: usize,
    left: &[bool],
    curves: bool,
    width: usize,
    cell: impl Fn(usize, usize, Room) -> String,
) -> Vec<String> {
    const LONGEST: Room = Room { name: LONGEST_NAME, curve: LONGEST_CURVE };
    let (mut columns, mut room) = (left.len(), LONGEST);
    loop {
        let cells: Vec<Vec<String>> =
            (0..lines).map(|line| (0..columns).map(|column| cell(line, column, room)).collect()).collect();
        let aligned = align(&cells, &left[..columns]);
        let fits = aligned.iter().all(|line| line.chars().count() <= width);
        if fits || columns <= 2 && room.name <= SHORTEST_NAME {
            return aligned;
        } else if curves && room.curve > SHORTEST_CURVE {
            room.curve -= 1;
        } else if room.name > SHORTEST_NAME {
            room.name = (room.name - 4).max(SHORTEST_NAME);
        } else {
            columns -= 1;
            room = LONGEST;
        }
    }
}

/// Names are at most so long …
const LONGEST_NAME: usize = 60;
/// … and not shortened below this, rather is a column left out.
const SHORTEST_NAME: usize = 24;

/// Curves are at most so wide …
const LONGEST_CURVE: usize = 48;
/// … and not drawn below this.
const SHORTEST_CURVE: usize = 16;

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

fn bars(section: &Section, width: usize, paint: &dyn Paint) -> String {
    let columns: Vec<&Column> = section.shown_columns().collect();
    let [_, length, ..] = columns.as_slice() else { return String::new() };
    let numbers = length.numbers();
    let most = numbers.iter().copied().fold(0.0, f64::max);
    let mut cells = vec![columns.iter().map(|column| crate::heading(column)).collect::<Vec<_>>()];
    cells.extend((0..section.table.rows).map(|row| columns.iter().map(|column| column.shown(row)).collect()));
    let left: Vec<bool> = (0..columns.len()).map(|place| place == 0).collect();
    let lines = align(&cells, &left);
    let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(longest + 6).clamp(10, 40);
    let mut out = format!("  {}\n", paint.dim(&lines[0]));
    for (line, number) in lines[1..].iter().zip(numbers) {
        let filled = if most > 0.0 { (number / most * room as f64).ceil() as usize } else { 0 };
        out.push_str(&format!("  {line:<longest$}  {}\n", "█".repeat(filled)).replace(" \n", "\n"));
    }
    out
}

fn timeline(section: &Section, width: usize, paint: &dyn Paint) -> String {
    let lines: Vec<&Column> = section.shown_columns().skip(1).collect();
    let widest = lines.iter().map(|column| crate::heading(column).chars().count()).max().unwrap_or(0);
    let room = width.saturating_sub(widest + 24).max(20);
    let mut out = String::new();
    for column in lines {
        let values = column.numbers();
        let most = values.iter().copied().fold(0.0, f64::max);
        let label = paint.dim(&format!("{:>widest$}", crate::heading(column)));
        out.push_str(&format!("  {label}  {}  {}\n", sparkline(&values, room), units::number(column.unit, most)));
    }
    out
}

fn findings(report: &Report, width: usize, paint: &dyn Paint) -> String {
    let mut out = String::new();
    if !report.findings.is_empty() {
        out.push_str(&format!("\n  {}\n", paint.strong("findings")));
    }
    for finding in &report.findings {
        out.push_str(&in_short(finding, width, paint));
    }
    if !report.findings.is_empty() {
        let hint = "--explain RULE shows the evidence of a finding, and a query for more";
        for line in wrap(hint, width - 14) {
            out.push_str(&format!("  {:>8}  {}\n", "", paint.dim(&line)));
        }
    }
    for skipped in &report.skipped {
        out.push_str(&format!("  {}\n", paint.dim(&format!("not judged: {}", printable(skipped)))));
    }
    out
}

fn heading(finding: &Finding, width: usize, paint: &dyn Paint) -> String {
    let word = format!("{:>8}", finding.severity.word());
    let word = if finding.severity >= Severity::High { paint.bad(&word) } else { paint.strong(&word) };
    let cost = match finding.at_stake.time_ns {
        0 => String::new(),
        ns => format!(": {} ({})", units::time(ns.max(0) as u64), units::percent(finding.at_stake.share)),
    };
    let rule = format!("[{}]", finding.rule);
    let taken = 14 + finding.title.chars().count() + cost.chars().count() + rule.chars().count();
    // Where both do not fit into a line, the rule has one of its own.
    let between = if taken <= width { "  ".to_owned() } else { format!("\n{:12}", "") };
    format!("  {word}  {}{cost}{between}{}\n", paint.strong(&finding.title), paint.dim(&rule))
}

/// A paragraph below a heading of a finding.
fn paragraph(label: &str, text: &str, width: usize, paint: &dyn Paint) -> String {
    let lines = wrap(&printable(text), width.saturating_sub(14)).into_iter().enumerate();
    let label = |place: usize| paint.dim(&format!("{:>8}", if place == 0 { label } else { "" }));
    lines.map(|(place, line)| format!("  {}  {line}\n", label(place))).collect()
}

/// A finding in two lines: what it costs, and what to do.
fn in_short(finding: &Finding, width: usize, paint: &dyn Paint) -> String {
    let file = finding.place.files.first().map(|file| {
        let more = finding.place.file_count.saturating_sub(1);
        let more = if more > 0 { format!(" and {} more", units::count(more)) } else { String::new() };
        format!("{}{more}: ", shorten(file, LONGEST_NAME.min(width - 14)))
    });
    // What costs no time is said in full: it is about the trace, not about the program.
    let text = match finding.at_stake.time_ns {
        0 => format!("{} {}", finding.what, finding.advice),
        _ => format!("{}{}", file.unwrap_or_default(), finding.advice),
    };
    format!("{}{}", heading(finding, width, paint), paragraph("", &text, width, paint))
}

/// A finding in full. `runs`: what `weft query` is to be asked about.
pub fn explanation(finding: &Finding, runs: &[String], width: usize, paint: &dyn Paint) -> String {
    let width = width.clamp(60, 200);
    let mut out = heading(finding, width, paint);
    out.push_str(&paragraph("", &finding.what, width, paint));
    let more = |shown: usize, all: u64| match all.saturating_sub(shown as u64) {
        0 => String::new(),
        more => format!(" and {} more", units::count(more)),
    };
    let place = &finding.place;
    if !place.files.is_empty() {
        let list = format!("{}{}", place.files.join(", "), more(place.files.len(), place.file_count));
        out.push_str(&paragraph("files", &list, width, paint));
    }
    if !place.processes.is_empty() {
        let names: Vec<String> = place.processes.iter().map(ToString::to_string).collect();
        let list = format!("{}{}", names.join(", "), more(names.len(), place.process_count));
        out.push_str(&paragraph("who", &list, width, paint));
    }
    out.push_str(&paragraph("do", &finding.advice, width, paint));
    // In one line, so that it can be copied.
    let label = paint.dim(&format!("{:>8}", "show"));
    out.push_str(&format!("  {label}  {}\n", printable(&query(finding, runs))));
    out
}

/// The command that shows a finding again, as a shell takes it.
pub(crate) fn query(finding: &Finding, runs: &[String]) -> String {
    let runs: String = runs.iter().map(|run| format!("{} ", shell_word(run))).collect();
    format!("weft query {runs}\"{}\"", finding.query.replace('"', "\\\""))
}

/// A word as a shell takes it.
fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%=,".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

/// A text in lines of at most a width, cut between words.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in words(text) {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word);
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(&word);
        }
    }
    lines
}

/// The words of a text. A unit stays with its number: `12.5 %`, `3.00 s`.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let is_unit = UNITS.contains(&word.trim_end_matches([',', ';', '.', ':', ')']));
        match words.last_mut().filter(|before| is_unit && before.ends_with(|c: char| c.is_ascii_digit())) {
            Some(number) => {
                number.push(' ');
                number.push_str(word);
            }
            None => words.push(word.to_owned()),
        }
    }
    words
}

const UNITS: [&str; 13] = ["%", "ns", "µs", "ms", "s", "min", "h", "B", "KiB", "MiB", "GiB", "TiB", "PiB"];

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

/// A long sentence without its end.
pub fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let head: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts() {
        assert_eq!((cut("one two three", 9), cut("one", 3)), ("one two…".to_owned(), "one".to_owned()));
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("unbreakable", 3), ["unbreakable"]);
        assert_eq!(wrap("other 0 %, took 12.5 s.", 12), ["other 0 %,", "took 12.5 s."]);
        assert_eq!(wrap("waits 70.0 % (of", 11), ["waits", "70.0 % (of"]);
        assert_eq!(shorten("/a/very/long/path/to/file.dat", 16), "/a/ve…o/file.dat");
        assert_eq!(shorten("short", 16), "short");
        assert_eq!((shell_word("runs/a"), shell_word("it's")), ("runs/a".to_owned(), "'it'\\''s'".to_owned()));
    }

    #[test]
    fn every_run_is_a_word_of_its_own() {
        let finding = Finding {
            rule: "small-reads".to_owned(),
            severity: Severity::Low,
            score: 0.1,
            title: String::new(),
            what: "It is so.".to_owned(),
            place: Default::default(),
            at_stake: Default::default(),
            advice: "Do it.".to_owned(),
            query: "SELECT \"x\" FROM events".to_owned(),
        };
        let runs = ["runs/a".to_owned(), "runs/b c".to_owned()];
        let shown = explanation(&finding, &runs, 80, &Plain);
        let expected = "weft query runs/a 'runs/b c' \"SELECT \\\"x\\\" FROM events\"\n";
        assert!(shown.ends_with(expected), "{shown}");
    }

    #[test]
    fn tables_fit() {
        let long = "/a/very/long/path/that/takes/more/than/there/is/in/a/narrow/terminal/file.dat".to_owned();
        let cells =
            [vec!["file".to_owned(), "reads".into(), "bytes".into()], vec![long, "1,024".into(), "6.0 MiB".into()]];
        let left = [true, false, false];
        for (width, columns) in [(100, 3), (60, 3), (42, 3), (36, 2), (10, 2)] {
            let lines = fit(&cells, &left, width);
            assert!(width < 32 || lines.iter().all(|line| line.chars().count() <= width), "{width}: {lines:#?}");
            assert_eq!(lines[0].split_whitespace().count(), columns, "{width}: {lines:#?}");
        }
    }
}
