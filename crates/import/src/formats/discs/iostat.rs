//! `iostat -x`, as JSON (`-o JSON`) and as text, in any locale: what each block device did.
//!
//! Rates become amounts of the interval. The first report's interval is taken to be as long as the second's.

mod json;

use super::fields::{DAY, SECOND, Words, Written, date, decimal, take_time, time_of_day, zone};
use super::mpstat::{banner, share};
use crate::Result;
use crate::event::{Arg, Event, Shape};
use crate::input::{Head, Input};
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;

/// The format.
pub const FORMAT: Format = Format {
    kind: "iostat",
    title: "iostat (JSON and text)",
    carries: "counters of each block device: requests, bytes, times, queue, busy share; processor shares where no mpstat tells them",
    example: "iostat.json",
    detect,
    survey: Some(survey),
    read,
};

/// Devices of one report, and values of one device.
const MOST_DEVICES: usize = 10_000;
const MOST_VALUES: usize = 200;

/// When a report was made, as it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct When {
    written: Written,
    of_day: i64,
    /// Seconds before UTC, where the time says so.
    zone: Option<i32>,
}

/// `08/27/2022 10:34:32 PM`, `2022-08-27T22:34:32-0400`, `27.08.2022 22:34:32`.
fn when(text: &[u8]) -> Option<When> {
    let mut words = Words::new(text);
    let first = words.next()?;
    if let Some(t) = memchr::memchr(b'T', first) {
        let (day, time) = (&first[..t], &first[t + 1..]);
        let end = time.iter().position(|byte| b"+-Z".contains(byte)).unwrap_or(time.len());
        let zone = if end < time.len() { Some(zone(&time[end..])?) } else { None };
        return Some(When { written: date(day)?, of_day: time_of_day(&time[..end])?, zone });
    }
    let written = date(first)?;
    let of_day = take_time(&mut words)?;
    words.rest().is_empty().then_some(When { written, of_day, zone: None })
}

/// One report.
#[derive(Debug, Default)]
struct Report {
    when: Option<When>,
    devices: Vec<(String, Vec<(String, f64)>)>,
    shares: Vec<(String, f64)>,
}

