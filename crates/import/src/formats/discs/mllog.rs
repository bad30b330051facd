//! MLPerf logs: lines with `:::MLLOG {…}`, whatever launchers put before it (`[0] `, `[1,0]<stdout>:`, `0: `), or the objects alone.
//!
//! `X_start` and `X_stop` are paired by rank and name. A value with `start` and `duration` in nanoseconds is an interval of its own.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;

use super::facts::{AppLog, stem_of};
use super::fields::SECOND;
use super::phases::{Args, Phases};
use crate::Result;
use crate::clock::{Clock, ClockKind};
use crate::input::{Head, Input};
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;

/// The format.
pub const FORMAT: Format = Format {
    kind: "mllog",
    title: "MLPerf log (`:::MLLOG`)",
    carries: "a span per phase (init, epoch, eval, checkpoint, …) and instrumented interval, an instant per other entry",
    example: "mllog.log",
    detect,
    survey: Some(survey),
    read,
};

const MARK: &[u8] = b":::MLLOG";

/// An entry of the log.
#[derive(Debug, Deserialize)]
struct Entry<'a> {
    time_ms: f64,
    #[serde(borrow, default)]
    event_type: Cow<'a, str>,
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(default)]
    value: Value,
    #[serde(default)]
    metadata: Value,
}

/// A value that is an interval.
#[derive(Debug, Deserialize)]
struct Interval {
    start: f64,
    duration: f64,
}

/// The object of a line and the rank before it; none where the line is of another kind.
fn object(line: &[u8]) -> Option<(u32, &[u8])> {
    if line.starts_with(b"{") {
        return Some((0, line));
    }
    let at = memchr::memmem::find(line, MARK)?;
    // The last number before the mark: `[0] `, `[1,3]<stdout>:`, `3: `.
    let before = &line[..at];
    let digits = before.split(|byte| !byte.is_ascii_digit()).rfind(|group| !group.is_empty() && group.len() <= 6);
    let framed = before.first().is_some_and(|byte| *byte == b'[' || byte.is_ascii_digit()) && before.len() <= 32;
    let rank = digits.filter(|_| framed).and_then(super::fields::id).unwrap_or(0);
    Some((rank, line[at + MARK.len()..].trim_ascii()))
}

/// Whether a line should be an entry.
fn entry(bytes: &[u8]) -> Option<Entry<'_>> {
    let entry: Entry<'_> = serde_json::from_slice(bytes).ok()?;
    // Milliseconds between 1970 and 2262.
    (entry.time_ms >= 0.0 && entry.time_ms < 9.2e15 / 1.0e3).then_some(entry)
}

impl Entry<'_> {
    fn at_ns(&self) -> i64 {
        (self.time_ms * 1000.0).round() as i64 * 1000
    }

    /// Begin or end, and the name without its ending.
    fn edge(&self) -> Option<(bool, &str)> {
        let key = self.key.as_ref();
        match self.event_type.as_ref() {
            "INTERVAL_START" => {
                Some((true, key.strip_suffix("_start").or_else(|| key.strip_suffix("_begin")).unwrap_or(key)))
            }
            "INTERVAL_END" => {
                let ends = ["_stop", "_end", "_finish"];
                Some((false, ends.iter().find_map(|end| key.strip_suffix(end)).unwrap_or(key)))
            }
            _ => None,
        }
    }

    /// Its metadata and value as arguments.
    fn args(&self) -> Args {
        let mut args = Args::new();
        if !self.value.is_null() {
            args.push(("value".to_owned(), self.value.to_string()));
        }
        let metadata = self.metadata.as_object().into_iter().flatten().take(100);
        args.extend(metadata.map(|(name, value)| (name.clone(), value.to_string())));
        args
    }
}

fn detect(head: &Head<'_>) -> Confidence {
    let mut lines = head.lines().take(400);
    let good = lines.by_ref().any(|line| {
        object(line).is_some_and(|(_, object)| entry(object).is_some_and(|entry| !entry.event_type.is_empty()))
    });
    if good { Confidence::Certain } else { Confidence::No }
}

