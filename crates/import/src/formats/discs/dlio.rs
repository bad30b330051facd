//! Logs of the DLIO benchmark: `[OUTPUT] 2023-02-10T15:00:00.548012 Starting block 1`, and its instrumentation without times.
//!
//! The log names no zone. It is UTC unless devices of the folder, or `--tz`, say otherwise.

use super::facts::{AppLog, stem_of};
use super::fields::{DAY, SECOND, Words, date, integer, time_of_day};
use super::phases::{Args, Phases};
use crate::Result;
use crate::clock::{Clock, ClockKind};
use crate::input::{Head, Input};
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;

/// The format.
pub const FORMAT: Format = Format {
    kind: "dlio",
    title: "DLIO benchmark log",
    carries: "a span per phase (init, epoch, block, eval, checkpoint), an instant per instrumented value",
    example: "dlio.log",
    detect,
    survey: Some(survey),
    read,
};

/// A line.
#[derive(Debug, PartialEq, Eq)]
enum Entry<'a> {
    /// A phase begins (true) or ends, with the rest of the line.
    Edge(i64, bool, &'a str, &'a [u8]),
    /// Another message.
    Message(i64, &'a [u8]),
    /// `[INFO] load_batch_mem 29472892`.
    Value(&'a str, i64),
}

fn parse(line: &[u8]) -> Option<Entry<'_>> {
    let mut words = Words::new(line);
    let level = words.next()?.strip_prefix(b"[")?.strip_suffix(b"]")?;
    if level.is_empty() || !level.iter().all(u8::is_ascii_uppercase) {
        return None;
    }
    let first = words.next()?;
    let Some(at_ns) = iso(first) else {
        let key = std::str::from_utf8(first)
            .ok()
            .filter(|key| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'))?;
        let value = integer(words.next()?)?;
        return words.rest().is_empty().then_some(Entry::Value(key, value));
    };
    let message = words.rest();
    let (verb, phase) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let phase = phase.strip_suffix(b":").unwrap_or(phase);
    let phase = match phase {
        b"epoch" => "epoch",
        b"block" => "block",
        b"eval" | b"evaluation" => "eval",
        b"checkpoint" => "checkpoint",
        _ => "",
    };
    Some(match (verb, phase) {
        (_, "") => Entry::Message(at_ns, message),
        (b"Starting", phase) => Entry::Edge(at_ns, true, phase, words.rest()),
        (b"Ending", phase) => Entry::Edge(at_ns, false, phase, words.rest()),
        _ => Entry::Message(at_ns, message),
    })
}

/// `2023-02-10T15:00:00.548012`, as it is written.
fn iso(word: &[u8]) -> Option<i64> {
    let at = memchr::memchr(b'T', word)?;
    let days = date(&word[..at])?.days(super::DateOrder::default())?;
    days.checked_mul(DAY)?.checked_add(time_of_day(&word[at + 1..])?)
}

fn detect(head: &Head<'_>) -> Confidence {
    let mut stamped = 0;
    for line in head.lines().take(200) {
        match parse(line) {
            Some(Entry::Edge(..)) => return Confidence::Certain,
            Some(Entry::Message(_, message)) if memchr::memmem::find(message, b"DLIO").is_some() => {
                return Confidence::Certain;
            }
            Some(Entry::Message(..)) => stamped += 1,
            _ => {}
        }
    }
    if stamped > 0 { Confidence::Possible } else { Confidence::No }
}

fn survey(input: &mut Input<'_>, survey: &mut Survey) -> Result<()> {
    let mut log =
        AppLog { stem: stem_of(input.name()).to_owned(), benchmark: Some("dlio".to_owned()), ..AppLog::default() };
    let mut line = Vec::new();
    while input.next_line(&mut line)?.is_some() {
        match parse(&line) {
            Some(Entry::Edge(at_ns, begins, phase, _)) => {
                log.written.mark(at_ns.div_euclid(SECOND));
                if begins {
                    *log.phases.entry(phase.to_owned()).or_default() += 1;
                }
            }
            Some(Entry::Message(at_ns, _)) => log.written.mark(at_ns.div_euclid(SECOND)),
            _ => {}
        }
    }
    survey.discs.folder(input.name()).logs.push(log);
    Ok(())
}

fn read(input: &mut Input<'_>, survey: &Survey, sink: &mut dyn Sink) -> Result<()> {
    let set = survey.discs.set(input.name());
    let (shift, how) = match (set.log_shift, survey.zone_seconds) {
        (Some(shift), _) => (shift, "laid over the activity of devices"),
        (None, Some(zone)) => (-i64::from(zone), "--tz"),
        (None, None) => (0, "taken as UTC: the log names no zone; --tz sets it"),
    };
    let clock = sink.clock(Clock::offset(ClockKind::LocalText, shift * SECOND, Some(1000), how));
    let mut phases = Phases::new(set, &survey.discs.overrides, sink)?;
    let mut line = Vec::new();
    let (mut first, mut last, mut is_init) = (None, None::<i64>, true);
    while let Some(about) = input.next_line(&mut line)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        let Some(entry) = parse(&line).filter(|_| !about.unfinished) else {
            sink.skip(if about.unfinished { "torn line" } else { "line that is no entry of the log" }, about.offset);
            continue;
        };
        if let Entry::Edge(at_ns, ..) | Entry::Message(at_ns, _) = entry {
            let at_ns = clock.to_utc(at_ns);
            first.get_or_insert(at_ns);
            last = last.max(Some(at_ns));
        }
        match entry {
            Entry::Edge(at_ns, begins, phase, rest) => {
                let at_ns = clock.to_utc(at_ns);
                // All before the first block is preparation.
                if begins && phase == "block" && std::mem::take(&mut is_init) {
                    phases.span(0, "init", (first.unwrap_or(at_ns), at_ns), &[], sink)?;
                }
                let args = about_phase(phase, rest);
                if begins {
                    if !phases.begin(0, phase, at_ns, args) {
                        sink.skip("phase that began among too many others", about.offset);
                    }
                } else if !phases.end(0, phase, at_ns, args, sink)? {
                    sink.skip("end of a phase that did not begin", about.offset);
                }
            }
            Entry::Message(at_ns, message) => {
                let text = serde_json::to_string(&String::from_utf8_lossy(&message[..message.len().min(4096)]))
                    .unwrap_or_default();
                phases.instant(0, "message", clock.to_utc(at_ns), &[("text".to_owned(), text)], sink)?;
            }
            Entry::Value(key, value) => match last {
                // It has no time of its own: it was printed after the last one that has.
                Some(at_ns) => phases.instant(0, key, at_ns, &[("duration_ns".to_owned(), value.to_string())], sink)?,
                None => sink.skip("value before the first time", about.offset),
            },
        }
    }
    phases.finish(last.unwrap_or(0), sink)
}

