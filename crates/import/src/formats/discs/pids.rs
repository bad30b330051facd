//! Lists of processes and their threads: `ps aux -T`, `ps -efT`, `docker top … -efT`.

use super::fields::{SECOND, Words, id};
use super::tell::Teller;
use crate::Result;
use crate::clock::ClockKind;
use crate::event::{Arg, Event, Shape};
use crate::input::{Head, Input};
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;

/// The format.
pub const FORMAT: Format = Format {
    kind: "ps",
    title: "list of processes (`ps aux -T`, `docker top`)",
    carries: "who processes are: command line, parent, threads, and the part that each plays",
    example: "pids.out",
    detect,
    survey: Some(survey),
    read,
};

/// The places of columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Columns {
    pid: usize,
    thread: Option<usize>,
    parent: Option<usize>,
    command: usize,
}

fn header(line: &[u8]) -> Option<Columns> {
    let words: Vec<&[u8]> = Words::new(line).take(64).collect();
    let place = |names: &[&[u8]]| words.iter().position(|word| names.contains(word));
    let command = place(&[b"COMMAND", b"CMD", b"ARGS"]).filter(|place| place + 1 == words.len())?;
    let first = words.first()?;
    let known = [&b"USER"[..], b"UID", b"PID", b"F"].contains(first);
    (known && words.len() >= 3).then_some(Columns {
        pid: place(&[b"PID"])?,
        thread: place(&[b"SPID", b"LWP", b"TID"]),
        parent: place(&[b"PPID"]),
        command,
    })
}

/// One thread of a list.
struct Listed<'a> {
    pid: u32,
    thread: u32,
    parent: u32,
    command: &'a [u8],
}

fn row<'a>(line: &'a [u8], columns: Columns) -> Option<Listed<'a>> {
    let mut words = Words::new(line);
    let (mut pid, mut thread, mut parent) = (None, None, 0);
    for place in 0..columns.command {
        let word = words.next()?;
        if place == columns.pid {
            pid = Some(id(word)?);
        }
        if Some(place) == columns.thread {
            thread = Some(id(word)?);
        }
        if Some(place) == columns.parent {
            parent = id(word)?;
        }
    }
    let pid = pid.filter(|pid| *pid != 0)?;
    (!words.rest().is_empty()).then_some(Listed { pid, thread: thread.unwrap_or(pid), parent, command: words.rest() })
}

fn detect(head: &Head<'_>) -> Confidence {
    let first = head.lines().find(|line| !line.is_empty());
    match first.and_then(header) {
        Some(_) => Confidence::Certain,
        None => Confidence::No,
    }
}

/// Goes through the lines; headers come again where lists were put behind each other.
fn each(input: &mut Input<'_>, act: &mut dyn FnMut(Option<Listed<'_>>, u64) -> Result<()>) -> Result<()> {
    let (mut line, mut columns) = (Vec::new(), None);
    while let Some(about) = input.next_line(&mut line)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Some(found) = header(&line) {
            columns = Some(found);
            continue;
        }
        act(columns.and_then(|columns| row(&line, columns)), about.offset)?;
    }
    Ok(())
}

fn survey(input: &mut Input<'_>, survey: &mut Survey) -> Result<()> {
    let folder = survey.discs.folder(input.name());
    each(input, &mut |listed, _| {
        if let Some(listed) = listed {
            folder.command(listed.pid, listed.parent, listed.thread, listed.command);
        }
        Ok(())
    })
}

fn read(input: &mut Input<'_>, survey: &Survey, sink: &mut dyn Sink) -> Result<()> {
    let set = survey.discs.set(input.name());
    let clock = sink.clock(set.clock(survey, ClockKind::LocalText));
    let at = clock.to_utc(set.near_ns());
    let mut teller = Teller::threads(set, sink)?;
    let mut told = std::collections::HashSet::new();
    each(input, &mut |listed, offset| {
        let Some(listed) = listed else {
            sink.skip("not a process", offset);
            return Ok(());
        };
        if !told.insert((listed.pid, listed.thread)) || told.len() > 1_000_000 {
            sink.skip("listed again", offset);
            return Ok(());
        }
        let person = set.people.get(&listed.pid);
        // A list of all that runs on a host: those that play no part, and nothing else tells of, would only fill the run.
        if person.is_some_and(|person| person.role == super::Role::Other) && listed.thread != listed.pid {
            sink.skip("thread of a process without a part", offset);
            return Ok(());
        }
        let comm = super::command::base(std::str::from_utf8(listed.command).unwrap_or_default());
        let comm = comm.split_ascii_whitespace().next().unwrap_or_default();
        teller.process(listed.pid, comm.as_bytes(), sink)?;
        let role = person.map_or("other", |person| person.role.words());
        let args = [("role", Arg::Text(role.as_bytes())), ("parent", Arg::Unsigned(u64::from(listed.parent)))];
        let (name, cat, shape) = ("process_listed", "PROCESS", Shape::Metadata);
        sink.event(&Event {
            shape,
            name,
            cat,
            pid: listed.pid,
            tid: listed.thread,
            start_ns: at.max(SECOND),
            args: &args,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Memory;

    const PS: &str = "USER         PID    SPID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND\n\
        root     10 10  0.0  0.0  31012 10632 ?        Ss   22:34   0:00 python -m torch.distributed.launch main.py\n\
        root     11 11 98.1  1.2 41012000 9106320 ?      Rl   Aug27   1:10 python -u main.py --local_rank=0\n\
        root     11 12 98.1  1.2 41012000 9106320 ?      Rl   22:34   1:10 python -u main.py --local_rank=0\n";
    const TOP: &str = "UID                 PID                 SPID                PPID                C                   STIME               TTY                 TIME                CMD\n\
        root                20                  20                  1                   0                   22:34               ?                   00:00:00            python main.py\n\
        root                21                  21                  20                  0                   22:34               ?                   00:00:00            python main.py\n";

    fn check(text: &str, processes: &[&str], skipped: u64) {
        let mut found = Survey::default();
        survey(&mut Input::new("d/pids.out", &mut text.as_bytes()), &mut found).expect("memory");
        found.conclude();
        let mut memory = Memory::default();
        read(&mut Input::new("d/pids.out", &mut text.as_bytes()), &found, &mut memory).expect("memory");
        assert_eq!(memory.processes, processes);
        assert_eq!(memory.skipped.values().map(|skipped| skipped.count).sum::<u64>(), skipped);
    }

    #[test]
    fn lists_of_both_commands() {
        // Nothing was seen of them: they are who they are, without parts.
        check(PS, &["10 torch.distributed.launch 10", "11 main 11"], 1);
        check(TOP, &["20 main 20", "21 main 21"], 0);
        check(
            &format!("{PS}junk\n{TOP}"),
            &["10 torch.distributed.launch 10", "11 main 11", "20 main 20", "21 main 21"],
            2,
        );
    }

    #[test]
    fn detection() {
        let detect = |text: &str| detect(&Head { name: "x", bytes: text.as_bytes() });
        assert_eq!((detect(PS), detect(TOP)), (Confidence::Certain, Confidence::Certain));
        assert_eq!(
            (detect("TIMESTAMP PID COMM\n"), detect("USER CMD x\n"), detect("")),
            (Confidence::No, Confidence::No, Confidence::No)
        );
    }

    #[test]
    fn cut_anywhere() {
        let text = format!("{PS}{TOP}");
        for length in 0..text.len() {
            let mut found = Survey::default();
            survey(&mut Input::new("x", &mut &text.as_bytes()[..length]), &mut found).expect("memory");
            found.conclude();
        }
    }
}