fn survey(input: &mut Input<'_>, survey: &mut Survey) -> Result<()> {
    let mut log = AppLog { stem: stem_of(input.name()).to_owned(), is_utc: true, ..AppLog::default() };
    let mut line = Vec::new();
    while input.next_line(&mut line)?.is_some() {
        let Some(entry) = object(&line).and_then(|(_, object)| entry(object)) else { continue };
        log.written.mark(entry.at_ns().div_euclid(SECOND));
        if entry.key == "submission_benchmark" && log.benchmark.is_none() {
            let name = entry.value.as_str().map(str::to_owned);
            log.benchmark = name.filter(|name| !name.is_empty() && name.len() <= 100);
        }
        if let Some((true, key)) = entry.edge()
            && (log.phases.len() < 100 || log.phases.contains_key(key))
        {
            *log.phases.entry(key.to_owned()).or_default() += 1;
        }
    }
    survey.discs.folder(input.name()).logs.push(log);
    Ok(())
}

fn read(input: &mut Input<'_>, survey: &Survey, sink: &mut dyn Sink) -> Result<()> {
    let set = survey.discs.set(input.name());
    let written = Clock::offset(ClockKind::Realtime, 0, Some(1_000_000), "as written, in milliseconds");
    let clock = sink.clock(written);
    let monotonic = set.clock(survey, ClockKind::Monotonic);
    let mut phases = Phases::new(set, &survey.discs.overrides, sink)?;
    let (mut line, mut last) = (Vec::new(), i64::MIN);
    while let Some(about) = input.next_line(&mut line)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Some((rank, object)) = object(&line) else {
            sink.skip("line that is no entry of the log", about.offset);
            continue;
        };
        let Some(entry) = entry(object) else {
            sink.skip(if about.unfinished { "torn line" } else { "entry that is not valid" }, about.offset);
            continue;
        };
        let at_ns = clock.to_utc(entry.at_ns());
        last = last.max(at_ns);
        match entry.edge() {
            Some((true, key)) => {
                if !phases.begin(rank, key, at_ns, entry.args()) {
                    sink.skip("phase that began among too many others", about.offset);
                }
            }
            Some((false, key)) => {
                if !phases.end(rank, key, at_ns, entry.args(), sink)? {
                    sink.skip("end of a phase that did not begin", about.offset);
                }
            }
            None => {
                let interval = Interval::deserialize(&entry.value).ok();
                let interval = interval.filter(|interval| {
                    interval.duration >= 0.0 && interval.duration < 9e18 && interval.start.abs() < 9e18
                });
                match interval {
                    Some(interval) => {
                        let span = placed(&interval, at_ns, &clock, &monotonic);
                        last = last.max(span.1);
                        let args: Args = entry.args().into_iter().filter(|(name, _)| name != "value").collect();
                        phases.span(rank, &entry.key, span, &args, sink)?;
                    }
                    None => phases.instant(rank, &entry.key, at_ns, &entry.args(), sink)?,
                }
            }
        }
    }
    phases.finish(last, sink)
}

