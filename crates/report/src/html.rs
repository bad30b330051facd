//! A report as an HTML page: one file that loads nothing from the network, works without scripts and prints well.

use std::fmt::Write as _;

use weftline_analysis::findings::{Finding, Severity};
use weftline_analysis::table::{Column, Curve, Field, ValueKind};
use weftline_analysis::units;

use crate::{Report, Section, Shape};

/// Rows of a table that are shown; the other forms have all.
const MOST_ROWS: usize = 200;
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 90.0;

/// The page.
pub fn page(report: &Report) -> String {
    let mut out = String::new();
    let title = escape(&report.title);
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>{STYLE}</style>\n<h1>{title}</h1>\n"
    );
    if let Some(headline) = &report.headline {
        let _ = writeln!(out, "<p class=\"verdict\">{}</p>", escape(headline));
    }
    out.push_str("<dl class=\"properties\">\n");
    for property in report.properties.iter().filter(|property| !property.shown.is_empty()) {
        let class = if property.alarming { " class=\"bad\"" } else { "" };
        let _ = writeln!(out, "<dt>{}</dt><dd{class}>{}</dd>", escape(property.label), escape(&property.shown));
    }
    out.push_str("</dl>\n");
    write_findings(&mut out, report);
    for section in report.sections.iter().filter(|section| section.is_shown()) {
        write_section(&mut out, section);
    }
    out.push_str("</html>\n");
    out
}

fn write_findings(out: &mut String, report: &Report) {
    if !report.findings.is_empty() {
        out.push_str("<h2>Findings</h2>\n");
    }
    for finding in &report.findings {
        write_finding(out, finding, &report.runs);
    }
    for skipped in &report.skipped {
        let _ = writeln!(out, "<p class=\"note\">Not judged: {}</p>", escape(skipped));
    }
}

fn write_finding(out: &mut String, finding: &Finding, runs: &[String]) {
    let class = match finding.severity {
        Severity::Critical | Severity::High => "high",
        Severity::Medium => "medium",
        Severity::Low => "low",
    };
    let _ = write!(
        out,
        "<details class=\"finding {class}\"{}>\n<summary><b>{}</b> {} <code>{}</code></summary>\n<p>{}</p>\n",
        if class == "high" { " open" } else { "" },
        finding.severity.word(),
        escape(&finding.title),
        escape(&finding.rule),
        escape(&finding.what)
    );
    if !finding.place.files.is_empty() {
        out.push_str("<ul>\n");
        for file in &finding.place.files {
            let _ = writeln!(out, "<li><code>{}</code></li>", escape(file));
        }
        let more = finding.place.file_count.saturating_sub(finding.place.files.len() as u64);
        if more > 0 {
            let _ = writeln!(out, "<li>and {} more</li>", units::count(more));
        }
        out.push_str("</ul>\n");
    }
    let (advice, command) = (escape(&finding.advice), escape(&crate::text::query(finding, runs)));
    let _ = write!(out, "<p class=\"advice\">{advice}</p>\n<pre>{command}</pre>\n</details>\n");
}

fn write_section(out: &mut String, section: &Section) {
    let (key, title) = (escape(&section.key), escape(&section.title));
    let _ = writeln!(out, "<section id=\"{key}\">\n<h2>{title}</h2>");
    match section.shape {
        Shape::Timeline => write_timeline(out, section),
        Shape::Table | Shape::Bars => write_rows(out, section),
    }
    if let Some(note) = &section.note {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", escape(note));
    }
    out.push_str("</section>\n");
}

