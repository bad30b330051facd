//! A picture as lines of text: a function of the picture, the view and the terminal's size.
//!
//! No line is wider than the terminal and there are never more lines than it has, whatever names hold and however small it is.

use unicode_width::UnicodeWidthChar as _;
use weftline_drain::glance::picture::{Heat, Picture, Process, State};

use super::view::{Sort, View};
use crate::terminal::{Paint, count, percent, percent_floor, printable, tenths, time};

/// Columns that the command must have; others give way for it.
const LEAST_NAME: usize = 12;

const HELP: [&str; 17] = [
    "c m r w e   sort by CPU time, memory, bytes read, bytes",
    "            written, events",
    "/           show processes whose name holds a text, or",
    "            one pid; Enter keeps the filter, Esc ends it",
    "up down     scroll; PgUp PgDn Home End",
    "p           pause, and go on",
    "? h         this page",
    "q Ctrl-C    quit",
    "",
    "CPU%, RSS, READ/s and WRITE/s are the kernel's; EV/s are",
    "events of the trace. Calls and files are those of the last",
    "seconds; TIME is the part of each second spent in them,",
    "over all threads.",
    "",
    "A program that is faster than this view can look is seen",
    "in part: its events are all counted, its calls and files",
    "are a sample.",
];

/// Draws the whole screen.
pub(crate) fn draw(picture: &Picture, view: &View, width: usize, height: usize, paint: Paint) -> Vec<String> {
    let mut lines = Lines { width, height, list: Vec::new() };
    heading(picture, view, &mut lines, paint);
    if view.help {
        lines.skip();
        for line in HELP.iter().take(height.saturating_sub(lines.list.len() + 1)) {
            lines.push(line, |text| text.to_owned());
        }
    } else {
        body(picture, view, &mut lines, paint);
    }
    while lines.list.len() + 1 < height {
        lines.skip();
    }
    footer(picture, view, &mut lines, paint);
    lines.list.truncate(height);
    lines.list
}

/// Lines that fit.
struct Lines {
    width: usize,
    height: usize,
    list: Vec<String>,
}

impl Lines {
    fn push(&mut self, text: &str, style: impl Fn(&str) -> String) {
        let cut = cut(text.trim_end(), self.width);
        self.list.push(if cut.is_empty() { cut } else { style(&cut) });
    }

    fn skip(&mut self) {
        self.list.push(String::new());
    }
}

fn heading(picture: &Picture, view: &View, lines: &mut Lines, paint: Paint) {
    let state = match picture.state {
        State::Running => "",
        State::Unsupervised => "  no supervisor",
        State::Abandoned => "  SUPERVISOR GONE",
        State::Ended => "  ENDED: this is the last picture",
    };
    let paused = if view.paused { "  PAUSED" } else { "" };
    let state_text = format!("  {}{state}{paused}", time(picture.elapsed_ns));
    let name = cut_left(&printable(&picture.run), lines.width.saturating_sub(10 + columns(&state_text)).max(8));
    lines.push(&format!("weft top  {name}{state_text}"), |text| paint.strong(text));
    let ended = if picture.ended > 0 { format!(", {} ended", count(picture.ended)) } else { String::new() };
    let some = if picture.running == 1 { "process" } else { "processes" };
    let seen = if picture.share_seen < 0.995 {
        format!(" ({} seen)", percent_floor(picture.share_seen))
    } else {
        String::new()
    };
    let dropped: u64 = picture.drops.values().sum();
    let drops = match picture.drops.iter().max_by_key(|(_, count)| **count) {
        Some((reason, _)) if dropped > 0 => format!("{} DROPPED ({})", count(dropped), printable(reason)),
        _ => "0 dropped".to_owned(),
    };
    let numbers = format!(
        "{} {some}{ended}  {} events/s{seen}",
        count(picture.running as u64),
        count(picture.events_per_second.round() as u64)
    );
    // What is lost must not be cut off.
    let text = if dropped > 0 { format!("{drops}  {numbers}") } else { format!("{numbers}  {drops}") };
    lines.push(&text, |text| if dropped > 0 { paint.bad(text) } else { text.to_owned() });
    for note in picture.notes.iter().take(if lines.height >= 12 { 2 } else { 0 }) {
        lines.push(&printable(note), |text| paint.bad(text));
    }
}

