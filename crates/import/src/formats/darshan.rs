//! Darshan logs, from format 3.00 on: what each process of a job did with each file, as counters and, where asked for, call by call.
//!
//! | in the log | in the run |
//! |---|---|
//! | a rank | a process: rank 0 is pid 1 and so on; a job of one process whose log's name tells its pid has that |
//! | rank -1, what all ranks did together | a process of its own behind the last rank |
//! | the job | a span `job` over all of it, and facts about it |
//! | a record of counters | facts about its file with all counters that are not 0, and totals of calls: number, bytes, time |
//! | a segment of DXT | a span `read` or `write`; the totals are less by it |
//! | a bin of a heatmap | a counter |
//!
//! The file is read once, in its order. The names of files are held (up to [`job::MOST_NAMES`]), and where DXT has calls one by one the totals of their
//! files (up to [`counters::MOST_HELD`]); all else streams.

mod bytes;
mod counters;
mod header;
mod job;
mod layout;
mod others;
mod out;
mod segments;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod writer;

use bytes::Region;
use counters::Held;
use header::{Header, Map, Module};
use job::{Job, Names};
use layout::Layout;
use out::{ABOUT, Out};

use crate::Result;
use crate::clock::{Clock, ClockKind};
use crate::event::{Arg, Event, Shape};
use crate::input::{Head, Input};
use crate::registry::{Confidence, Format};
use crate::sink::Sink;
use crate::survey::Survey;

/// The format.
pub const FORMAT: Format = Format {
    kind: "darshan",
    title: "Darshan log",
    carries: "calls, bytes and times per file, rank and layer (POSIX, STDIO, MPI-IO, HDF5, PnetCDF) as totals, DXT segments as spans, heatmaps as \
              counters, Lustre layouts, all counters and the job as facts",
    example: "job.darshan",
    detect,
    survey: None,
    read,
};

fn detect(head: &Head<'_>) -> Confidence {
    if header::order_of(head.bytes).is_some() { Confidence::Certain } else { Confidence::No }
}

/// The pid in the name of a log, as newer versions write it: `user_exe_idJOB-PID_…`.
fn pid_of(name: &str) -> Option<u32> {
    let numbers = name.split('_').find_map(|part| part.strip_prefix("id"))?;
    let (job, pid) = numbers.split_once('-')?;
    let is_number = job.bytes().all(|byte| byte.is_ascii_digit()) && !job.is_empty();
    pid.parse().ok().filter(|pid| is_number && *pid > 0)
}

fn read(input: &mut Input<'_>, _: &Survey, sink: &mut dyn Sink) -> Result<()> {
    let header = Header::read(input)?;
    let length = header.job_end().map(|end| end.checked_sub(input.offset()));
    if length == Some(None) {
        return Err(input.invalid(0, "a part of the log begins within its header"));
    }
    let mut region = Region::new(input, "job record", header.packing, length.flatten());
    let job = Job::read(&mut region, &header)?;
    let clock = sink.clock(clock_of(&job, &header));
    let pid = pid_of(input.file_name());
    let mut out = Out::new(sink, clock, job, pid);
    if let Some(map) = header.names {
        go(input, map, "names")?;
        let mut region = Region::new(input, "names", header.packing, Some(map.length));
        out.names =
            Names::read(&mut region, &header, |offset| out.sink.skip("name of a file: there are too many", offset))?;
    }
    about_job(&header, &mut out)?;
    let mut held: [Option<Held>; 2] = ["DXT_POSIX", "DXT_MPIIO"]
        .map(|name| header.modules.iter().any(|module| module.name == name).then(Held::default));
    let done = header.modules.iter().try_for_each(|module| one(input, &header, module, &mut out, &mut held));
    // Totals that wait for segments in vain: they are of a module that is not known, or of a log that breaks off.
    for (cat, held) in ["POSIX", "MPI-IO"].into_iter().zip(held) {
        segments::rest(cat, &mut out, held.unwrap_or_default())?;
    }
    done
}

fn clock_of(job: &Job, header: &Header) -> Clock {
    let (error_ns, how) = if header.version.1 < 41 {
        (Some(1_000_000_000), "from the job's start, which the log has in whole seconds")
    } else {
        (None, "from the job's start, which the log has in nanoseconds; nothing compares the clocks of its ranks")
    };
    Clock::offset(ClockKind::TraceRelative, job.start_ns, error_ns, how)
}

