//! `nvidia-smi pmon -o DT`: what each process does on each GPU.
//!
//! A `-` of the processor's or the memory's share says that the process did nothing in the interval; a line without a process, that the GPU had
//! none. A GPU whose lines end has no samples any more: each GPU is a counter of its own, so averages need no row of equal length.

use super::fields::{DAY, SECOND, Words, date, decimal, id, time_of_day};
use super::tell::Teller;
use crate::Result;
use crate::clock::Clock;
use crate::event::{Arg, Event, Shape};
use crate::input::{Head, Input};
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;

/// The format.
pub const FORMAT: Format = Format {
    kind: "nvidia-pmon",
    title: "nvidia-smi pmon",
    carries: "counters of each GPU, and of each process on it: processor, memory, encoder, decoder, frame buffer",
    example: "gpu.out",
    detect,
    survey: Some(survey),
    read,
};

/// GPUs of a host.
const MOST_GPUS: u32 = 1024;

/// What a column holds.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Column {
    Date,
    Time,
    Gpu,
    Pid,
    Type,
    Command,
    /// A value, its key, and whether `-` is nothing done rather than nothing known.
    Value(String, bool),
}

fn header(line: &[u8]) -> Option<Vec<Column>> {
    let line = line.strip_prefix(b"#")?;
    let names: Vec<&[u8]> = Words::new(line).take(40).collect();
    if !names.contains(&&b"gpu"[..]) || !names.contains(&&b"pid"[..]) {
        return None;
    }
    let column = |name: &&[u8]| match *name {
        b"Date" => Column::Date,
        b"Time" => Column::Time,
        b"gpu" => Column::Gpu,
        b"pid" => Column::Pid,
        b"type" => Column::Type,
        b"command" => Column::Command,
        b"sm" => Column::Value("busy_pct".to_owned(), true),
        b"mem" => Column::Value("memory_busy_pct".to_owned(), true),
        b"enc" => Column::Value("encoder_pct".to_owned(), false),
        b"dec" => Column::Value("decoder_pct".to_owned(), false),
        b"fb" => Column::Value("memory_used_bytes".to_owned(), false),
        other => Column::Value(String::from_utf8_lossy(other).into_owned(), false),
    };
    Some(names.iter().map(column).collect())
}

/// A line; values in the order of the columns.
#[derive(Debug, Default)]
struct Sample<'a> {
    local_ns: Option<i64>,
    gpu: u32,
    pid: u32,
    command: &'a [u8],
    values: Vec<Option<f64>>,
}

fn row<'a>(line: &'a [u8], columns: &[Column]) -> Option<Sample<'a>> {
    let mut words = Words::new(line);
    let mut sample = Sample::default();
    let (mut day, mut of_day) = (None, None);
    for column in columns {
        // Names of commands hold blanks at times; they are last.
        let word = if *column == Column::Command { words.rest() } else { words.next()? };
        match column {
            Column::Date => day = Some(date(word)?),
            Column::Time => of_day = Some(time_of_day(word)?),
            Column::Gpu => sample.gpu = id(word).filter(|gpu| *gpu < MOST_GPUS)?,
            Column::Pid => sample.pid = if word == b"-" { 0 } else { id(word)? },
            Column::Type => {}
            Column::Command => sample.command = word,
            Column::Value(_, dash_is_zero) => sample.values.push(match word {
                b"-" => (*dash_is_zero).then_some(0.0),
                number => Some(decimal(number)?),
            }),
        }
    }
    if columns.contains(&Column::Command) && sample.command.is_empty() {
        return None;
    }
    if let (Some(day), Some(of_day)) = (day, of_day) {
        sample.local_ns = day.days(super::DateOrder::default())?.checked_mul(DAY)?.checked_add(of_day);
    }
    (columns.contains(&Column::Command) || words.rest().is_empty()).then_some(sample)
}

fn detect(head: &Head<'_>) -> Confidence {
    let found = head.lines().take(5).any(|line| header(line).is_some_and(|columns| columns.contains(&Column::Pid)));
    if found { Confidence::Certain } else { Confidence::No }
}

fn is_units(line: &[u8]) -> bool {
    line.starts_with(b"#")
}

fn survey(input: &mut Input<'_>, survey: &mut Survey) -> Result<()> {
    let folder = survey.discs.folder(input.name());
    let (mut line, mut columns, mut dated) = (Vec::new(), Vec::new(), false);
    while input.next_line(&mut line)?.is_some() {
        if is_units(&line) {
            columns = header(&line).unwrap_or(columns);
            continue;
        }
        let Some(sample) = row(&line, &columns).filter(|_| !columns.is_empty()) else { continue };
        let Some(local_ns) = sample.local_ns else { continue };
        if !std::mem::replace(&mut dated, true) {
            folder.dated.push(local_ns);
        }
        if sample.pid == 0 {
            continue;
        }
        folder.gpu.mark(local_ns.div_euclid(SECOND));
        if let Some(seen) = folder.process(sample.pid) {
            if seen.gpus.len() < 64 {
                seen.gpus.insert(sample.gpu);
            }
            if seen.comm.is_empty() {
                seen.comm = String::from_utf8_lossy(&sample.command[..sample.command.len().min(64)]).into_owned();
            }
        }
    }
    Ok(())
}

/// What the processes of one GPU do together at one time.
struct Together {
    local_ns: i64,
    gpu: u32,
    values: Vec<Option<f64>>,
}

