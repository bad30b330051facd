//! `cpu.log`, `mem.log` and `net.log` of a node: texts of `mpstat 1`, `vmstat -Sm -t 1` and `ifstat -t 1`.
//!
//! Their times are wall texts. vmstat tells the date and the zone's name, mpstat the date in the form of its locale, ifstat neither: it has those of the
//! folder. A value is of the interval since the line before.

use super::Folder;
use super::records::bytes;
use crate::Result;
use crate::clock::Clock;
use crate::event::{Arg, Event, Shape};
use crate::formats::time::{self, Days};
use crate::input::{Input, Line};
use crate::sink::Sink;
use crate::survey::Survey;

const NOT_A_SAMPLE: &str = "not a sample";
/// Columns that are told apart.
const MOST_COLUMNS: usize = 256;
/// All three are started with an interval of a second.
const SECOND_NS: i64 = 1_000_000_000;

/// Date and zone, for all logs of the folder.
pub(super) fn survey(input: &mut Input<'_>, first: &[u8], folder: &mut Folder) -> Result<()> {
    if let Some(day) = mpstat_day(first) {
        folder.day = Some(day);
        return Ok(());
    }
    let mut line = Vec::new();
    for _ in 0..3 {
        if input.next_line(&mut line)?.is_none() {
            break;
        }
        let mut last = words(&line).rev();
        match last.next() {
            Some(b"UTC" | b"GMT") if words(&line).next() == Some(b"r") => folder.is_utc = true,
            Some(_) => folder.day = last.next().and_then(iso_day).or(folder.day),
            None => {}
        }
    }
    Ok(())
}

fn words(line: &[u8]) -> impl DoubleEndedIterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// `2026-11-18`.
fn iso_day(text: &[u8]) -> Option<i64> {
    let [year, month, day] = three(text, b'-')?;
    (year.len() == 4).then_some(())?;
    time::days(time::number(year)?, time::number(month)?, time::number(day)?)
}

fn three(text: &[u8], at: u8) -> Option<[&[u8]; 3]> {
    let mut parts = text.split(|byte| *byte == at);
    let three = [parts.next()?, parts.next()?, parts.next()?];
    parts.next().is_none().then_some(three)
}

/// The date of mpstat's first line, `Linux 6.1 (host)  11/18/26  _x86_64_  (2 CPU)`: with slashes the month is first unless it is none, with
/// points the day.
pub(super) fn mpstat_day(line: &[u8]) -> Option<i64> {
    line.starts_with(b"Linux ").then_some(())?;
    let full = |year: i64| if year < 100 { year + 2000 } else { year };
    // The kernel's version may look like a date too.
    words(line).skip(2).find_map(|word| {
        iso_day(word).or_else(|| {
            let ([first, second, year], month_first) = match three(word, b'/') {
                Some(parts) => (parts, true),
                None => (three(word, b'.')?, false),
            };
            let (first, second, year) = (time::number(first)?, time::number(second)?, full(time::number(year)?));
            match month_first && first <= 12 {
                true => time::days(year, first, second),
                false => time::days(year, second, first),
            }
        })
    })
}

/// `17:50:33`, nanoseconds of the day; half of the day from the word behind it.
fn of_day(word: &[u8], half: Option<&[u8]>) -> Option<i64> {
    let [hour, minute, second] = three(word, b':')?;
    let hour = time::number(hour)?;
    let hour = match half {
        Some(b"AM") => hour % 12,
        Some(b"PM") => hour % 12 + 12,
        _ => hour,
    };
    time::of_day(hour, time::number(minute)?, time::number(second)?, b"")
}

fn float(word: &[u8]) -> Option<f64> {
    let text = std::str::from_utf8(word).ok()?;
    let value: f64 = if text.contains(',') { text.replace(',', ".").parse().ok()? } else { text.parse().ok()? };
    value.is_finite().then_some(value)
}

/// The clock of a folder's wall texts, and the day on which they begin.
fn wall_clock(folder: &Folder, survey: &Survey, sink: &mut dyn Sink) -> (Clock, Days) {
    let mut clock = survey.local_clock();
    if folder.is_utc && survey.zone_seconds.is_none() {
        clock = Clock::offset(clock.kind, 0, Some(SECOND_NS as u64), "UTC, as vmstat says in the same folder");
    }
    let day = folder.day.or(survey.first_day);
    if day.is_none() {
        clock.how += "; nothing tells the date: the first day is 1970-01-01";
    }
    (sink.clock(clock), Days::from(day.unwrap_or(0)))
}

/// Times of lines, and of the lines before them.
struct Ticks {
    clock: Clock,
    days: Days,
    now: Option<i64>,
    before: Option<i64>,
}

impl Ticks {
    fn new(folder: &Folder, survey: &Survey, sink: &mut dyn Sink) -> Ticks {
        let (clock, days) = wall_clock(folder, survey, sink);
        Ticks { clock, days, now: None, before: None }
    }

