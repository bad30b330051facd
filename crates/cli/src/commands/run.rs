//! `weft run`: starts the program, drains its arenas while it runs, and prints the summary.

mod conclusion;
mod untraced;

use std::ffi::{CString, OsStr, OsString};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode};
use std::time::{Duration, Instant};

use rustix::fs::Access;
use weftline_collect::collector::Sampling;
use weftline_collect::error::CollectError;
use weftline_collect::follow::Follow;
use weftline_collect::roots::Roots;
use weftline_drain::{Drain, DrainOptions, Live, LiveOptions, Outcome, tree_io};
use weftline_format::files;
use weftline_format::manifest::{
    Exit, IoCount, KernelRecord, ProcessRecord, RECORD_DIR, RUN_FILE, RunManifest, SampleRecord, SupervisorRecord,
};
use weftline_format::secrets::Arguments;
use weftline_recorder::elf::{self, VERDICT_NAMES, Verdict};
use weftline_recorder::process::LIVE_VARIABLE;

use crate::args::{OnFull, RunArgs};
use crate::signals::{self, Caught, ChildState, PidFile, Signals};
use crate::terminal::Terminal;
use crate::usage::Usage;
use crate::{kernel, library, rundir, terminal};
use conclusion::conclude;
use untraced::Untraced;

/// Runs the verb. Options that cannot be followed are an error before anything starts; whatever else goes wrong on our side, the program is run.
pub(crate) fn execute(args: &RunArgs, terminal: Terminal) -> anyhow::Result<ExitCode> {
    let inside = std::env::var_os(LIVE_VARIABLE).is_some_and(|live| Path::new(&live).join("ctl").exists());
    if args.output.is_none() && inside {
        // Inside a run: its library traces this process and will trace the program.
        return Ok(replace_by(&args.command));
    }
    // Each of them is one; together they may be too many.
    for patterns in [&args.include, &args.exclude] {
        weftline_drain::check_patterns(patterns).map_err(|error| Usage::error(error.to_string()))?;
    }
    let pid_directory = args.pid_dir.as_deref().map(prepare_pid_directory).transpose()?;
    let signals = Signals::block();
    let (tracing, mut untraced) = match prepare(args)? {
        Ok(tracing) => (Some(tracing), None),
        Err(untraced) => {
            say(&format!("not tracing: {}", untraced.why));
            (None, Some(untraced))
        }
    };
    let asked = tracing.as_ref().filter(|_| args.kernel).map(|tracing| kernel::start(&tracing.run, &mut say));
    if let Some(Ok(watch)) = &asked {
        watch.follow_own_children(&mut say);
    }
    let started = Instant::now();
    let started_child = start(args, tracing.as_ref(), signals, pid_directory.clone());
    let child = match started_child {
        Ok(child) => child,
        Err(error) => {
            // Where nothing was seen, this removes its file.
            asked.and_then(Result::ok).map(kernel::Watch::finish);
            if let Some(tracing) = tracing {
                tracing.abandon();
            }
            if let Some(run) = untraced.and_then(|untraced| untraced.run) {
                remove_unused(&run);
            }
            return Ok(cannot_start(&args.command[0], &error));
        }
    };
    if let Some(Ok(watch)) = &asked {
        watch.leave_own_children();
    }
    let (ended, state) = match tracing {
        Some(tracing) => {
            let sampling = if args.no_sample { None } else { sample(&tracing.run, child.id(), args) };
            let run = tracing.run.clone();
            let (outcome, state) = supervise(tracing, &child, signals, started, sampling, asked);
            let ended = match outcome {
                Ok(outcome) => {
                    // What was written last may have failed too.
                    outcome.messages.iter().for_each(|message| say(message));
                    Ok((run, outcome.record))
                }
                Err(error) => {
                    let again = format!("`weft recover {}` tries again", run.display());
                    Err(Untraced { run: None, why: format!("the trace could not be completed: {error}; {again}") })
                }
            };
            (ended, state)
        }
        None => {
            let state = wait_only(&child, signals);
            let untraced = untraced.take().unwrap_or_default();
            (untraced.record(args, &child, state, started), state)
        }
    };
    if let Some(directory) = pid_directory {
        // The program may have removed it itself.
        let _ = std::fs::remove_file(directory.join(child.id().to_string()));
    }
    match ended {
        Ok((run, record)) => conclude(&run, record, args, terminal),
        // The first word on it was lost in what the program said.
        Err(untraced) => say(&terminal.stderr().bad(&untraced.why)),
    }
    Ok(match state {
        ChildState::Exited(code) => ExitCode::from(code as u8),
        // Everything is written. The parent that waits for us must see the same status as from the program.
        ChildState::Killed(signal) => {
            signals::die_by(signal);
            ExitCode::from(128u8.wrapping_add(signal as u8))
        }
        ChildState::Running | ChildState::Stopped => ExitCode::FAILURE,
    })
}

/// Whether the Python package records data loaders by itself: `0` says no.
pub(crate) const AUTO_VARIABLE: &str = "WEFT_AUTO";