fn write_rows(out: &mut String, section: &Section) {
    let columns: Vec<&Column> = section.shown_columns().collect();
    let class = |column: &Column| match column.values.kind() {
        ValueKind::Text => "",
        ValueKind::Curve => " class=\"c\"",
        ValueKind::Int | ValueKind::Float => " class=\"n\"",
    };
    out.push_str("<table>\n<tr>");
    for column in &columns {
        let _ = write!(out, "<th{}>{}</th>", class(column), escape(&crate::heading(column)));
    }
    out.push_str("</tr>\n");
    let lengths = match (section.shape, columns.as_slice()) {
        (Shape::Bars, [_, length, ..]) => length.numbers(),
        _ => Vec::new(),
    };
    let most = lengths.iter().copied().fold(0.0, f64::max);
    let rows = section.shown_rows().count();
    for row in section.shown_rows().take(MOST_ROWS) {
        out.push_str("<tr>");
        for (place, column) in columns.iter().enumerate() {
            let bar = match lengths.get(row) {
                Some(length) if place == 1 && most > 0.0 => format!(" style=\"--part:{:.1}%\"", length / most * 100.0),
                _ => String::new(),
            };
            let cell = match column.values.get(row) {
                Field::Curve(curve) => spark(curve),
                _ => escape(&column.shown(row)),
            };
            let _ = write!(out, "<td{}{bar}>{cell}</td>", class(column));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table>\n");
    if rows > MOST_ROWS {
        let more = units::count((rows - MOST_ROWS) as u64);
        let _ = writeln!(out, "<p class=\"note\">… and {more} more rows; --csv writes all</p>");
    }
}

/// A small curve, filled down to zero, with gaps where nothing is known.
fn spark(curve: &Curve) -> String {
    let (width, height, top) = (curve.points.len(), 20.0, curve.top());
    let mut path = String::new();
    for (place, point) in curve.points.iter().enumerate() {
        if let Some(point) = point.filter(|point| *point > 0.0) {
            let _ = write!(path, "M{place} {height}V{:.1}h1V{height}Z", height - point / top * height);
        }
    }
    format!(
        "<svg viewBox=\"0 0 {width} {height}\" preserveAspectRatio=\"none\" role=\"img\"><path d=\"{path}\"/></svg>"
    )
}

/// A curve per column, filled down to zero.
fn write_timeline(out: &mut String, section: &Section) {
    let columns: Vec<&Column> = section.shown_columns().collect();
    let [bucket, lines @ ..] = columns.as_slice() else { return };
    let last = section.table.rows.saturating_sub(1);
    let ends = [0, last].map(|row| escape(&bucket.shown(row)));
    for column in lines {
        let values = column.numbers();
        let most = values.iter().copied().fold(0.0, f64::max);
        let _ = writeln!(
            out,
            "<figure><figcaption>{}, at most {}</figcaption>",
            escape(&crate::heading(column)),
            escape(&units::number(column.unit, most))
        );
        let step = WIDTH / values.len().max(1) as f64;
        let mut path = format!("M0 {HEIGHT}");
        for (place, value) in values.iter().enumerate() {
            let y = if most > 0.0 { HEIGHT - value / most * HEIGHT } else { HEIGHT };
            let _ = write!(path, "L{:.1} {y:.1}L{:.1} {y:.1}", place as f64 * step, (place + 1) as f64 * step);
        }
        let _ = writeln!(
            out,
            "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\"><path d=\"{path}L{WIDTH} {HEIGHT}Z\"/></svg>\n\
             <div class=\"axis\"><span>{}</span><span>{}</span></div></figure>",
            ends[0], ends[1]
        );
    }
}

/// Text within HTML. Control characters have no place there.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

const STYLE: &str = "
:root { color-scheme: light dark; --line: #8884; --mark: #3b82c4; --bad: #c0392b; --warn: #b7791f; }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.3rem; } .verdict { font-size: 1.15rem; font-weight: 600; } h1 { overflow-wrap: anywhere; } h2 { font-size: 1.05rem; margin: 1.8rem 0 .5rem; }
dl.properties { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; } dt { opacity: .65; } dd { margin: 0; } .bad { color: var(--bad); font-weight: 600; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; } th { text-align: left; opacity: .65; font-weight: 500; }
th, td { padding: .18rem .6rem .18rem 0; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; } th.n, td.n { text-align: right; } td.n { white-space: nowrap; }
td[style] { background: linear-gradient(to right, color-mix(in srgb, var(--mark) 35%, transparent) var(--part), transparent 0); }
svg { width: 100%; height: 90px; display: block; border-bottom: 1px solid var(--line); } path { fill: var(--mark); fill-opacity: .55; }
td.c { width: 35%; } td.c svg { height: 1.3rem; } figure { margin: 0 0 1rem; } figcaption, .note, .axis { opacity: .7; font-size: .9em; } .axis { display: flex; justify-content: space-between; }
.finding { border-left: 4px solid var(--line); padding: .3rem .8rem; margin: .5rem 0; } .finding.high { border-color: var(--bad); } .finding.medium { border-color: var(--warn); }
summary { cursor: pointer; } .advice { font-weight: 500; } pre { overflow-x: auto; padding: .5rem; background: #8881; white-space: pre-wrap; } code { font-size: .92em; }
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_become_markup() {
        assert_eq!(
            escape("<img src=x onerror=\"a&b\">\u{1b}"),
            "&lt;img src=x onerror=&quot;a&amp;b&quot;&gt;\u{fffd}"
        );
    }
}
