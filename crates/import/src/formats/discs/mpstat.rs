//! `mpstat`: shares of processor time, of all together and of each; 12 and 24 hours, any locale.

use super::facts::Set;
use super::fields::{Days, SECOND, Words, Written, date, decimal, take_time};
use crate::Result;
use crate::event::{Arg, Event, Shape};
use crate::input::{Head, Input};
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;

/// The format.
pub const FORMAT: Format = Format {
    kind: "mpstat",
    title: "mpstat",
    carries: "counters of processor shares, of all together and of each",
    example: "cpu.out",
    detect,
    survey: Some(survey),
    read,
};

/// What mpstat calls its columns, and what they are called here.
pub(super) fn share(name: &[u8]) -> Option<&'static str> {
    Some(match name {
        b"%usr" | b"%user" => "user_pct",
        b"%nice" => "nice_pct",
        b"%sys" | b"%system" => "system_pct",
        b"%iowait" => "iowait_pct",
        b"%irq" => "irq_pct",
        b"%soft" => "softirq_pct",
        b"%steal" => "steal_pct",
        b"%guest" => "guest_pct",
        b"%gnice" => "guest_nice_pct",
        b"%idle" => "idle_pct",
        _ => return None,
    })
}

/// `Linux 5.4.0-122-generic (dgx1) 08/27/2022 _x86_64_ (80 CPU)`: host and date, as all of sysstat's tools begin.
pub(super) fn banner(line: &[u8]) -> Option<(String, Written)> {
    let mut words = Words::new(line);
    words.next().filter(|word| *word == b"Linux")?;
    // The kernel's version looks like a date at times.
    words.next()?;
    let mut host = String::new();
    for word in words.take(8) {
        if let Some(written) = date(word) {
            return Some((host, written));
        }
        if let Some(name) = word.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")")) {
            host = String::from_utf8_lossy(name).into_owned();
        }
    }
    None
}

/// `22:34:31 CPU %usr …`: the columns behind CPU.
fn header(line: &[u8]) -> Option<(i64, Vec<Vec<u8>>)> {
    let mut words = Words::new(line);
    let at = take_time(&mut words)?;
    let names: Vec<Vec<u8>> = words.skip_while(|word| *word != b"CPU").skip(1).take(64).map(<[u8]>::to_vec).collect();
    names.iter().any(|name| share(name).is_some()).then_some((at, names))
}

fn detect(head: &Head<'_>) -> Confidence {
    let found = head.lines().take(30).any(|line| header(line).is_some());
    if found { Confidence::Certain } else { Confidence::No }
}

fn survey(input: &mut Input<'_>, survey: &mut Survey) -> Result<()> {
    let folder = survey.discs.folder(input.name());
    folder.has_mpstat = true;
    let (mut line, mut written) = (Vec::new(), None);
    // The banner is first, the first time soon behind it.
    for _ in 0..30 {
        if input.next_line(&mut line)?.is_none() {
            break;
        }
        if let Some((host, date)) = banner(&line) {
            if folder.host.is_empty() {
                folder.host = host;
            }
            written = Some(date);
        }
        if let (Some((at, _)), Some(date)) = (header(&line), written) {
            folder.date(date, at);
            break;
        }
    }
    Ok(())
}

/// The day of a file's first line: as its banner tells, else near what is known of the folder.
pub(super) fn days(set: &Set, banner: Option<Written>) -> Days {
    match banner.and_then(|written| set.days(written)) {
        Some(days) => Days::from_day(days),
        None => Days::near(set.near_ns()),
    }
}

