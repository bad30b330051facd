//! `vmstat -t`: runnable processes, memory, paging, block I/O, interrupts and processor shares of a host.

use super::facts::Set;
use super::fields::{SECOND, Words, Written, date, integer, take_time};
use crate::Result;
use crate::event::{Arg, Event, Shape};
use crate::input::{Head, Input};
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;

/// The format.
pub const FORMAT: Format = Format {
    kind: "vmstat",
    title: "vmstat -t",
    carries: "counters of memory, swap, paging, interrupts, runnable processes, and processor shares where no mpstat tells them",
    example: "vmstat.out",
    detect,
    survey: Some(survey),
    read,
};

/// The names of columns, and of the zone behind them where times are printed.
fn header(line: &[u8]) -> Option<(Vec<Vec<u8>>, Option<String>)> {
    let mut words: Vec<&[u8]> = Words::new(line).take(40).collect();
    if !words.starts_with(&[b"r", b"b"]) || !words.contains(&&b"cs"[..]) {
        return None;
    }
    let last = words.last()?;
    let zone = last.iter().any(u8::is_ascii_uppercase) || last.starts_with(b"+") || last.starts_with(b"-");
    let zone = zone.then(|| String::from_utf8_lossy(last).into_owned());
    if zone.is_some() {
        words.pop();
    }
    Some((words.into_iter().map(<[u8]>::to_vec).collect(), zone))
}

fn is_groups(line: &[u8]) -> bool {
    let trimmed = line.trim_ascii();
    trimmed.starts_with(b"procs -") || trimmed.starts_with(b"--procs--")
}

fn detect(head: &Head<'_>) -> Confidence {
    let found = head.lines().take(10).any(|line| header(line).is_some());
    if found { Confidence::Certain } else { Confidence::No }
}

/// Zones whose names mean one thing.
pub(super) fn zone_of_name(name: &str) -> Option<i32> {
    let hours = match name {
        "UTC" | "GMT" | "WET" => 0,
        "CET" | "WEST" => 1,
        "CEST" | "EET" => 2,
        "EEST" | "MSK" => 3,
        "JST" | "KST" => 9,
        "EST" | "CDT" => -5,
        "EDT" => -4,
        "MDT" => -6,
        "MST" | "PDT" => -7,
        "PST" => -8,
        other => {
            // Zones without a name print their offset: `-03`.
            let text = if other.len() == 3 { format!("{other}00") } else { other.to_owned() };
            return super::fields::zone(text.as_bytes());
        }
    };
    Some(hours * 3600)
}

/// A date as it was written, and a time of day.
type When = (Written, i64);

/// A line: its values, and its time where it has one.
fn row(line: &[u8], columns: usize) -> Option<(Vec<i64>, Option<When>)> {
    let mut words = Words::new(line);
    let values: Vec<i64> = (0..columns).map(|_| words.next().and_then(integer)).collect::<Option<_>>()?;
    if words.rest().is_empty() {
        return Some((values, None));
    }
    let written = date(words.next()?)?;
    let at = take_time(&mut words)?;
    words.rest().is_empty().then_some((values, Some((written, at))))
}

fn survey(input: &mut Input<'_>, survey: &mut Survey) -> Result<()> {
    let folder = survey.discs.folder(input.name());
    let (mut line, mut columns) = (Vec::new(), 0);
    for _ in 0..20 {
        if input.next_line(&mut line)?.is_none() {
            break;
        }
        if let Some((names, zone)) = header(&line) {
            columns = names.len();
            if let Some((seconds, name)) = zone.and_then(|name| Some((zone_of_name(&name)?, name))) {
                folder.zone.get_or_insert((seconds, name));
            }
        } else if let Some((_, Some((written, at)))) = row(&line, columns).filter(|_| columns > 0) {
            folder.date(written, at);
            break;
        }
    }
    Ok(())
}

/// One line's values by their names.
struct Values<'a> {
    names: &'a [Vec<u8>],
    values: &'a [i64],
    /// The length of the interval: most columns are per second.
    seconds: f64,
}

impl<'a> Values<'a> {
    fn of(&self, name: &str) -> Option<i64> {
        self.names.iter().position(|known| known == name.as_bytes()).map(|place| self.values[place])
    }

    fn as_is(&self, name: &str, key: &'a str) -> Option<(&'a str, Arg<'a>)> {
        self.of(name).map(|value| (key, Arg::Int(value)))
    }

    fn share(&self, name: &str, key: &'a str) -> Option<(&'a str, Arg<'a>)> {
        self.of(name).map(|value| (key, Arg::Float(value as f64)))
    }

    fn per_second(&self, name: &str, key: &'a str) -> Option<(&'a str, Arg<'a>)> {
        self.of(name).map(|value| (key, Arg::Int((value as f64 * self.seconds).round() as i64)))
    }
}