/// The number of a phase, and the epoch that a checkpoint is for.
fn about_phase(phase: &str, rest: &[u8]) -> Args {
    let number = |word: &[u8]| integer(word.strip_suffix(b":").unwrap_or(word)).map(|number| number.to_string());
    let mut args = Args::new();
    let mut words = Words::new(rest);
    if let Some(number) = words.next().and_then(number) {
        args.push((phase.to_owned(), number));
    }
    if let Some(epoch) = words.skip_while(|word| *word != b"epoch").nth(1).and_then(number) {
        args.push(("epoch".to_owned(), epoch));
    }
    args
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Memory;

    const TEXT: &str = "[OUTPUT] 2023-02-10T15:00:00.137003 Running DLIO with 4 process(es)\n\
        [OUTPUT] 2023-02-10T15:00:00.411009 Starting epoch 1: 8 steps expected\n\
        [OUTPUT] 2023-02-10T15:00:00.548012 Starting block 1\n[INFO] load_batch_mem 29472892\n\
        [OUTPUT] 2023-02-10T15:00:00.685015 Ending block 1 - 8 steps completed in 3.01 s\n\
        [OUTPUT] 2023-02-10T15:00:00.785015 Starting checkpoint 1 for epoch 2\n\
        [OUTPUT] 2023-02-10T15:00:00.885015 Ending checkpoint 1 for epoch 2\nnoise\n\
        [OUTPUT] 2023-02-10T15:00:01.096024 Ending epoch 1 - 8 steps completed in 4.4 s\n";

    fn run(text: &[u8]) -> Memory {
        let mut found = Survey::default();
        let mut reader = text;
        survey(&mut Input::new("d/dlio.log", &mut reader), &mut found).expect("memory");
        found.conclude();
        let (mut memory, mut reader) = (Memory::default(), text);
        read(&mut Input::new("d/dlio.log", &mut reader), &found, &mut memory).expect("memory");
        memory
    }

    #[test]
    fn phases_and_values() {
        let memory = run(TEXT.as_bytes());
        let spans: Vec<_> =
            memory.events.iter().filter(|event| event.starts_with("span")).map(String::as_str).collect();
        assert_eq!(
            spans,
            [
                "span init pipeline 1/1073742336 1676041200137003000..1676041200548012000 phase=init",
                "span block pipeline 1/1073742336 1676041200548012000..1676041200685015000 phase=training block=1",
                "span checkpoint checkpoint 1/1073742336 1676041200785015000..1676041200885015000 phase=checkpoint checkpoint=1 epoch=2",
                "span epoch pipeline 1/1073742337 1676041200411009000..1676041201096024000 phase=training epoch=1",
            ]
        );
        let value = "instant load_batch_mem pipeline 1/1 1676041200548012000 duration_ns=29472892";
        assert!(memory.events.iter().any(|event| event == value));
        assert_eq!(memory.skipped["line that is no entry of the log"].count, 1);
    }

    #[test]
    fn cut_anywhere() {
        for length in 0..TEXT.len() {
            run(&TEXT.as_bytes()[..length]);
        }
    }
}