/// Goes on to a part of the file.
fn go(input: &mut Input<'_>, map: Map, name: &str) -> Result<()> {
    match map.offset.checked_sub(input.offset()) {
        Some(between) => input.pass(between),
        None => Err(input.invalid(map.offset, format!("{name}: it begins within another part"))),
    }
}

/// Facts about the job, and a span over all of it.
fn about_job(header: &Header, out: &mut Out<'_>) -> Result<()> {
    let rank = if out.job.processes > 1 { -1 } else { 0 };
    let Some(pid) = out.pid(rank) else { return Ok(()) };
    out.tell(rank, pid)?;
    let job = &out.job;
    let command = job.command.join(" ");
    let version = format!("{}.{:02}", header.version.0, header.version.1);
    let names = |partial: bool| {
        let modules = header.modules.iter().filter(|module| !partial || module.partial);
        modules.map(|module| format!("{} {}", module.name, module.version)).collect::<Vec<_>>().join(", ")
    };
    let (modules, partial) = (names(false), names(true));
    let mounts = serde_json::to_string(&job.mounts).unwrap_or_default();
    let mut args = vec![
        ("jobid", Arg::Int(job.id)),
        ("uid", Arg::Int(job.uid)),
        ("nprocs", Arg::Int(job.processes.into())),
        ("start_ns", Arg::Int(job.start_ns)),
        ("end_ns", Arg::Int(job.end_ns)),
        ("exe", Arg::Text(command.as_bytes())),
        ("log_version", Arg::Text(version.as_bytes())),
        ("compression", Arg::Text(header.packing.name().as_bytes())),
        ("modules", Arg::Text(modules.as_bytes())),
        ("mounts", Arg::Json(&mounts)),
    ];
    args.extend((!partial.is_empty()).then_some(("partial", Arg::Text(partial.as_bytes()))));
    let known: Vec<&str> = args.iter().map(|(name, _)| *name).collect();
    let pairs: Vec<(String, String)> = job
        .pairs()
        .filter(|(key, _)| !known.contains(key))
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect();
    args.extend(pairs.iter().map(|(key, value)| (key.as_str(), Arg::Text(value.as_bytes()))));
    let (start_ns, end_ns) = out.life();
    let event = |shape, args| Event { shape, name: "job", cat: ABOUT, pid, tid: pid, start_ns, args };
    out.sink.event(&event(Shape::Metadata, &args))?;
    out.sink.event(&event(Shape::Span { end_ns }, &[]))
}

/// Reads one module.
fn one(
    input: &mut Input<'_>,
    header: &Header,
    module: &Module,
    out: &mut Out<'_>,
    held: &mut [Option<Held>; 2],
) -> Result<()> {
    let name = module.name.as_str();
    if module.partial {
        out.sink.skip(&format!("records that Darshan had no memory for (module {name})"), module.map.offset);
    }
    if module.map.length == 0 {
        return Ok(());
    }
    go(input, module.map, name)?;
    let [posix, mpiio] = held;
    let layout = Layout::of(name, module.version);
    let known = layout.is_some()
        || matches!((name, module.version), ("DXT_POSIX", 1) | ("DXT_MPIIO" | "LUSTRE", 1 | 2) | ("HEATMAP", 1));
    if !known {
        let old = matches!(name, "DXT_POSIX" | "DXT_MPIIO" | "LUSTRE" | "HEATMAP") || Layout::of(name, 1).is_some();
        let version = if old { format!(" of version {}", module.version) } else { String::new() };
        out.sink.skip(&format!("module {name}{version}"), module.map.offset);
        return input.pass(module.map.length);
    }
    let mut region = Region::new(input, name, header.packing, Some(module.map.length));
    match (name, layout) {
        (_, Some(layout)) => {
            let held = match name {
                "POSIX" => posix.as_mut(),
                "MPI-IO" => mpiio.as_mut(),
                _ => None,
            };
            counters::read(&mut region, &layout, name, header.order, out, held)
        }
        ("DXT_POSIX", _) => {
            segments::read(&mut region, "POSIX", true, header.order, out, posix.get_or_insert_default())
        }
        ("DXT_MPIIO", _) => {
            // The first version did not know offsets.
            let offsets = module.version > 1;
            segments::read(&mut region, "MPI-IO", offsets, header.order, out, mpiio.get_or_insert_default())
        }
        ("LUSTRE", _) => others::lustre(&mut region, module.version, header.order, out),
        _ => others::heatmap(&mut region, header.order, out),
    }
}