/// Makes the run and all that must exist before the program starts; an error is wrong usage, [`Untraced`] is trouble of our own.
fn prepare(args: &RunArgs) -> anyhow::Result<Result<Tracing, Untraced>> {
    let library = match library::find() {
        Err(error) if error.is::<Usage>() => return Err(error),
        found => found,
    };
    let arguments = Arguments::unless(args.privacy.no_args);
    let made =
        rundir::create(args.output.as_deref(), args.name.as_deref(), &args.command, args.privacy.share, arguments);
    let rundir::Created { directory: run, notice } = match made {
        Ok(created) => created,
        Err(error) if error.is::<Usage>() => return Err(error),
        Err(error) => return Ok(Err(Untraced { run: None, why: terminal::chain(&error) })),
    };
    notice.iter().for_each(|notice| say(notice));
    match library.and_then(|library| Tracing::prepare(args, &run, library)) {
        Ok(tracing) => Ok(Ok(tracing)),
        Err(error) => Ok(Err(Untraced::begin(run, terminal::chain(&error)))),
    }
}

/// All that must exist before the program starts.
struct Tracing {
    run: PathBuf,
    drain: Drain,
    live_directory: PathBuf,
    library: PathBuf,
    program: PathBuf,
    verdict: Verdict,
}

impl Tracing {
    fn prepare(args: &RunArgs, run: &Path, library: PathBuf) -> anyhow::Result<Tracing> {
        let live_options = LiveOptions {
            run_id: RunManifest::read(run)?.id,
            no_io: args.no_io,
            span_usage: args.span_usage,
            wait_when_full: (args.on_full == OnFull::Wait).then_some(args.wait_limit),
            place: args.arenas.into(),
            // Other users can change their uid only by a setuid program, where the loader ignores our library.
            other_users: args.privacy.share && rustix::process::geteuid().is_root(),
            arguments: Arguments::unless(args.privacy.no_args),
            ..LiveOptions::default()
        };
        let live = Live::create(run, &live_options)?;
        let live_directory = live.directory().to_owned();
        let drain_options = DrainOptions {
            include: args.include.clone(),
            exclude: args.exclude.clone(),
            max_size: args.max_size,
            ..DrainOptions::default()
        };
        let drain = Drain::new(live, run, drain_options)?;
        let program = search(&args.command[0]).unwrap_or_default();
        let verdict =
            CString::new(program.as_os_str().as_bytes()).map_or(Verdict::Traceable, |path| elf::inspect(&path));
        Ok(Tracing { run: run.to_owned(), drain, live_directory, library, program, verdict })
    }

    /// The program never started: leave nothing behind that was not there before.
    fn abandon(self) {
        if let Err(error) = self.drain.finish() {
            say(&error.to_string());
        }
        remove_unused(&self.run);
    }
}

/// Removes a run that never started.
fn remove_unused(run: &Path) {
    let traced = rundir::trace_bytes(run) > 0;
    if !traced && SupervisorRecord::read_all(run).0.len() <= 1 {
        // Only our own manifest files; a directory that holds anything else stays.
        let is_record = |name: &str| [".json", ".live", ".room"].iter().any(|end| name.ends_with(end));
        let _ = files::remove_known(&run.join(RECORD_DIR), is_record);
        let _ = std::fs::remove_file(run.join(RUN_FILE));
        let _ = std::fs::remove_dir(run);
        let _ = run.parent().filter(|parent| parent.ends_with(rundir::RUNS)).map(std::fs::remove_dir);
    }
}

fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "weft: {text}");
}

/// Finds a program as a shell would.
pub(crate) fn search(name: &OsStr) -> Option<PathBuf> {
    let runnable =
        |path: &Path| path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0);
    if name.as_bytes().contains(&b'/') {
        return Some(PathBuf::from(name)).filter(|path| runnable(path));
    }
    let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
    std::env::split_paths(&path).map(|directory| directory.join(name)).find(|candidate| runnable(candidate))
}

/// Behind what is preloaded already.
fn preload_value(library: &Path) -> OsString {
    let mut value = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    if !value.is_empty() {
        value.push(":");
    }
    value.push(library);
    value
}

fn start(
    args: &RunArgs,
    tracing: Option<&Tracing>,
    signals: Signals,
    pid_directory: Option<PathBuf>,
) -> std::io::Result<Child> {
    let mut command = Command::new(&args.command[0]);
    command.args(&args.command[1..]);
    if let Some(tracing) = tracing {
        command.env(LIVE_VARIABLE, &tracing.live_directory);
        if args.no_auto {
            command.env(AUTO_VARIABLE, "0");
        }
        if !tracing.verdict.forbids_preload() {
            command.env("LD_PRELOAD", preload_value(&tracing.library));
        }
    }
    let pid_file = pid_directory
        .and_then(|directory| CString::new(directory.into_os_string().into_encoded_bytes()).ok())
        .map(PidFile::new);
    signals.prepare(&mut command, pid_file);
    command.spawn()
}

