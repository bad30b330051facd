//! Collectors in the background: started detached from the terminal, found by their pid file, stopped.
//!
//! A pid file holds the process id, when that process started and in which boot, so that a later process of the same id is never taken for
//! it. If the process is gone, its collector was killed: the next command reports the stale file and removes it.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use weftline_collect::own::{Own, start_of};
use weftline_format::manifest::RECORD_DIR;

use super::options::CollectOptions;
use crate::args::CollectArgs;
use crate::{rundir, signals};

/// How long `--stop` waits for a collector; it needs a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// A pid file, removed when the collector ends.
pub(super) struct PidFile {
    path: PathBuf,
}

impl PidFile {
    /// Writes the file, and removes those that killed collectors of this run and host left.
    pub(super) fn claim(given: Option<&Path>, run: &Path, say: &mut dyn FnMut(&str)) -> anyhow::Result<PidFile> {
        let own = Own::read();
        let directory = run.join(RECORD_DIR);
        fs::create_dir_all(&directory).with_context(|| format!("cannot use {}", run.display()))?;
        let path = given.map_or_else(|| directory.join(format!("{}.pid", own.stem(0))), Path::to_owned);
        if given.is_some() && path.exists() {
            match Named::read(&path)? {
                Some(other) if other.is_elsewhere(&own) => bail!(
                    "{}: process {} of host {} samples here; stop it on that host, or choose another --pid-file",
                    path.display(),
                    other.pid,
                    other.host
                ),
                Some(other) if other.pid != own.pid && other.is_alive(&own) => bail!(
                    "{}: process {} already samples here; stop it with `weft collect --stop`",
                    path.display(),
                    other.pid
                ),
                Some(other) => say(&other.obituary(&path)),
                None => {}
            }
        }
        for old in pid_files_of(run) {
            if let Ok(Some(other)) = Named::read(&old)
                && !other.is_elsewhere(&own)
                && !other.is_alive(&own)
                && fs::remove_file(&old).is_ok()
                && old != path
            {
                say(&other.obituary(&old));
            }
        }
        fs::write(&path, format!("{}\n{}\n{}\n{}\n", own.pid, own.start, own.host, own.boot))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(PidFile { path })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The process that a pid file speaks of.
struct Named {
    pid: u32,
    start: u64,
    host: String,
    /// Empty in files of before.
    boot: String,
}

impl Named {
    /// Nothing for an empty file, which a full disk leaves. Anything else is somebody's file, not to be written over.
    fn read(path: &Path) -> anyhow::Result<Option<Named>> {
        let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        if text.is_empty() {
            return Ok(None);
        }
        let mut lines = text.lines();
        let mut named = || {
            Some(Named {
                pid: lines.next()?.parse().ok()?,
                start: lines.next()?.parse().ok()?,
                host: lines.next()?.to_owned(),
                boot: lines.next().unwrap_or_default().to_owned(),
            })
        };
        match named() {
            Some(named) => Ok(Some(named)),
            None => bail!("{} is not a pid file of weft collect; choose another file", path.display()),
        }
    }

    fn is_elsewhere(&self, own: &Own) -> bool {
        self.host != own.host
    }

    /// By number and start: a later process may have the number. Starts are counted from the boot, so another boot's mean nothing.
    fn is_alive(&self, own: &Own) -> bool {
        (self.boot.is_empty() || self.boot == own.boot) && start_of(&self.pid.to_string()) == Some(self.start)
    }

    fn obituary(&self, path: &Path) -> String {
        format!("the collector {} was killed; removed its stale pid file {}", self.pid, path.display())
    }
}

/// Starts this command again, apart from the terminal, and returns when it is at work.
pub(super) fn start_daemon(args: &CollectArgs, run: &Path) -> anyhow::Result<ExitCode> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let log_path = run.join(RECORD_DIR).join(format!("{}.collect.log", rundir::host().replace('/', "_")));
    fs::create_dir_all(run.join(RECORD_DIR)).with_context(|| format!("cannot use {}", run.display()))?;
    let log = OpenOptions::new().append(true).create(true).open(&log_path);
    let log = log.with_context(|| format!("cannot write {}", log_path.display()))?;
    let began = log.metadata().map_or(0, |data| data.len());
    let mut command = Command::new(program);
    command.arg("collect");
    command.args(
        std::env::args_os()
            .skip_while(|word| word != "collect")
            .skip(1)
            .filter(|word| word != "--daemon" && word != "--json"),
    );
    // The last one counts: the directory is there now, under its whole name.
    if args.output.is_none() {
        command.arg("--output").arg(run);
    }
    command.args(["--detached", "--json"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    let mut child = command.spawn().context("cannot start the collector")?;
    let logged = || {
        let log = fs::read(&log_path).unwrap_or_default();
        String::from_utf8_lossy(log.get(began as usize..).unwrap_or_default()).into_owned()
    };
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line).context("cannot read from the collector")?;
    }
    if line.is_empty() {
        let status = child.wait().context("cannot wait for the collector")?;
        writeln!(std::io::stderr(), "weft: {}", logged().trim_start_matches("weft: ").trim())?;
        return Ok(ExitCode::from(status.code().unwrap_or(1).clamp(1, 255) as u8));
    }
    // Only this shows what it printed while it started.
    write!(std::io::stderr(), "{}", logged())?;
    if args.json {
        std::io::stdout().write_all(line.as_bytes())?;
    } else if !args.quiet {
        let status: serde_json::Value = serde_json::from_str(&line).context("the collector did not start properly")?;
        let text = |key: &str| status[key].as_str().unwrap_or_default().to_owned();
        writeln!(
            std::io::stderr(),
            "weft: process {} is sampling {} every {} ms into {}; `weft collect --stop -o {}` ends it",
            status["pid"],
            super::whom(status["host"] == true, args.no_host, &text("mode")),
            status["interval_ms"],
            text("file"),
            run.display()
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What `--stop` ends with when the only collectors that it found had been killed before.
const KILLED: u8 = 3;

/// Stops collectors of this host; 1 when there was none or one did not stop, 3 when all had been killed.
pub(super) fn stop(args: &CollectArgs, options: &CollectOptions) -> anyhow::Result<ExitCode> {
    let own = Own::read();
    let files = match &args.pid_file {
        Some(file) if file.exists() => vec![file.clone()],
        Some(_) => Vec::new(),
        None => pid_files(args, options)?,
    };
    let (mut stopped, mut killed) = (0, 0);
    for file in files {
        let named = match Named::read(&file) {
            Ok(Some(named)) => named,
            Ok(None) => continue,
            // A file that the user names is an error; any other stray file is not ours.
            Err(error) if args.pid_file.is_some() => return Err(error),
            Err(_) => continue,
        };
        if named.is_elsewhere(&own) {
            continue;
        }
        if !named.is_alive(&own) {
            fs::remove_file(&file).with_context(|| format!("cannot remove the stale {}", file.display()))?;
            writeln!(std::io::stderr(), "weft: {}", named.obituary(&file))?;
            killed += 1;
            continue;
        }
        signals::send(named.pid, signals::TERMINATE);
        let asked = Instant::now();
        while named.is_alive(&own) && file.exists() {
            if asked.elapsed() > PATIENCE {
                bail!("process {} did not stop within {} s", named.pid, PATIENCE.as_secs());
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        stopped += 1;
        if !args.quiet {
            writeln!(std::io::stderr(), "weft: process {} has stopped", named.pid)?;
        }
    }
    if stopped > 0 {
        return Ok(ExitCode::SUCCESS);
    }
    if killed > 0 {
        return Ok(ExitCode::from(KILLED));
    }
    writeln!(std::io::stderr(), "weft: no collector of this host is running there")?;
    Ok(ExitCode::FAILURE)
}

fn pid_files(args: &CollectArgs, options: &CollectOptions) -> anyhow::Result<Vec<PathBuf>> {
    let runs: Vec<PathBuf> = if options.stop_all && args.output.is_none() {
        let entries = fs::read_dir(rundir::RUNS).with_context(|| format!("there is no {}/ here", rundir::RUNS))?;
        entries.flatten().map(|entry| entry.path()).collect()
    } else if let Some(output) = &args.output {
        vec![output.clone()]
    } else if let Some(id) = &options.run_id {
        vec![Path::new(rundir::RUNS).join(id)]
    } else {
        vec![rundir::newest()?]
    };
    Ok(runs.iter().flat_map(|run| pid_files_of(run)).collect())
}

/// Pid files in a run, in order of their names.
fn pid_files_of(run: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(run.join(RECORD_DIR)).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "pid")).collect();
    files.sort();
    files
}