/// Where an interval lies: its begin counts from the epoch, or on the monotonic clock; else it ends when it was logged.
fn placed(interval: &Interval, logged_ns: i64, clock: &Clock, monotonic: &Clock) -> (i64, i64) {
    let (start, duration) = (interval.start as i64, interval.duration as i64);
    let near = |at: i64| {
        at.abs_diff(logged_ns) < 600 * SECOND as u64
            || at.saturating_add(duration).abs_diff(logged_ns) < 600 * SECOND as u64
    };
    let start = [clock.to_utc(start), monotonic.to_utc(start)].into_iter().find(|at| near(*at));
    let start = start.unwrap_or(logged_ns.saturating_sub(duration));
    (start, start.saturating_add(duration))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Memory;

    const TEXT: &str = r#"starting
[0] :::MLLOG {"namespace": "", "time_ms": 1000, "event_type": "INTERVAL_START", "key": "init_start", "value": null, "metadata": {"file": "/w/main.py", "lineno": 28}}
[1] :::MLLOG {"namespace": "", "time_ms": 1001, "event_type": "INTERVAL_START", "key": "init_start", "value": null, "metadata": {}}
[0] :::MLLOG {"namespace": "", "time_ms": 1500, "event_type": "POINT_IN_TIME", "key": "submission_benchmark", "value": "unet3d", "metadata": {}}
[0] :::MLLOG {"namespace": "", "time_ms": 2000, "event_type": "INTERVAL_END", "key": "init_stop", "value": null, "metadata": {"epoch_num": 3}}
[1] :::MLLOG {"namespace": "", "time_ms": 2001, "event_type": "INTERVAL_END", "key": "init_stop", "value": null, "metadata": {}}
[0] :::MLLOG {"namespace": "", "time_ms": 2500, "event_type": "POINT_IN_TIME", "key": "load_batch_mem", "value": {"start": 2100000000, "duration": 300000000}, "metadata": {}}
[0] :::MLLOG {"namespace": "", "time_ms": 2600, "event_type": "INTERVAL_START", "key": "epoch_start", "value": null, "metadata": {"epoch_num": 1}}
[0] :::MLLOG {"namespace": "", "time_ms": 2700, "event_type": "INTERVAL_END", "key": "eval_stop", "value": null}
[0] :::MLLOG {"namespace": "#;

    fn run(text: &[u8]) -> (Memory, Survey) {
        let mut found = Survey::default();
        let mut reader = text;
        survey(&mut Input::new("d/app.log", &mut reader), &mut found).expect("memory");
        found.conclude();
        let (mut memory, mut reader) = (Memory::default(), text);
        read(&mut Input::new("d/app.log", &mut reader), &found, &mut memory).expect("memory");
        (memory, found)
    }

    #[test]
    fn phases_of_ranks() {
        let (memory, found) = run(TEXT.as_bytes());
        let spans: Vec<_> =
            memory.events.iter().filter(|event| !event.starts_with("metadata")).map(String::as_str).collect();
        assert_eq!(
            spans,
            [
                "instant submission_benchmark pipeline 1/1 1500000000 value=\"unet3d\"",
                "span init pipeline 1/1073742336 1000000000..2000000000 phase=init file=\"/w/main.py\" lineno=28 epoch=3",
                "span init pipeline 2/1073742336 1001000000..2001000000 phase=init",
                "span fetch dataloader 1/1073742336 2100000000..2400000000 key=load_batch_mem",
                "span epoch pipeline 1/1073742336 2600000000..2700000000 phase=training epoch=1 unfinished=true",
            ]
        );
        assert_eq!(memory.processes, ["1 unet3d", "2 unet3d, rank 1"]);
        let told: Vec<_> = memory.skipped.iter().map(|(reason, skipped)| (reason.as_str(), skipped.count)).collect();
        assert_eq!(
            told,
            [("end of a phase that did not begin", 1), ("line that is no entry of the log", 1), ("torn line", 1)]
        );
        assert!(found.notes.iter().any(|note| note.contains("unet3d")), "{:?}", found.notes);
    }

    #[test]
    fn prefixes() {
        for (line, rank) in [
            ("[3] :::MLLOG {}", 3),
            ("[1,7]<stdout>::::MLLOG {}", 7),
            ("2: :::MLLOG {}", 2),
            ("{}", 0),
            ("x 12 :::MLLOG {}", 0),
        ] {
            assert_eq!(object(line.as_bytes()), Some((rank, &b"{}"[..])), "{line}");
        }
        assert_eq!(object(b"hello"), None);
    }

    #[test]
    fn cut_anywhere() {
        for length in 0..TEXT.len() {
            run(&TEXT.as_bytes()[..length]);
        }
    }
}