fn prepare_pid_directory(directory: &Path) -> anyhow::Result<PathBuf> {
    let made = std::fs::create_dir_all(directory).and_then(|()| directory.canonicalize());
    let made = made.and_then(|made| {
        rustix::fs::access(&made, Access::WRITE_OK | Access::EXEC_OK).map(|()| made).map_err(Into::into)
    });
    made.map_err(|error| Usage::error(format!("cannot use --pid-dir {}: {error}", directory.display())))
}

fn cannot_start(program: &OsStr, error: &std::io::Error) -> ExitCode {
    say(&format!("{}: {error}", program.to_string_lossy()));
    ExitCode::from(if error.kind() == ErrorKind::NotFound { 127 } else { 126 })
}

fn replace_by(command: &[OsString]) -> ExitCode {
    let mut program = Command::new(&command[0]);
    signals::close_what_was_closed(program.args(&command[1..]));
    cannot_start(&command[0], &program.exec())
}

/// Passes signals on and looks after the program; what to do about its state.
fn attend(child: &Child, caught: Caught) -> Option<ChildState> {
    if let Caught::Sent(signal) = caught {
        signals::send(child.id(), signal);
    }
    match signals::look_at(child.id()) {
        Ok(ChildState::Running) => None,
        Ok(ChildState::Stopped) => {
            signals::stop_self();
            None
        }
        Ok(ended) => Some(ended),
        Err(error) => {
            say(&format!("cannot wait for the program: {error}"));
            Some(ChildState::Exited(1))
        }
    }
}

fn wait_only(child: &Child, signals: Signals) -> ChildState {
    loop {
        if let Some(ended) = attend(child, signals.wait(Duration::from_secs(1))) {
            return ended;
        }
    }
}

/// How long a program runs before anything is opened to sample it: most are shorter.
const QUIET: Duration = Duration::from_millis(100);

/// Samples the program's processes and the host, in a thread of its own.
fn sample(run: &Path, child: u32, args: &RunArgs) -> Option<Sampling> {
    let options = weftline_collect::collector::Options {
        run: run.to_owned(),
        interval: args.sample,
        follow: Follow { trees: vec![child], ..Follow::default() },
        duration: None,
        until_gone: false,
        host: true,
        exit_records: true,
        own_record: false,
        roots: Roots::default(),
        node: rundir::host(),
        stage: None,
        peer: None,
        command: args.command.iter().map(|word| word.to_string_lossy().into_owned()).collect(),
        arguments: Arguments::unless(args.privacy.no_args),
    };
    Sampling::spawn(options, QUIET.min(args.sample)).inspect_err(|error| say(&format!("no samples: {error}"))).ok()
}

fn supervise(
    mut tracing: Tracing,
    child: &Child,
    signals: Signals,
    started: Instant,
    sampling: Option<Sampling>,
    asked: Option<Result<kernel::Watch, String>>,
) -> (weftline_drain::Result<Outcome>, ChildState) {
    let state = loop {
        let pause = tracing.drain.poll();
        tracing.drain.take_messages().iter().for_each(|message| say(message));
        if let Some(ended) = attend(child, signals.wait(pause)) {
            break ended;
        }
    };
    let record = tracing.drain.record_mut();
    record.exit = Some(exit_of(state));
    record.wall_ns = started.elapsed().as_nanos() as u64;
    record.cpu_ns = signals::children_cpu_ns();
    // Before any thread of ours ends: what it read would count as the program's.
    record.tree_io = tree_io().map(|io| IoCount { rchar: io.rchar, wchar: io.wchar });
    record.kernel = asked.map(|watch| match watch {
        Ok(watch) => watch.finish(),
        Err(why) => KernelRecord { absent: vec![why], ..KernelRecord::default() },
    });
    match sampling.map(Sampling::finish) {
        Some(Ok(samples)) => record.samples = samples,
        // One that was gone before the thread looked for it was too short to be sampled.
        None | Some(Err(CollectError::NoProcess(_))) => {}
        // The tracer reports a full disk; a second message would only repeat it.
        Some(Err(error)) => {
            record.samples = Some(SampleRecord { what: format!("nothing ({error})"), ..SampleRecord::default() });
        }
    }
    if tracing.verdict != Verdict::Traceable {
        record.processes.push(ProcessRecord {
            pid: child.id(),
            ppid: std::process::id(),
            host: rundir::host(),
            exe: tracing.program.display().to_string(),
            untraced: Some(VERDICT_NAMES[tracing.verdict as usize].to_owned()),
            ..ProcessRecord::default()
        });
    }
    (tracing.drain.finish(), state)
}

fn exit_of(state: ChildState) -> Exit {
    match state {
        ChildState::Killed(signal) => Exit { signal: Some(signal), ..Exit::default() },
        ChildState::Exited(code) => Exit { code: Some(code), ..Exit::default() },
        ChildState::Running | ChildState::Stopped => Exit::default(),
    }
}