    /// A line's time.
    fn move_to(&mut self, wall_ns: i64) {
        let now = self.clock.to_utc(wall_ns);
        if self.now != Some(now) {
            self.before = self.now;
            self.now = Some(now);
        }
    }

    /// The interval that ends with the line.
    fn interval(&self) -> Option<(i64, i64)> {
        let now = self.now?;
        Some((self.before.filter(|before| *before < now).unwrap_or(now.saturating_sub(SECOND_NS)), now))
    }
}

fn counter(sink: &mut dyn Sink, cat: &str, name: &str, at: (i64, i64), args: &[(&str, Arg<'_>)]) -> Result<()> {
    if args.is_empty() {
        return Ok(());
    }
    let (shape, start_ns) = (Shape::Counter { end_ns: at.1 }, at.0);
    sink.event(&Event { shape, name, cat, pid: 0, tid: 0, start_ns, args })
}

/// What is done with a line; false where it is no sample.
type Each<'a> = dyn FnMut(&[u8], &mut dyn Sink) -> Result<bool> + 'a;

/// Goes through the line in the buffer and those behind it; what is no sample is counted unless it is a heading.
fn each_line(input: &mut Input<'_>, line: &mut Vec<u8>, sink: &mut dyn Sink, each: &mut Each<'_>) -> Result<()> {
    let mut about = Line { offset: 0, number: 1, cut: false, unfinished: false };
    loop {
        if !line.trim_ascii().is_empty() && !each(line, sink)? {
            sink.skip(if about.unfinished || about.cut { "torn line" } else { NOT_A_SAMPLE }, about.offset);
        }
        match input.next_line(line)? {
            Some(next) => about = next,
            None => return Ok(()),
        }
    }
}

/// What mpstat calls the shares of a processor's time, and what traces call them.
const SHARES: [(&[u8], &str); 10] = [
    (b"%usr", "user_pct"),
    (b"%nice", "nice_pct"),
    (b"%sys", "system_pct"),
    (b"%iowait", "iowait_pct"),
    (b"%irq", "irq_pct"),
    (b"%soft", "softirq_pct"),
    (b"%steal", "steal_pct"),
    (b"%guest", "guest_pct"),
    (b"%gnice", "guest_nice_pct"),
    (b"%idle", "idle_pct"),
];

pub(super) fn mpstat(
    input: &mut Input<'_>,
    line: &mut Vec<u8>,
    folder: &Folder,
    survey: &Survey,
    sink: &mut dyn Sink,
) -> Result<()> {
    let mut ticks = Ticks::new(folder, survey, sink);
    let mut columns: Vec<Option<&'static str>> = Vec::new();
    each_line(input, line, sink, &mut |line, sink| {
        if let Some(day) = mpstat_day(line) {
            ticks.days = Days::from(day);
            return Ok(true);
        }
        let mut rest = words(line).peekable();
        let (Some(first), half) = (rest.next(), rest.next_if(|word| matches!(*word, b"AM" | b"PM"))) else {
            return Ok(false);
        };
        let Some(wall) = of_day(first, half).and_then(|of_day| ticks.days.at(of_day)) else { return Ok(false) };
        let Some(processor) = rest.next() else { return Ok(false) };
        if processor == b"CPU" {
            ticks.move_to(wall);
            let known = |word| SHARES.iter().find(|(name, _)| *name == word).map(|(_, key)| *key);
            columns = rest.take(MOST_COLUMNS).map(known).collect();
            return Ok(true);
        }
        let values: Option<Vec<f64>> = rest.take(MOST_COLUMNS).map(float).collect();
        let Some(values) = values.filter(|values| !values.is_empty() && values.len() == columns.len()) else {
            return Ok(false);
        };
        ticks.move_to(wall);
        let args: Vec<_> =
            columns.iter().zip(values).filter_map(|(key, value)| Some(((*key)?, Arg::Float(value)))).collect();
        let number = std::str::from_utf8(processor).ok().filter(|number| number.parse::<u32>().is_ok());
        let name = match (processor, number) {
            (b"all", _) => "cpu".to_owned(),
            (_, Some(number)) => format!("cpu-{number}"),
            _ => return Ok(false),
        };
        match ticks.interval() {
            Some(at) => counter(sink, "sys", &name, at, &args).map(|()| true),
            None => Ok(false),
        }
    })
}

/// Memory in units of 1000 · 1000 bytes (`-Sm`), as the kernel tells it.
fn kibibytes(megabytes: f64) -> Arg<'static> {
    Arg::Int((megabytes * 1e6 / 1024.0).round() as i64)
}

pub(super) fn vmstat(
    input: &mut Input<'_>,
    line: &mut Vec<u8>,
    folder: &Folder,
    survey: &Survey,
    (memory, cpu): (bool, bool),
    sink: &mut dyn Sink,
) -> Result<()> {
    let mut ticks = Ticks::new(folder, survey, sink);
    let mut columns: Vec<Vec<u8>> = Vec::new();
    let mut is_first = true;
    each_line(input, line, sink, &mut |line, sink| {
        let parts: Vec<&[u8]> = words(line).take(MOST_COLUMNS).collect();
        match parts[..] {
            [b"procs", ..] => return Ok(true),
            [b"r", ref names @ .., _] => {
                columns = std::iter::once(&parts[0]).chain(names).map(|name| name.to_vec()).collect();
                return Ok(true);
            }
            _ => {}
        }
        let (count, Some(wall)) = (columns.len(), time_of_row(&parts)) else { return Ok(false) };
        if count == 0 || parts.len() != count + 2 {
            return Ok(false);
        }
        let values: Option<Vec<f64>> = parts[..count].iter().map(|word| float(word)).collect();
        let Some(values) = values else { return Ok(false) };
        ticks.move_to(wall);
        let Some(at) = ticks.interval() else { return Ok(false) };
        let value = |name: &[u8]| columns.iter().position(|known| known == name).map(|place| values[place]);
        let over = (at.1 - at.0) as f64 / 1e9;
        let list = |pairs: &[(&'static str, Option<Arg<'static>>)]| -> Vec<(&'static str, Arg<'static>)> {
            pairs.iter().filter_map(|(key, arg)| Some((*key, (*arg)?))).collect()
        };
        // The first row has means since the machine's start, and what is at the moment.
        let moved = |name: &[u8]| value(name).filter(|_| !is_first).map(|rate| Arg::Int((rate * over).round() as i64));
        let gauge = |name: &[u8]| value(name).map(|value| Arg::Int(value as i64));
        let size = |name: &[u8]| value(name).map(kibibytes);
        if memory {
            let free = [("MemFree", size(b"free")), ("Buffers", size(b"buff")), ("Cached", size(b"cache"))];
            counter(sink, "sys", "memory", (at.1, at.1), &list(&free))?;
            counter(sink, "sys", "swap", (at.1, at.1), &list(&[("used_kb", size(b"swpd"))]))?;
            let kernel = [
                ("interrupts", moved(b"in")),
                ("context_switches", moved(b"cs")),
                ("running", gauge(b"r")),
                ("blocked", gauge(b"b")),
            ];
            counter(sink, "sys", "kernel", at, &list(&kernel))?;
            let swapped = |name: &[u8]| value(name).filter(|_| !is_first).map(Arg::Float);
            let paging = [
                ("paged_in_kb", moved(b"bi")),
                ("paged_out_kb", moved(b"bo")),
                ("swapped_in_mb_per_s", swapped(b"si")),
                ("swapped_out_mb_per_s", swapped(b"so")),
            ];
            counter(sink, "sys", "paging", at, &list(&paging))?;
        }
        if cpu && !is_first {
            let share = |name: &[u8]| value(name).map(Arg::Float);
            let shares = [
                ("user_pct", share(b"us")),
                ("system_pct", share(b"sy")),
                ("idle_pct", share(b"id")),
                ("iowait_pct", share(b"wa")),
                ("steal_pct", share(b"st")),
                ("guest_pct", share(b"gu")),
            ];
            counter(sink, "sys", "cpu", at, &list(&shares))?;
        }
        is_first = false;
        Ok(true)
    })
}

/// The time of a row of vmstat: its last two words.
fn time_of_row(parts: &[&[u8]]) -> Option<i64> {
    let [.., date, clock] = parts else { return None };
    iso_day(date)?.checked_mul(time::DAY_NS)?.checked_add(of_day(clock, None)?)
}

pub(super) fn ifstat(
    input: &mut Input<'_>,
    line: &mut Vec<u8>,
    folder: &Folder,
    survey: &Survey,
    sink: &mut dyn Sink,
) -> Result<()> {
    let mut ticks = Ticks::new(folder, survey, sink);
    let mut links: Vec<String> = Vec::new();
    each_line(input, line, sink, &mut |line, sink| {
        let parts: Vec<&[u8]> = words(line).take(MOST_COLUMNS).collect();
        match parts[..] {
            [b"Time", ref names @ ..] => {
                links = names.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect();
                return Ok(true);
            }
            [b"HH:MM:SS", ..] => return Ok(true),
            _ => {}
        }
        let Some(wall) = parts.first().and_then(|word| of_day(word, None)).and_then(|of_day| ticks.days.at(of_day))
        else {
            return Ok(false);
        };
        // An interface that is down has `n/a`.
        let values: Vec<Option<f64>> = parts[1..].iter().map(|word| float(word)).collect();
        if values.is_empty() || values.len() != links.len() * 2 {
            return Ok(false);
        }
        ticks.move_to(wall);
        let Some(at) = ticks.interval() else { return Ok(false) };
        for (link, rates) in links.iter().zip(values.chunks(2)) {
            let moved = |rate: Option<f64>| rate.map(|rate| Arg::Int(bytes(rate * 1024.0, at.1 - at.0)));
            let args: Vec<_> = [("bytes_recv", moved(rates[0])), ("bytes_sent", moved(rates[1]))]
                .into_iter()
                .filter_map(|(key, arg)| Some((key, arg?)))
                .collect();
            counter(sink, "net", link, at, &args)?;
        }
        Ok(true)
    })
}