fn body(picture: &Picture, view: &View, lines: &mut Lines, paint: Paint) {
    let rest = lines.height.saturating_sub(lines.list.len() + 1);
    let rows = view.chosen(picture);
    let side = if rest >= 7 { (rest / 4).max(2) } else { 0 };
    let room = rest - 2 * side;
    let own = room.min(1 + rows.len().max(1));
    let spare = if side > 0 { room - own } else { 0 };
    processes(picture, &rows, view, own, lines, paint);
    let seconds = (picture.window_ns as f64 / 1e9).round().max(1.0);
    hot(&format!("CALLS of the last {seconds} s"), &picture.calls, side + spare / 2, false, lines, paint);
    hot(&format!("FILES of the last {seconds} s"), &picture.files, side + spare - spare / 2, true, lines, paint);
}

/// A column of the process table: heading, what it is sorted by, width, and what it shows.
struct Column {
    name: &'static str,
    sort: Option<Sort>,
    width: usize,
    shown: fn(&Process) -> String,
}

const COLUMNS: [Column; 6] = [
    Column { name: "PID", sort: None, width: 7, shown: |process| process.pid.to_string() },
    Column {
        name: "CPU%",
        sort: Some(Sort::Cpu),
        width: 6,
        shown: |process| process.cpu_percent.map_or("-".into(), tenths),
    },
    Column {
        name: "RSS",
        sort: Some(Sort::Memory),
        width: 7,
        shown: |process| process.rss_bytes.map_or("-".into(), |bytes| short(bytes as f64, 1024.0)),
    },
    Column { name: "READ/s", sort: Some(Sort::Read), width: 7, shown: |process| short(process.read(), 1024.0) },
    Column { name: "WRITE/s", sort: Some(Sort::Write), width: 8, shown: |process| short(process.write(), 1024.0) },
    Column {
        name: "EV/s",
        sort: Some(Sort::Events),
        width: 7,
        shown: |process| short(process.events_per_second, 1000.0),
    },
];

/// Columns that give way on a narrow terminal, the first one first; never the one that is sorted by.
const DISPENSABLE: [&str; 5] = ["RSS", "WRITE/s", "READ/s", "EV/s", "CPU%"];

fn columns_that_fit(width: usize, sort: Sort) -> Vec<&'static Column> {
    let mut kept: Vec<&Column> = COLUMNS.iter().collect();
    for name in DISPENSABLE {
        let used: usize = kept.iter().map(|column| column.width + 1).sum();
        if used + LEAST_NAME <= width {
            break;
        }
        kept.retain(|column| column.name != name || column.sort == Some(sort));
    }
    kept
}

fn processes(picture: &Picture, rows: &[&Process], view: &View, height: usize, lines: &mut Lines, paint: Paint) {
    if height == 0 {
        return;
    }
    let columns = columns_that_fit(lines.width, view.sort);
    let mut text = String::new();
    for column in &columns {
        let name = if column.sort == Some(view.sort) { format!("*{}", column.name) } else { column.name.to_owned() };
        text.push_str(&format!("{name:>width$} ", width = column.width));
    }
    text.push_str("COMMAND");
    lines.push(&text, |text| paint.strong(text));
    let visible = height - 1;
    if rows.is_empty() && visible > 0 {
        let why = match (picture.processes.is_empty(), picture.state) {
            (false, _) => "no process matches the filter",
            (true, State::Ended) => "no process runs any more",
            (true, _) => "no process records yet",
        };
        lines.push(why, |text| paint.dim(text));
    }
    let first = view.scroll.min(rows.len().saturating_sub(visible));
    for process in rows.iter().skip(first).take(visible) {
        let mut text = String::new();
        for column in &columns {
            text.push_str(&format!("{:>width$} ", (column.shown)(process), width = column.width));
        }
        if let Some(rank) = process.rank {
            text.push_str(&format!("[{rank}] "));
        }
        text.push_str(&printable(&process.name));
        if process.dropped > 0 {
            text.push_str(&format!("  {} dropped", count(process.dropped)));
        }
        lines.push(&text, |text| if process.ending { paint.dim(text) } else { text.to_owned() });
    }
}

