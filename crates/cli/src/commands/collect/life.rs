//! The life of a collector in the background: started apart from the terminal, found again by its pid file, stopped.
//!
//! A pid file holds the process id and when that process started, so that a later process of the same id is never taken for it.

use std::fs::{self, OpenOptions};
use std::io::{BufRead as _, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use weftline_collect::own::{Own, start_of};
use weftline_format::manifest::RECORD_DIR;

use super::wishes::Wishes;
use crate::args::CollectArgs;
use crate::{rundir, signals};

/// How long `--stop` waits for a collector; it needs a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// A pid file, removed when the collector ends.
pub(super) struct PidFile {
    path: PathBuf,
}

impl PidFile {
    pub(super) fn write(given: Option<&Path>, run: &Path) -> anyhow::Result<PidFile> {
        let own = Own::read();
        let path = given.map_or_else(|| run.join(RECORD_DIR).join(format!("{}.pid", own.stem(0))), Path::to_owned);
        if let Some(other) = read(&path).filter(|other| other.pid != own.pid && other.is_alive()) {
            bail!("{}: process {} is at work there; stop it with `weft collect --stop`", path.display(), other.pid);
        }
        fs::write(&path, format!("{}\n{}\n{}\n", own.pid, own.start, own.host))
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
}

impl Named {
    fn is_alive(&self) -> bool {
        start_of(&self.pid.to_string()) == Some(self.start)
    }
}

fn read(path: &Path) -> Option<Named> {
    let text = fs::read_to_string(path).ok()?;
    let mut lines = text.lines();
    Some(Named { pid: lines.next()?.parse().ok()?, start: lines.next()?.parse().ok()?, host: lines.next()?.to_owned() })
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
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line).context("cannot hear from the collector")?;
    }
    if line.is_empty() {
        let status = child.wait().context("cannot wait for the collector")?;
        let log = fs::read(&log_path).unwrap_or_default();
        let said = String::from_utf8_lossy(log.get(began as usize..).unwrap_or_default())
            .trim_start_matches("weft: ")
            .trim()
            .to_owned();
        writeln!(std::io::stderr(), "weft: {said}")?;
        return Ok(ExitCode::from(status.code().unwrap_or(1).clamp(1, 255) as u8));
    }
    if args.json {
        std::io::stdout().write_all(line.as_bytes())?;
    } else if !args.quiet {
        let told: serde_json::Value = serde_json::from_str(&line).context("the collector said something else")?;
        let text = |key: &str| told[key].as_str().unwrap_or_default().to_owned();
        writeln!(
            std::io::stderr(),
            "weft: process {} is sampling the host and {} every {} ms into {}; `weft collect --stop -o {}` ends it",
            told["pid"],
            text("mode"),
            told["interval_ms"],
            text("file"),
            run.display()
        )?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Stops collectors of this host; 1 when there was none or one did not stop.
pub(super) fn stop(args: &CollectArgs, wishes: &Wishes) -> anyhow::Result<ExitCode> {
    let files = match &args.pid_file {
        Some(file) => vec![file.clone()],
        None => pid_files(args, wishes)?,
    };
    let mut stopped = 0;
    for file in files {
        let Some(named) = read(&file) else { continue };
        if named.host != rundir::host() {
            continue;
        }
        if !named.is_alive() {
            // A killed collector cannot remove it.
            let _ = fs::remove_file(&file);
            continue;
        }
        signals::send(named.pid, signals::TERMINATE);
        let asked = Instant::now();
        while named.is_alive() && file.exists() {
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
    if stopped == 0 {
        writeln!(std::io::stderr(), "weft: no collector of this host is at work there")?;
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn pid_files(args: &CollectArgs, wishes: &Wishes) -> anyhow::Result<Vec<PathBuf>> {
    let runs: Vec<PathBuf> = if wishes.stop_all && args.output.is_none() {
        let entries = fs::read_dir(rundir::RUNS).with_context(|| format!("there is no {}/ here", rundir::RUNS))?;
        entries.flatten().map(|entry| entry.path()).collect()
    } else if let Some(output) = &args.output {
        vec![output.clone()]
    } else if let Some(id) = &wishes.run_id {
        vec![Path::new(rundir::RUNS).join(id)]
    } else {
        vec![rundir::newest()?]
    };
    let mut files = Vec::new();
    for run in runs {
        let entries = fs::read_dir(run.join(RECORD_DIR)).into_iter().flatten().flatten().map(|entry| entry.path());
        files.extend(entries.filter(|path| path.extension().is_some_and(|end| end == "pid")));
    }
    files.sort();
    Ok(files)
}
