//! `weft collect`: samples this host and processes into a run directory.

mod life;
pub(crate) mod options;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;
use weftline_collect::collector::Collector;
use weftline_format::manifest::SampleRecord;
use weftline_format::secrets::Arguments;

use crate::args::CollectArgs;
use crate::kernel;
use crate::rundir;
use crate::signals::Signals;
use crate::terminal;
use crate::usage::Usage;

/// Runs the verb.
pub(crate) fn execute(args: &CollectArgs) -> anyhow::Result<ExitCode> {
    let options = options::of(args, &|name| std::env::var(name).ok()).map_err(Usage::error)?;
    if args.stop {
        return life::stop(args, &options);
    }
    // What cannot work leaves no run behind.
    options.verify().context("cannot sample")?;
    let (output, id, stage) = (options.output.as_deref(), options.run_id.as_deref(), options.stage.as_deref());
    let run =
        rundir::join(output, id, &options.node, stage, args.privacy.share, Arguments::unless(args.privacy.no_args))?;
    if args.daemon {
        return life::start_daemon(args, &run);
    }
    if args.detached {
        weftline_collect::own::detach();
    }
    collect(args, options, &run)
}

/// The messages at the start and at the end.
#[derive(Serialize)]
struct Status<'a> {
    pid: u32,
    run: &'a Path,
    file: &'a Path,
    mode: &'a str,
    host: bool,
    interval_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<&'a SampleRecord>,
}

fn collect(args: &CollectArgs, options: options::CollectOptions, run: &Path) -> anyhow::Result<ExitCode> {
    let signals = Signals::block();
    let pid_file = life::PidFile::claim(args.pid_file.as_deref(), run, &mut say)?;
    let options = options.options(run.to_owned());
    let (interval, mode) = (options.interval, options.follow.describe());
    let mut collector = Collector::start(options).context("cannot sample")?;
    if args.kernel
        && let Ok(watch) = kernel::start(run, &mut say)
    {
        watch.add_to(&mut collector);
    }
    let (stop, file) = (collector.stopper(), collector.file().to_owned());
    std::thread::spawn(move || {
        signals.wait_for_end();
        stop.stop();
    });
    let host = collector.samples_host();
    let mut status = Status {
        pid: std::process::id(),
        run,
        file: &file,
        mode: &mode,
        host,
        interval_ms: interval.as_secs_f64() * 1000.0,
        ended: None,
    };
    if args.json {
        tell(&status)?;
    } else if !args.quiet {
        let whom = whom(host, args.no_host, &mode);
        say(&format!("sampling {whom} every {} into {}", terminal::time(interval.as_nanos() as u64), file.display()));
    }
    let record = collector.run(&mut say);
    drop(pid_file);
    if args.json {
        status.ended = Some(&record);
        tell(&status)?;
    } else if !args.quiet {
        say(&summary(&record, &file));
    }
    Ok(ExitCode::SUCCESS)
}

/// What a collector samples, in words.
fn whom(host: bool, no_host: bool, mode: &str) -> String {
    match (host, no_host) {
        (true, _) => format!("the host and {mode}"),
        (false, true) => mode.to_owned(),
        (false, false) => format!("{mode} (another collector samples the host)"),
    }
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "weft: {text}");
}

fn tell(status: &Status<'_>) -> anyhow::Result<()> {
    let mut out = std::io::stdout().lock();
    serde_json::to_writer(&mut out, status)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

fn summary(record: &SampleRecord, file: &Path) -> String {
    let mut text = format!(
        "{} of {} in {}",
        terminal::counted(record.samples, "sample", "samples"),
        terminal::counted(record.processes, "process", "processes"),
        file.display()
    );
    if record.unseen_ends > 0 {
        text.push_str(&format!(
            "; {} ended without a last sample, {} unseen in all",
            terminal::counted(record.unseen_ends, "process", "processes"),
            terminal::time(record.unseen_ns)
        ));
    }
    if record.not_followed > 0 {
        text.push_str(&format!(
            "; {} not followed: too many open files",
            terminal::counted(record.not_followed, "process was", "processes were")
        ));
    }
    for (reason, count) in &record.lost {
        text.push_str(&format!("; {} samples lost: {reason}", terminal::count(*count)));
    }
    text
}