/// The hottest calls or files. Paths are cut on the left: their ends tell them apart.
fn hot(heading: &str, list: &[Heat], height: usize, is_path: bool, lines: &mut Lines, paint: Paint) {
    if height == 0 {
        return;
    }
    let wide = lines.width >= 60;
    let titles = if wide { "  TIME CALLS/s  READ/s WRITE/s " } else { "  TIME CALLS/s " };
    lines.push(&format!("{titles}{heading}"), |text| paint.strong(text));
    let mut used = 1;
    for heat in list.iter().take(height - 1) {
        let mut text = format!("{:>6} {:>7} ", percent(heat.time_share), short(heat.per_second, 1000.0));
        if wide {
            let (read, write) = (short(heat.read_bytes_per_second, 1024.0), short(heat.write_bytes_per_second, 1024.0));
            text.push_str(&format!("{read:>7} {write:>7} "));
        }
        let name = printable(&heat.name);
        let room = lines.width.saturating_sub(columns(&text));
        text.push_str(&if is_path { cut_left(&name, room) } else { name });
        lines.push(&text, |text| text.to_owned());
        used += 1;
    }
    // Each part keeps its place, so that nothing jumps.
    (used..height).for_each(|_| lines.skip());
}

fn footer(picture: &Picture, view: &View, lines: &mut Lines, paint: Paint) {
    if view.typing {
        lines.push(&format!("filter: {}_   Enter keep  Esc none", printable(&view.filter)), |text| paint.strong(text));
        return;
    }
    let filter =
        if view.filter.is_empty() { String::new() } else { format!("filter \"{}\"  ", printable(&view.filter)) };
    let keys = match (picture.state, lines.width) {
        (State::Ended, _) => "the run has ended  q quit",
        (_, 72..) => "q quit  sort: c m r w e  / filter  p pause  ? help",
        _ => "q quit  / filter  ? help",
    };
    lines.push(&format!("{filter}{keys}"), |text| paint.dim(text));
}

/// `0`, `532`, `1.2K`, `340M`: at most five columns.
pub(super) fn short(value: f64, step: f64) -> String {
    const UNITS: [&str; 7] = ["", "K", "M", "G", "T", "P", "E"];
    let mut value = if value.is_finite() { value.max(0.0) } else { 0.0 };
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < UNITS.len() {
        value /= step;
        unit += 1;
    }
    let (digits, unit_name) = (usize::from(unit > 0 && value < 99.95), UNITS[unit]);
    // What happens less than once a second is not nothing.
    if unit == 0 && value > 0.0 && value < 0.95 { tenths(value) } else { format!("{value:.digits$}{unit_name}") }
}

/// Columns that a text takes on a terminal.
fn columns(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

/// The beginning of a text, as far as it fits.
fn cut(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used < width
    };
    let mut kept: String = text.chars().take_while(fits).collect();
    if width > 0 {
        kept.push('…');
    }
    kept
}

/// The end of a text, as far as it fits.
fn cut_left(text: &str, width: usize) -> String {
    if columns(text) <= width {
        return text.to_owned();
    }
    let backwards: String = text.chars().rev().collect();
    cut(&backwards, width).chars().rev().collect()
}

#[cfg(test)]
mod tests;
