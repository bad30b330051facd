//! `ifstat -t`: bytes in and out of each network interface.

use super::fields::{Days, SECOND, Words, decimal, take_time};
use crate::Result;
use crate::event::{Arg, Event, Shape};
use crate::input::{Head, Input};
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;

/// The format.
pub const FORMAT: Format = Format {
    kind: "ifstat",
    title: "ifstat -t",
    carries: "counters of bytes received and sent by each network interface",
    example: "ifstat.out",
    detect,
    survey: None,
    read,
};

/// `HH:MM:SS   KB/s in  KB/s out …`: how many pairs of columns, whether there are times, and bytes of a unit.
fn units(line: &[u8]) -> Option<(usize, bool, f64)> {
    let words: Vec<&[u8]> = Words::new(line).take(2048).collect();
    let timed = words.first() == Some(&&b"HH:MM:SS"[..]);
    let rest = &words[usize::from(timed)..];
    let unit = *rest.first()?;
    let bytes = match unit {
        b"KB/s" => 1024.0,
        b"Kbps" => 128.0,
        b"MB/s" => 1_048_576.0,
        b"Mbps" => 131_072.0,
        _ => return None,
    };
    let pairs =
        rest.chunks(4).all(|pair| matches!(pair, [one, b"in", other, b"out"] if *one == unit && *other == unit));
    (pairs && !rest.is_empty()).then_some((rest.len() / 4, timed, bytes))
}

/// The line above: `  Time           eth0                lo`.
fn interfaces(line: &[u8], pairs: usize) -> Option<Vec<String>> {
    let names: Vec<String> = Words::new(line)
        .filter(|word| *word != b"Time")
        .map(|word| String::from_utf8_lossy(word).into_owned())
        .collect();
    (names.len() == pairs).then_some(names)
}

fn detect(head: &Head<'_>) -> Confidence {
    let found = head.lines().take(10).any(|line| units(line).is_some());
    if found { Confidence::Certain } else { Confidence::No }
}

fn read(input: &mut Input<'_>, survey: &Survey, sink: &mut dyn Sink) -> Result<()> {
    let set = survey.discs.set(input.name());
    let clock = sink.clock(set.seconds(survey));
    if !set.host.is_empty() {
        sink.host(&set.host)?;
    }
    let mut days = Days::near(set.near_ns());
    let (mut names, mut unit, mut timed) = (Vec::new(), 1024.0, false);
    let (mut line, mut above, mut last) = (Vec::new(), Vec::new(), None::<i64>);
    while let Some(about) = input.next_line(&mut line)? {
        if let Some((pairs, has_time, bytes)) = units(&line) {
            (unit, timed) = (bytes, has_time);
            names = interfaces(&above, pairs)
                .unwrap_or_else(|| (1..=pairs).map(|place| format!("interface {place}")).collect());
            continue;
        }
        let mut words = Words::new(&line);
        let time = if timed { take_time(&mut words) } else { None };
        let values: Option<Vec<f64>> =
            words.clone().take(4096).map(|word| if word == b"n/a" { Some(0.0) } else { decimal(word) }).collect();
        let values = values.filter(|values| !values.is_empty() && values.len() == names.len() * 2);
        let (Some(values), Some(at)) = (values.clone(), time) else {
            // A header has the interfaces in its first line.
            let reason = match values {
                Some(_) => "line without a time (ifstat -t prints one)",
                None if line.first().is_some_and(u8::is_ascii_digit) => "torn line",
                None => "",
            };
            if !reason.is_empty() {
                sink.skip(reason, about.offset);
            }
            line.truncate(64 << 10);
            std::mem::swap(&mut above, &mut line);
            continue;
        };
        if about.unfinished {
            sink.skip("torn line", about.offset);
            continue;
        }
        let end = days.at(at);
        let start = last
            .replace(end)
            .filter(|start| *start < end && end - start < 3600 * SECOND)
            .unwrap_or(end.saturating_sub(SECOND));
        let seconds = (end - start) as f64 / SECOND as f64;
        let bytes = |rate: f64| Arg::Int((rate * unit * seconds).round() as i64);
        for (name, pair) in names.iter().zip(values.chunks(2)) {
            let args = [("bytes_recv", bytes(pair[0])), ("bytes_sent", bytes(pair[1]))];
            let (shape, start_ns) = (Shape::Counter { end_ns: clock.to_utc(end) }, clock.to_utc(start));
            sink.event(&Event { shape, name, cat: "net", pid: 0, tid: 0, start_ns, args: &args })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Memory;

    const TEXT: &str = "  Time           eth0                lo\nHH:MM:SS   KB/s in  KB/s out   KB/s in  KB/s out\n\
        00:00:01      1.00      2.50      0.00      0.00\n00:00:03      2.00      0.00      0.00      1.00\n00:00:04 1.0\n";

    fn run(text: &[u8]) -> Memory {
        let (mut memory, mut reader) = (Memory::default(), text);
        read(&mut Input::new("ifstat.out", &mut reader), &Survey::default(), &mut memory).expect("memory");
        memory
    }

    #[test]
    fn bytes_of_interfaces() {
        let memory = run(TEXT.as_bytes());
        assert_eq!(
            memory.events,
            [
                "counter eth0 net 0/0 0..1000000000 bytes_recv=1024 bytes_sent=2560",
                "counter lo net 0/0 0..1000000000 bytes_recv=0 bytes_sent=0",
                "counter eth0 net 0/0 1000000000..3000000000 bytes_recv=4096 bytes_sent=0",
                "counter lo net 0/0 1000000000..3000000000 bytes_recv=0 bytes_sent=2048",
            ]
        );
        assert_eq!(memory.skipped["torn line"].count, 1);
        let untimed = run(b"       eth0\n KB/s in  KB/s out\n    1.00      2.50\n");
        assert_eq!((untimed.events.len(), untimed.skipped.len()), (0, 1));
    }

    #[test]
    fn cut_anywhere() {
        for length in 0..TEXT.len() {
            run(&TEXT.as_bytes()[..length]);
        }
    }
}
