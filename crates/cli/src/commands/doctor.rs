//! `weft doctor`: finds out why nothing was captured, and which parts are missing.

use std::ffi::{CString, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use weftline_analysis::coverage::RunTotals;
use weftline_drain::{Live, LiveOptions, RecoverOptions};
use weftline_format::manifest::SupervisorRecord;
use weftline_recorder::clock;
use weftline_recorder::elf::{self, VERDICT_NAMES, Verdict};
use weftline_recorder::process::LIVE_VARIABLE;

use crate::args::DoctorArgs;
use crate::rundir::{self, Source};
use crate::terminal::{Paint, Terminal};
use crate::{defaults, library, parts};

/// One thing looked at.
enum Finding {
    Good(String),
    /// Works, with something to know.
    Note(String),
    /// What is wrong, and what to do.
    Bad(String, &'static str),
}

/// Runs the verb.
pub(crate) fn execute(args: &DoctorArgs, terminal: Terminal) -> anyhow::Result<ExitCode> {
    let mut findings = Vec::new();
    if !args.parts {
        findings.extend([injected_library(), clock_source(), shared_memory(), surroundings()]);
        findings.extend(loads());
        findings.extend(trial());
        findings.extend(left_over());
        findings.extend(args.command.first().map(program));
        findings.extend(newest_run());
        findings.extend(settings());
    }
    findings.extend(parts::states().into_iter().map(|part| match part.present {
        true => Finding::Good(part.text),
        false => Finding::Note(part.text),
    }));
    let mut out = std::io::stdout().lock();
    let mut bad = false;
    for finding in &findings {
        writeln!(out, "{}", line(finding, terminal.stdout()))?;
        bad |= matches!(finding, Finding::Bad(..));
    }
    Ok(if bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn line(finding: &Finding, paint: Paint) -> String {
    match finding {
        Finding::Good(text) => format!("{} {text}", paint.good("ok  ")),
        Finding::Note(text) => format!("{} {text}", paint.dim("note")),
        Finding::Bad(text, remedy) => format!("{} {text}\n     {remedy}", paint.bad("bad ")),
    }
}

/// Files with defaults, and which of them count.
fn settings() -> Vec<Finding> {
    let names: Vec<String> = defaults::files().iter().map(|path| path.display().to_string()).collect();
    let found = match defaults::all() {
        Ok(found) => found,
        Err(why) => return vec![Finding::Bad(why.to_string(), "correct the file, or remove it")],
    };
    if found.is_empty() {
        return vec![Finding::Good(format!("no defaults in {} or the environment", names.join(", ")))];
    }
    let finding = |default: &defaults::Default| {
        let values: String = default.values.iter().map(|value| format!(" {value}")).collect();
        Finding::Good(format!(
            "weft {} --{}{values} by default, as {} says",
            default.verb, default.option, default.origin
        ))
    };
    found.iter().map(finding).collect()
}

fn injected_library() -> Finding {
    match library::find() {
        Ok(path) => Finding::Good(format!("the library to inject is {}", path.display())),
        Err(error) => Finding::Bad(format!("{error:#}"), "install weft with `make install`, or set WEFT_PRELOAD_LIB"),
    }
}

/// Does the loader really take it? A library built for a newer C library would be ignored with a message.
fn loads() -> Option<Finding> {
    let path = library::find().ok()?;
    let output = Command::new("/bin/true").env("LD_PRELOAD", &path).env_remove(LIVE_VARIABLE).output().ok()?;
    Some(if output.status.success() && output.stderr.is_empty() {
        Finding::Good("this system's loader accepts it".into())
    } else {
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Finding::Bad(
            format!("this system's loader refuses it: {stderr}"),
            "build weft on this system or on an older one (docs/build.md)",
        )
    })
}

/// Traces a program for real. A library and a command of different builds refuse each other without a word.
fn trial() -> Option<Finding> {
    let place = Trial::make().ok()?;
    let run = place.0.join("run");
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.args(["run", "-q", "-o"]).arg(&run).args(["--", "/bin/true"]).env_remove(LIVE_VARIABLE);
    let output = command.output().ok()?;
    let events = RunTotals::of(&SupervisorRecord::read_all(&run).0).events;
    Some(if events > 0 {
        Finding::Good("a trial run of /bin/true was traced".into())
    } else {
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Finding::Bad(
            format!("a trial run of /bin/true left no events {stderr}"),
            "weft and its library must come from the same build: install both again",
        )
    })
}

fn clock_source() -> Finding {
    match clock::best_kind() {
        clock::ClockKind::Tsc => Finding::Good("time is read from the processor's counter".into()),
        clock::ClockKind::Monotonic => {
            Finding::Note("the kernel does not trust the processor's counter; events cost about 30 ns more".into())
        }
    }
}

/// Tries for real, in a directory of its own that is removed again.
fn shared_memory() -> Finding {
    let trial = Trial::make();
    let made = match &trial {
        Ok(trial) => Live::create(&trial.0, &LiveOptions::default()).map_err(anyhow::Error::from),
        Err(error) => Err(anyhow::anyhow!("{error}")),
    };
    match made {
        Ok(live) => {
            let place = live.directory().to_owned();
            live.leave();
            let inside = trial.as_ref().is_ok_and(|trial| trial.0.canonicalize().is_ok_and(|at| place.starts_with(at)));
            let in_memory = place.starts_with("/dev/shm");
            // Takes the shared memory away, wherever it is: nothing was recorded into it.
            if let Ok(trial) = &trial {
                let _ = weftline_drain::recover(
                    &trial.0,
                    &RecoverOptions { believe_ended: true, ..RecoverOptions::default() },
                );
            }
            if in_memory {
                Finding::Good("this directory can hold a run; its shared memory would be in /dev/shm".into())
            } else if inside {
                Finding::Good("this directory can hold a run and its shared memory".into())
            } else {
                Finding::Note(format!(
                    "this directory is not on a local file system; shared memory would be in {}",
                    place.display()
                ))
            }
        }
        Err(error) => Finding::Bad(
            format!("cannot make a run here: {error:#}"),
            "use -o with a writable directory, and TMPDIR on a local disk with 16 MiB free",
        ),
    }
}

/// Memory that killed runs still take.
fn left_over() -> Vec<Finding> {
    let findings = weftline_drain::live::abandoned().into_iter().map(|left| {
        let (size, run, place) = (crate::terminal::bytes(left.bytes), left.run.display(), left.directory.display());
        let remedy = match left.run.is_dir() {
            true => format!("`weft recover {run}` writes its last events and frees the memory"),
            false => format!("the run was removed; `rm -r {place}` frees the memory"),
        };
        Finding::Note(format!("{run} was killed and still holds {size} of memory; {remedy}"))
    });
    findings.collect()
}

/// A new directory in the current one, removed with its content when this is dropped. It must not exist before.
struct Trial(PathBuf);

impl Trial {
    fn make() -> std::io::Result<Trial> {
        use std::os::unix::fs::DirBuilderExt as _;
        let path = std::env::current_dir()?.join(format!(".weft-doctor-{}-{}", std::process::id(), rundir::now_ns()));
        std::fs::DirBuilder::new().mode(0o700).create(&path).map(|()| Trial(path))
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn surroundings() -> Finding {
    if let Some(live) = std::env::var_os(LIVE_VARIABLE) {
        return Finding::Note(format!(
            "this shell already runs under weft ({}): `weft run` joins that run unless -o is given",
            Path::new(&live).display()
        ));
    }
    match std::env::var("LD_PRELOAD") {
        Ok(other) if !other.is_empty() => {
            Finding::Note(format!("LD_PRELOAD is set ({other}); it is kept, and our library is added after it"))
        }
        _ => Finding::Good("no other library is preloaded".into()),
    }
}

fn program(name: &OsString) -> Finding {
    let Some(path) = crate::commands::run::search(name) else {
        return Finding::Bad(format!("{}: no such program", name.to_string_lossy()), "give the program as in a shell");
    };
    let verdict = CString::new(path.as_os_str().as_bytes()).map_or(Verdict::Unreadable, |path| elf::inspect(&path));
    let shown = path.display();
    match verdict {
        Verdict::Traceable => Finding::Good(format!("{shown} can be traced")),
        Verdict::Static => Finding::Bad(
            format!("{shown} is statically linked: nothing can be injected"),
            "link it dynamically; its dynamically linked children are still traced",
        ),
        Verdict::Sanitizer => Finding::Bad(
            format!("{shown} is a sanitizer build, and its runtime must be loaded first"),
            "trace a build without the sanitizer",
        ),
        other => Finding::Bad(
            format!("{shown} cannot be traced: {}", VERDICT_NAMES[other as usize]),
            "trace its children, or a build for this system",
        ),
    }
}

/// What the newest run here says about itself.
fn newest_run() -> Vec<Finding> {
    let Ok(Source::Run(run)) = rundir::find(&[]) else { return Vec::new() };
    let (records, _) = SupervisorRecord::read_all(&run);
    let totals = RunTotals::of(&records);
    let shown = run.display();
    let mut out = Vec::new();
    if let Some(why) = totals.failures.first() {
        out.push(Finding::Bad(
            format!("the newest run, {shown}, was not traced: {why}"),
            "fix that, and run the program again",
        ));
    } else if totals.events == 0 && totals.untraced.is_empty() {
        out.push(Finding::Bad(
            format!("the newest run, {shown}, holds no events"),
            "the program may have failed before it started; `weft check` shows its processes",
        ));
    } else {
        out.push(Finding::Good(format!(
            "the newest run, {shown}, holds {}",
            crate::terminal::counted(totals.events, "event", "events")
        )));
    }
    out.extend(totals.untraced.iter().map(|what| Finding::Note(format!("not traced there: {what}"))));
    out
}