fn read(input: &mut Input<'_>, survey: &Survey, sink: &mut dyn Sink) -> Result<()> {
    let set = survey.discs.set(input.name());
    let clock = sink.clock(set.seconds(survey));
    let mut teller = Teller::threads(set, sink)?;
    let (mut line, mut columns) = (Vec::new(), Vec::new());
    let mut together: Option<Together> = None;
    // When each GPU was last sampled.
    let mut last: std::collections::HashMap<u32, i64> = std::collections::HashMap::new();
    while let Some(about) = input.next_line(&mut line)? {
        if line.trim_ascii().is_empty() {
            continue;
        }
        if is_units(&line) {
            if let Some(found) = header(&line)
                && found != columns
            {
                flush(together.take(), &columns, &mut last, &clock, sink)?;
                columns = found;
            }
            continue;
        }
        // A line that the file's end cut off lacks its command, or the end of it.
        let sample = row(&line, &columns).filter(|_| !columns.is_empty());
        let Some(sample) = sample else {
            sink.skip("torn line", about.offset);
            continue;
        };
        let Some(local_ns) = sample.local_ns else {
            sink.skip("line without a time (pmon -o DT prints one)", about.offset);
            continue;
        };
        match &mut together {
            Some(same) if same.local_ns == local_ns && same.gpu == sample.gpu => {
                for (sum, value) in same.values.iter_mut().zip(&sample.values) {
                    *sum = match (*sum, *value) {
                        (Some(sum), Some(value)) => Some(sum + value),
                        (sum, value) => sum.or(value),
                    };
                }
            }
            _ => {
                let next = Together { local_ns, gpu: sample.gpu, values: sample.values.clone() };
                flush(together.replace(next), &columns, &mut last, &clock, sink)?;
            }
        }
        if sample.pid != 0 {
            teller.process(sample.pid, sample.command, sink)?;
            let start = begin(last.get(&sample.gpu).copied(), local_ns);
            counter(
                sample.pid,
                sample.gpu,
                &sample.values,
                &columns,
                (clock.to_utc(start), clock.to_utc(local_ns)),
                sink,
            )?;
        }
    }
    flush(together, &columns, &mut last, &clock, sink)
}

/// When an interval began: at the sample before, unless that is long ago.
fn begin(before: Option<i64>, end: i64) -> i64 {
    before.filter(|before| *before < end && end - before <= 60 * SECOND).unwrap_or(end.saturating_sub(SECOND))
}

fn flush(
    together: Option<Together>,
    columns: &[Column],
    last: &mut std::collections::HashMap<u32, i64>,
    clock: &Clock,
    sink: &mut dyn Sink,
) -> Result<()> {
    let Some(Together { local_ns, gpu, values }) = together else { return Ok(()) };
    let start = begin(last.insert(gpu, local_ns), local_ns);
    counter(0, gpu, &values, columns, (clock.to_utc(start), clock.to_utc(local_ns)), sink)
}

fn counter(
    pid: u32,
    gpu: u32,
    values: &[Option<f64>],
    columns: &[Column],
    (start_ns, end_ns): (i64, i64),
    sink: &mut dyn Sink,
) -> Result<()> {
    let keys = columns.iter().filter_map(|column| match column {
        Column::Value(key, _) => Some(key.as_str()),
        _ => None,
    });
    let args: Vec<(&str, Arg<'_>)> = keys
        .zip(values)
        .filter_map(|(key, value)| match (key, (*value)?) {
            // Told in MiB.
            ("memory_used_bytes", value) => Some((key, Arg::Unsigned((value * 1_048_576.0) as u64))),
            (key, value) => Some((key, Arg::Float(value))),
        })
        .collect();
    if args.is_empty() {
        return Ok(());
    }
    let name = format!("gpu{gpu}");
    sink.event(&Event {
        shape: Shape::Counter { end_ns },
        name: &name,
        cat: "gpu",
        pid,
        tid: pid,
        start_ns,
        args: &args,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::Memory;

    const TEXT: &str = "#Date       Time        gpu        pid  type    sm   mem   enc   dec    fb   command\n\
        #YYYYMMDD   HH:MM:SS    Idx          #   C/G     %     %     %     %    MB   name\n \
        20220827   22:34:39      0         79     C     7     -     -     -    12   python         \n \
        20220827   22:34:39      0         80     C     5     2     1     -    10   python         \n \
        20220827   22:34:39      1          -     -     -     -     -     -     -   -              \n \
        20220827   22:34:41      0         79     C     1     0\n";

    fn run(text: &[u8]) -> Memory {
        let mut found = Survey::default();
        let mut reader = text;
        survey(&mut Input::new("d/gpu.out", &mut reader), &mut found).expect("memory");
        found.conclude();
        let (mut memory, mut reader) = (Memory::default(), text);
        read(&mut Input::new("d/gpu.out", &mut reader), &found, &mut memory).expect("memory");
        memory
    }

    #[test]
    fn processes_and_their_sum() {
        let memory = run(TEXT.as_bytes());
        let at = "1661639678000000000..1661639679000000000";
        assert_eq!(
            memory.events,
            [
                format!("counter gpu0 gpu 79/79 {at} busy_pct=7 memory_busy_pct=0 memory_used_bytes=12582912"),
                format!(
                    "counter gpu0 gpu 80/80 {at} busy_pct=5 memory_busy_pct=2 encoder_pct=1 memory_used_bytes=10485760"
                ),
                format!(
                    "counter gpu0 gpu 0/0 {at} busy_pct=12 memory_busy_pct=2 encoder_pct=1 memory_used_bytes=23068672"
                ),
                format!("counter gpu1 gpu 0/0 {at} busy_pct=0 memory_busy_pct=0"),
            ]
        );
        assert_eq!(memory.skipped["torn line"].count, 1);
        assert_eq!(memory.processes, ["79 worker 1", "80 worker 2"]);
    }

    #[test]
    fn cut_anywhere() {
        for length in 0..TEXT.len() {
            run(&TEXT.as_bytes()[..length]);
        }
    }
}