fn read(input: &mut Input<'_>, survey: &Survey, sink: &mut dyn Sink) -> Result<()> {
    let set = survey.discs.set(input.name());
    let clock = sink.clock(set.seconds(survey));
    if !set.host.is_empty() {
        sink.host(&set.host)?;
    }
    let mut days = days(set, None);
    let mut names: Vec<Vec<u8>> = Vec::new();
    // When the current sample ends, and when the one before did.
    let (mut now, mut before) = (None::<i64>, None::<i64>);
    let mut line = Vec::new();
    while let Some(about) = input.next_line(&mut line)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Some((_, written)) = banner(&line) {
            days = self::days(set, Some(written));
            continue;
        }
        if let Some((at, found)) = header(&line) {
            names = found;
            if now.is_none() {
                now = Some(days.at(at));
            }
            continue;
        }
        let mut words = Words::new(&line);
        let Some(at) = take_time(&mut words) else {
            let average = Words::new(&line).next().is_some_and(|word| word.ends_with(b":"));
            sink.skip(if average { "average of the whole trace" } else { "torn line" }, about.offset);
            continue;
        };
        let cpu = words.next().unwrap_or_default();
        let values: Vec<Option<f64>> = words.take(65).map(decimal).collect();
        let core = match cpu {
            b"all" => Some("cpu".to_owned()),
            number => super::fields::id(number).map(|number| format!("cpu-{number}")),
        };
        let Some(name) =
            core.filter(|_| !about.unfinished && values.len() == names.len() && values.iter().all(Option::is_some))
        else {
            sink.skip("torn line", about.offset);
            continue;
        };
        let end = days.at(at);
        if now != Some(end) {
            (before, now) = (now, Some(end));
        }
        let start =
            before.filter(|before| *before < end && end - before < 3600 * SECOND).unwrap_or(end.saturating_sub(SECOND));
        let keys: Vec<String> = names
            .iter()
            .map(|name| share(name).map_or_else(|| String::from_utf8_lossy(name).into_owned(), str::to_owned))
            .collect();
        let args: Vec<_> =
            keys.iter().zip(values).filter_map(|(key, value)| Some((key.as_str(), Arg::Float(value?)))).collect();
        let (shape, start_ns) = (Shape::Counter { end_ns: clock.to_utc(end) }, clock.to_utc(start));
        sink.event(&Event { shape, name: &name, cat: "sys", pid: 0, tid: 0, start_ns, args: &args })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Memory;

    fn check(text: &str, events: &[&str], skipped: &[(&str, u64)]) {
        let mut found = Survey::default();
        survey(&mut Input::new("d/cpu.out", &mut text.as_bytes()), &mut found).expect("memory");
        found.conclude();
        let mut memory = Memory::default();
        read(&mut Input::new("d/cpu.out", &mut text.as_bytes()), &found, &mut memory).expect("memory");
        assert_eq!(memory.events, events);
        let told: Vec<_> = memory.skipped.iter().map(|(reason, skipped)| (reason.as_str(), skipped.count)).collect();
        assert_eq!(told, skipped);
    }

    const HEADER: &str = "Linux 5.4.0-122-generic (dgx1) \t08/27/2022 \t_x86_64_\t(80 CPU)\n\n";

    #[test]
    fn both_clocks_cores_and_midnight() {
        let late = format!(
            "{HEADER}11:59:58 PM  CPU    %usr   %idle\n11:59:59 PM  all    4.33    95.67\n11:59:59 PM    3    1.00    99.00\n\
             12:00:00 AM  all    1,05    98.95\n12:00:01 AM  all  1.0\nAverage:     all    1.00    98.00\n"
        );
        let day = 19_231 * 86_400_i64;
        let at = |second: i64| format!("{}000000000", day + second);
        let expected = [
            format!("dgx1|counter cpu sys 0/0 {}..{} user_pct=4.33 idle_pct=95.67", at(86_398), at(86_399)),
            format!("dgx1|counter cpu-3 sys 0/0 {}..{} user_pct=1 idle_pct=99", at(86_398), at(86_399)),
            format!("dgx1|counter cpu sys 0/0 {}..{} user_pct=1.05 idle_pct=98.95", at(86_399), at(86_400)),
        ];
        let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
        check(&late, &expected, &[("average of the whole trace", 1), ("torn line", 1)]);
        let other = format!("{HEADER}22:34:31     CPU    %usr   %idle\n22:34:33    all    4.33    95.67\n")
            .replace("08/27/2022", "27.08.2022");
        let expected = format!("dgx1|counter cpu sys 0/0 {}..{} user_pct=4.33 idle_pct=95.67", at(81_271), at(81_273));
        check(&other, &[&expected], &[]);
    }

    #[test]
    fn cut_anywhere() {
        let text =
            format!("{HEADER}22:34:31     CPU    %usr   %idle\n22:34:33    all    4.33    95.67\nAverage: all 1 2\n");
        for length in 0..text.len() {
            let mut memory = Memory::default();
            read(&mut Input::new("x", &mut &text.as_bytes()[..length]), &Survey::default(), &mut memory)
                .expect("memory");
        }
    }
}