fn read(input: &mut Input<'_>, survey: &Survey, sink: &mut dyn Sink) -> Result<()> {
    let set = survey.discs.set(input.name());
    let clock = sink.clock(set.seconds(survey));
    if !set.host.is_empty() {
        sink.host(&set.host)?;
    }
    let (mut names, mut last, mut line) = (Vec::new(), None::<i64>, Vec::new());
    while let Some(about) = input.next_line(&mut line)? {
        if line.trim_ascii().is_empty() || is_groups(&line) {
            continue;
        }
        if let Some((found, _)) = header(&line) {
            names = found;
            continue;
        }
        let parsed = row(&line, names.len()).filter(|_| !names.is_empty() && !about.unfinished);
        let Some((values, time)) = parsed else {
            sink.skip("torn line", about.offset);
            continue;
        };
        let Some(end) =
            time.and_then(|(written, at)| set.days(written)?.checked_mul(super::fields::DAY)?.checked_add(at))
        else {
            sink.skip("line without a time (vmstat -t prints one)", about.offset);
            continue;
        };
        let Some(start) = last.replace(end).filter(|start| *start < end) else {
            sink.skip("average since the host's start", about.offset);
            continue;
        };
        let values = Values { names: &names, values: &values, seconds: (end - start) as f64 / SECOND as f64 };
        give(&values, set, (clock.to_utc(start), clock.to_utc(end)), sink)?;
    }
    Ok(())
}

fn give(values: &Values<'_>, set: &Set, (start_ns, end_ns): (i64, i64), sink: &mut dyn Sink) -> Result<()> {
    // mpstat tells shares more exactly: two counters of one name would be one.
    let cpu = if set.has_mpstat { "vmstat" } else { "cpu" };
    let counters = [
        (
            "kernel",
            [
                values.as_is("r", "running"),
                values.as_is("b", "blocked"),
                values.per_second("in", "interrupts"),
                values.per_second("cs", "context_switches"),
                None,
                None,
            ],
        ),
        (
            "memory",
            [
                values.as_is("free", "MemFree"),
                values.as_is("buff", "Buffers"),
                values.as_is("cache", "Cached"),
                values.as_is("inact", "Inactive"),
                values.as_is("active", "Active"),
                None,
            ],
        ),
        ("swap", [values.as_is("swpd", "used_kb"), None, None, None, None, None]),
        (
            "paging",
            [
                values.per_second("bi", "paged_in_kb"),
                values.per_second("bo", "paged_out_kb"),
                values.per_second("si", "swapped_in_kb"),
                values.per_second("so", "swapped_out_kb"),
                None,
                None,
            ],
        ),
        (
            cpu,
            [
                values.share("us", "user_pct"),
                values.share("sy", "system_pct"),
                values.share("id", "idle_pct"),
                values.share("wa", "iowait_pct"),
                values.share("st", "steal_pct"),
                values.share("gu", "guest_pct"),
            ],
        ),
    ];
    for (name, args) in counters {
        let args: Vec<_> = args.into_iter().flatten().collect();
        if !args.is_empty() {
            let shape = Shape::Counter { end_ns };
            sink.event(&Event { shape, name, cat: "sys", pid: 0, tid: 0, start_ns, args: &args })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Memory;

    const TEXT: &str = "procs -----------memory---------- ---swap-- -----io---- -system-- ------cpu----- -----timestamp-----\n \
        r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st                 EDT\n \
        1  0      0 100000   2000  30000    0    0    10    20  300  400  5  2 92  1  0 2022-08-27 22:34:31\n \
        2  1      5 100001   2000  30000    1    0    10    20  300  400  5  2 92  1  0 2022-08-27 22:34:33\n \
        2  1      5 100001\n";

    fn run(text: &[u8]) -> Memory {
        let mut found = Survey::default();
        let mut reader = text;
        survey(&mut Input::new("d/vmstat.out", &mut reader), &mut found).expect("memory");
        found.conclude();
        let (mut memory, mut reader) = (Memory::default(), text);
        read(&mut Input::new("d/vmstat.out", &mut reader), &found, &mut memory).expect("memory");
        memory
    }

    #[test]
    fn counters_with_the_zone_that_the_header_names() {
        let memory = run(TEXT.as_bytes());
        // 22:34:31 EDT is 02:34:31 UTC.
        let at = "1661654071000000000..1661654073000000000";
        assert_eq!(
            memory.events[0],
            format!("counter kernel sys 0/0 {at} running=2 blocked=1 interrupts=600 context_switches=800")
        );
        assert_eq!(memory.events[1], format!("counter memory sys 0/0 {at} MemFree=100001 Buffers=2000 Cached=30000"));
        assert_eq!(memory.events[2], format!("counter swap sys 0/0 {at} used_kb=5"));
        assert_eq!(
            memory.events[3],
            format!("counter paging sys 0/0 {at} paged_in_kb=20 paged_out_kb=40 swapped_in_kb=2 swapped_out_kb=0")
        );
        assert_eq!(
            memory.events[4],
            format!("counter cpu sys 0/0 {at} user_pct=5 system_pct=2 idle_pct=92 iowait_pct=1 steal_pct=0")
        );
        let told: Vec<_> = memory.skipped.iter().map(|(reason, skipped)| (reason.as_str(), skipped.count)).collect();
        assert_eq!(told, [("average since the host's start", 1), ("torn line", 1)]);
    }

    #[test]
    fn cut_anywhere() {
        for length in 0..TEXT.len() {
            run(&TEXT.as_bytes()[..length]);
        }
    }
}