/// What a reader of either form tells.
enum Part {
    /// The host, and the day on which it began.
    Banner(String, Option<Written>),
    Report(Report),
    Skipped(&'static str, u64),
}

fn detect(head: &Head<'_>) -> Confidence {
    let text = head.bytes.trim_ascii_start();
    let has = |wanted: &[u8]| memchr::memmem::find(head.bytes, wanted).is_some();
    if text.starts_with(b"{") {
        return if has(b"\"sysstat\"") && has(b"\"hosts\"") { Confidence::Certain } else { Confidence::No };
    }
    let found = head.lines().take(60).any(|line| columns(line).is_some());
    if found { Confidence::Certain } else { Confidence::No }
}

/// `Device  r/s  rMB/s …`
fn columns(line: &[u8]) -> Option<Vec<String>> {
    let mut words = Words::new(line);
    let first = words.next()?;
    if !matches!(first.strip_suffix(b":").unwrap_or(first), b"Device") {
        return None;
    }
    let names: Vec<String> = words.take(MOST_VALUES).map(|word| String::from_utf8_lossy(word).into_owned()).collect();
    names.iter().any(|name| name.ends_with("/s") || name == "tps").then_some(names)
}

/// Reads either form.
fn parts(input: &mut Input<'_>, act: &mut dyn FnMut(Part) -> Result<bool>) -> Result<()> {
    let mut line = Vec::new();
    // JSON begins with a brace, which may stand on a line with all of the rest.
    let mut first = [0; 1];
    if input.take_some(&mut first)? == 0 {
        return Ok(());
    }
    if first[0] == b'{' {
        return json::parts(input, act);
    }
    let mut report = Report::default();
    let (mut names, mut shares): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let mut start = first.to_vec();
    if first[0] == b'\n' {
        start.clear();
    }
    while let Some(about) = input.next_line(&mut line)? {
        if !start.is_empty() {
            line.splice(..0, start.drain(..));
        }
        let trimmed = line.trim_ascii();
        if trimmed.is_empty() {
            continue;
        }
        if let Some((host, written)) = banner(&line) {
            if !act(Part::Banner(host, Some(written)))? {
                return Ok(());
            }
        } else if let Some(found) = when(trimmed) {
            let done = std::mem::replace(&mut report, Report { when: Some(found), ..Report::default() });
            if (done.when.is_some() || !done.devices.is_empty()) && !act(Part::Report(done))? {
                return Ok(());
            }
            shares.clear();
        } else if let Some(found) = columns(&line) {
            names = found;
        } else if trimmed.starts_with(b"avg-cpu:") {
            shares = Words::new(trimmed)
                .skip(1)
                .take(MOST_VALUES)
                .map(|word| String::from_utf8_lossy(word).into_owned())
                .collect();
        } else {
            let mut words = Words::new(&line);
            let head = words.clone().next().and_then(decimal);
            let target = if head.is_some() && !shares.is_empty() { &shares } else { &names };
            let device = if head.is_some() && !shares.is_empty() { None } else { words.next() };
            let values: Option<Vec<f64>> = words.take(MOST_VALUES + 1).map(decimal).collect();
            match values.filter(|values| values.len() == target.len() && !values.is_empty() && !about.unfinished) {
                Some(values) => {
                    let named = target.iter().cloned().zip(values).collect();
                    match device {
                        None => report.shares = named,
                        Some(device) if report.devices.len() < MOST_DEVICES => {
                            report.devices.push((String::from_utf8_lossy(device).into_owned(), named));
                        }
                        Some(_) => _ = act(Part::Skipped("more devices than are believed", about.offset))?,
                    }
                }
                None => _ = act(Part::Skipped("torn line", about.offset))?,
            }
            if head.is_some() {
                shares.clear();
            }
        }
    }
    if report.when.is_some() || !report.devices.is_empty() {
        act(Part::Report(report))?;
    }
    Ok(())
}

fn survey(input: &mut Input<'_>, survey: &mut Survey) -> Result<()> {
    let folder = survey.discs.folder(input.name());
    let mut day = None;
    parts(input, &mut |part| {
        match part {
            Part::Banner(host, written) => {
                if folder.host.is_empty() {
                    folder.host = host;
                }
                day = written;
            }
            Part::Report(report) => {
                if let Some(when) = report.when {
                    folder.date(when.written, when.of_day);
                    if let Some(seconds) = when.zone {
                        folder.zone.get_or_insert((seconds, "an offset in its times".to_owned()));
                    }
                } else if let Some(written) = day {
                    folder.date(written, 0);
                }
                // The first time is enough.
                return Ok(false);
            }
            Part::Skipped(..) => {}
        }
        Ok(true)
    })
}

fn read(input: &mut Input<'_>, survey: &Survey, sink: &mut dyn Sink) -> Result<()> {
    let set = survey.discs.set(input.name());
    let clock = sink.clock(set.seconds(survey));
    if !set.host.is_empty() {
        sink.host(&set.host)?;
    }
    let cpu = if set.has_mpstat { "iostat" } else { "cpu" };
    let offset = |when: When| -> Option<i64> {
        let local = set.days(when.written)?.checked_mul(DAY)?.checked_add(when.of_day)?;
        // A time that names its zone needs no other.
        Some(match when.zone {
            Some(seconds) => local - i64::from(seconds) * SECOND,
            None => clock.to_utc(local),
        })
    };
    let mut held: Option<(Report, i64)> = None;
    let mut last: Option<i64> = None;
    parts(input, &mut |part| {
        let report = match part {
            Part::Banner(..) => return Ok(true),
            Part::Skipped(reason, at) => {
                sink.skip(reason, at);
                return Ok(true);
            }
            Part::Report(report) => report,
        };
        let Some(end_ns) = report.when.and_then(offset) else {
            sink.skip("report without a time (iostat -t prints one)", 0);
            return Ok(true);
        };
        match (held.take(), last) {
            (None, None) => held = Some((report, end_ns)),
            (Some((first, first_ns)), _) => {
                let step = end_ns.saturating_sub(first_ns);
                let step = if (1..=3600 * SECOND).contains(&step) { step } else { SECOND };
                give(&first, (first_ns.saturating_sub(step), first_ns), cpu, sink)?;
                give(&report, (first_ns.min(end_ns), end_ns), cpu, sink)?;
                last = Some(end_ns);
            }
            (None, Some(before)) => {
                give(&report, (before.min(end_ns), end_ns), cpu, sink)?;
                last = Some(end_ns);
            }
        }
        Ok(true)
    })?;
    if let Some((report, end_ns)) = held {
        give(&report, (end_ns.saturating_sub(SECOND), end_ns), cpu, sink)?;
    }
    Ok(())
}

/// A rate's key here, and what one of it is in an interval's sum.
fn amount(name: &str) -> Option<(&'static str, f64)> {
    const KIB: f64 = 1024.0;
    const MIB: f64 = 1_048_576.0;
    Some(match name {
        "r/s" => ("reads_completed", 1.0),
        "w/s" => ("writes_completed", 1.0),
        "d/s" => ("discards_completed", 1.0),
        "f/s" => ("flushes_completed", 1.0),
        "rrqm/s" => ("reads_merged", 1.0),
        "wrqm/s" => ("writes_merged", 1.0),
        "rkB/s" | "kB_read/s" => ("bytes_read", KIB),
        "wkB/s" | "kB_wrtn/s" => ("bytes_written", KIB),
        "dkB/s" | "kB_dscd/s" => ("bytes_discarded", KIB),
        "rMB/s" | "MB_read/s" => ("bytes_read", MIB),
        "wMB/s" | "MB_wrtn/s" => ("bytes_written", MIB),
        "dMB/s" | "MB_dscd/s" => ("bytes_discarded", MIB),
        "rsec/s" => ("bytes_read", 512.0),
        "wsec/s" => ("bytes_written", 512.0),
        _ => return None,
    })
}

fn give(report: &Report, (start_ns, end_ns): (i64, i64), cpu: &str, sink: &mut dyn Sink) -> Result<()> {
    let seconds = end_ns.saturating_sub(start_ns) as f64 / SECOND as f64;
    let shape = Shape::Counter { end_ns };
    for (device, values) in &report.devices {
        let args: Vec<(&str, Arg<'_>)> = values
            .iter()
            .map(|(name, value)| match (amount(name), name.as_str()) {
                (Some((key, unit)), _) => (key, whole(value * unit * seconds)),
                (None, "util" | "%util") => ("busy_pct", Arg::Float(*value)),
                (None, "aqu-sz" | "avgqu-sz") => ("queue", Arg::Float(*value)),
                (None, other) => (other, Arg::Float(*value)),
            })
            .collect();
        sink.event(&Event { shape, name: device, cat: "io", pid: 0, tid: 0, start_ns, args: &args })?;
    }
    if !report.shares.is_empty() {
        let key = |name: &str| match share(name.as_bytes()) {
            Some(key) => key.to_owned(),
            None => share(format!("%{name}").as_bytes()).map_or_else(|| name.to_owned(), str::to_owned),
        };
        let keys: Vec<String> = report.shares.iter().map(|(name, _)| key(name)).collect();
        let args: Vec<_> =
            keys.iter().zip(&report.shares).map(|(key, (_, value))| (key.as_str(), Arg::Float(*value))).collect();
        sink.event(&Event { shape, name: cpu, cat: "sys", pid: 0, tid: 0, start_ns, args: &args })?;
    }
    Ok(())
}

/// Amounts are whole; rates are rounded when they are printed.
fn whole(value: f64) -> Arg<'static> {
    Arg::Int(value.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::super::fields::DateOrder;
    use super::*;
    use crate::sink::Memory;

    const JSON: &str = r#"{"sysstat": {"hosts": [{"nodename": "vm", "date": "11/15/26", "statistics": [
        {"timestamp": "11/15/26 18:26:56", "disk": [{"disk_device": "vda", "r/s": 2.00, "wMB/s": 0.50, "r_await": 0.25, "util": 0.40}]},
        {"timestamp": "11/15/26 18:26:58", "avg-cpu": {"user": 1.5, "idle": 98.5}, "disk": [{"disk_device": "vda", "r/s": 1.00, "wMB/s": 0.00, "r_await": 0.00, "util": 0.00}]}
        ]}]}}"#;
    const TEXT: &str = "Linux 6.18 (vm) \t15.11.2026 \t_x86_64_\t(2 CPU)\n\n15.11.2026 18:26:56\navg-cpu:  %user   %idle\n           1,50   98,50\n\n\
        Device            r/s     wMB/s   r_await  %util\nvda              2,00      0,50   0,25  0,40\n\n\
        15.11.2026 18:26:58\nDevice            r/s     wMB/s   r_await  %util\nvda              1,00      0,00   0,00  0,00\nvdb 1\n";

    fn run(text: &[u8]) -> Memory {
        let mut found = Survey::default();
        let mut reader = text;
        survey(&mut Input::new("d/iostat", &mut reader), &mut found).expect("memory");
        found.conclude();
        let (mut memory, mut reader) = (Memory::default(), text);
        read(&mut Input::new("d/iostat", &mut reader), &found, &mut memory).expect("memory");
        memory
    }

    #[test]
    fn json_and_text_agree() {
        let (first, second) = ("1794767214000000000..1794767216000000000", "1794767216000000000..1794767218000000000");
        // JSON objects have no order.
        let sorted = |events: &[String]| -> Vec<Vec<String>> {
            let words = |event: &String| event.split(' ').map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
            events.iter().map(|event| words(event).into_iter().collect()).collect()
        };
        let disk = |at: &str, values: &str| format!("vm|counter vda io 0/0 {at} {values}");
        let cpu = |at: &str| format!("vm|counter cpu sys 0/0 {at} user_pct=1.5 idle_pct=98.5");
        let one = disk(first, "reads_completed=4 bytes_written=1048576 r_await=0.25 busy_pct=0.4");
        let two = disk(second, "reads_completed=2 bytes_written=0 r_await=0 busy_pct=0");
        assert_eq!(sorted(&run(JSON.as_bytes()).events), sorted(&[one.clone(), two.clone(), cpu(second)]));
        let text = run(TEXT.as_bytes());
        assert_eq!(text.events, [one, cpu(first), two]);
        assert_eq!(text.skipped["torn line"].count, 1);
    }

    #[test]
    fn times_in_any_locale() {
        let day = crate::formats::time::days(2022, 8, 27).expect("a day");
        for text in [
            "08/27/2022 10:34:32 PM",
            "2022-08-27 22:34:32",
            "27.08.2022 22:34:32",
            "08/27/22 22:34:32",
            "2022年08月27日 22时34分32秒",
            "2022-08-27 10:34:32 PM",
        ] {
            let found = when(text.as_bytes()).expect(text);
            assert_eq!(
                (found.written.days(DateOrder::MonthFirst), found.of_day),
                (Some(day), (22 * 3600 + 2072) * SECOND),
                "{text}"
            );
        }
        assert_eq!(when(b"2022-08-27T22:34:32-0400").and_then(|found| found.zone), Some(-14_400));
        assert_eq!(when(b"sda 1.0 2.0"), None);
    }

    #[test]
    fn cut_anywhere() {
        for text in [JSON, TEXT] {
            for length in 0..text.len() {
                run(&text.as_bytes()[..length]);
            }
        }
        // A JSON that was not closed still gives what is whole.
        assert_eq!(run(&JSON.as_bytes()[..JSON.len() - 30]).events.len(), 1);
    }

    #[test]
    fn detection() {
        let detect = |text: &str| detect(&Head { name: "x", bytes: text.as_bytes() });
        assert_eq!(
            (detect(JSON), detect(TEXT), detect("{\"a\":1}"), detect("Device x")),
            (Confidence::Certain, Confidence::Certain, Confidence::No, Confidence::No)
        );
    }
}
