//! `weft recover`: completes the traces of killed runs and programs.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::bail;
use weftline_drain::{RecoverOptions, RecoverReport, WhyOpen};
use weftline_format::files;
use weftline_format::manifest::RUN_FILE;
use weftline_session::{Published, leftovers};

use crate::args::RecoverArgs;
use crate::rundir::{self, Source};
use crate::terminal::{self, Terminal};

/// How long a process that has ended waits for others which finish at the same place.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a path means.
#[derive(Debug, PartialEq, Eq)]
enum Target {
    Run(PathBuf),
    /// The hidden directory of a program that recorded itself.
    Hidden(PathBuf),
    /// All is done here.
    Done(PathBuf),
}

/// Runs the verb.
pub(crate) fn execute(args: &RecoverArgs, terminal: Terminal) -> anyhow::Result<ExitCode> {
    for target in targets(&args.paths, args.ended)? {
        match target {
            Target::Run(run) => {
                let options = RecoverOptions {
                    believe_ended: args.ended,
                    wait_for_lock: args.ended.then_some(PATIENCE),
                    ..RecoverOptions::default()
                };
                // Samples first: they are whole even where the program's own leftovers cannot be read.
                let samples = weftline_collect::writer::recover(&run)?.samples;
                if samples > 0 && !args.quiet {
                    let what = format!("{} samples recovered", terminal::count(samples));
                    writeln!(std::io::stderr(), "weft: {}: {}", run.display(), terminal.stderr().good(&what))?;
                }
                let report = weftline_drain::recover(&run, &options)?;
                if !args.quiet {
                    tell(&run, &report, terminal)?;
                }
            }
            Target::Hidden(hidden) => {
                tell_published(&hidden, &leftovers::finish(&hidden, args.ended)?, args.quiet, terminal)?;
            }
            Target::Done(path) if !args.quiet => {
                writeln!(std::io::stderr(), "weft: {}: nothing to recover", path.display())?;
            }
            Target::Done(_) => {}
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn targets(paths: &[PathBuf], ended: bool) -> anyhow::Result<Vec<Target>> {
    let hidden = |path: &Path| -> anyhow::Result<Vec<Target>> {
        Ok(leftovers::find(path)?.into_iter().map(Target::Hidden).collect())
    };
    if paths.is_empty() {
        let mut all = hidden(Path::new("."))?;
        match rundir::find(&[]) {
            Ok(Source::Run(run)) => all.push(Target::Run(run)),
            Ok(Source::Files(_)) => {}
            Err(error) if all.is_empty() => return Err(error),
            Err(_) => {}
        }
        return Ok(all);
    }
    let mut all = Vec::new();
    for path in paths {
        if path.join(RUN_FILE).is_file() {
            all.push(Target::Run(path.clone()));
            continue;
        }
        let found = hidden(path)?;
        match found.is_empty() {
            false => all.extend(found),
            // Another process of the family may have seen to it.
            true if ended || path.is_dir() || begins_a_name(path) => all.push(Target::Done(path.clone())),
            true => bail!("{}: no such file or directory, and no unfinished trace with this prefix", path.display()),
        }
    }
    Ok(all)
}

/// Whether a path is that of a file, or the beginning of one.
fn begins_a_name(path: &Path) -> bool {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let prefix = path.file_name().unwrap_or_default().as_encoded_bytes();
    let mut entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    !prefix.is_empty() && entries.any(|entry| entry.file_name().as_encoded_bytes().starts_with(prefix))
}

fn tell(run: &Path, report: &RecoverReport, terminal: Terminal) -> anyhow::Result<()> {
    let mut err = std::io::stderr().lock();
    if report.events == 0 && report.open.is_empty() {
        writeln!(err, "weft: {}: nothing to recover", run.display())?;
    }
    if report.events > 0 {
        let what = format!(
            "{} of {} recovered",
            terminal::counted(report.events, "event", "events"),
            terminal::counted(report.images, "process", "processes")
        );
        writeln!(err, "weft: {}: {}", run.display(), terminal.stderr().good(&what))?;
    }
    for open in &report.open {
        writeln!(err, "weft: {}: {}", run.display(), open.why)?;
    }
    Ok(())
}

fn tell_published(hidden: &Path, published: &Published, quiet: bool, terminal: Terminal) -> anyhow::Result<()> {
    let mut err = std::io::stderr().lock();
    for message in &published.messages {
        writeln!(err, "weft: {message}")?;
    }
    if quiet {
        return Ok(());
    }
    for file in &published.files {
        writeln!(err, "weft: {}: {}", file.display(), terminal.stderr().good("recovered"))?;
    }
    match &published.open {
        Some(why) => writeln!(err, "weft: {}: {why}", hidden.display())?,
        None if published.files.is_empty() => writeln!(err, "weft: {}: it held no events", hidden.display())?,
        None => {}
    }
    Ok(())
}

/// What every reading verb does first. Trouble is told, not fatal: what is there can still be read. What could not be taken in, in words: events
/// of the run may be missing from its files then.
pub(crate) fn before_reading(run: &Path) -> Vec<String> {
    let mut missing = Vec::new();
    let tell = |what: &str| drop(writeln!(std::io::stderr(), "weft: {what}"));
    if !files::is_own(run) {
        let place = run.display();
        tell(&format!("{place} belongs to another user: it is not changed, and its index is in your cache directory"));
    }
    // For a run of another user it only lists what it would have recovered.
    match weftline_drain::recover(run, &RecoverOptions::default()) {
        Ok(report) => {
            if report.events > 0 {
                tell(&format!("recovered {} from shared memory", terminal::counted(report.events, "event", "events")));
            }
            for open in &report.open {
                let what = format!(
                    "shared memory in {}: {}",
                    terminal::printable(&open.directory.display().to_string()),
                    open.why
                );
                match open.why {
                    WhyOpen::Locked | WhyOpen::Running { .. } | WhyOpen::NotYet => continue,
                    // Somebody wrote into the run what no weft writes.
                    WhyOpen::NotOfRun { .. } => tell(&what),
                    _ => {}
                }
                missing.push(what);
            }
        }
        Err(error) => {
            let what = format!("leftovers of this run could not be recovered: {error}");
            tell(&what);
            missing.push(what);
        }
    }
    // A run that cannot be written is read as it is.
    if let Err(error) = weftline_collect::writer::recover(run)
        && run.metadata().is_ok_and(|data| !data.permissions().readonly())
    {
        let what = format!("samples of a collector that was killed could not be recovered: {error}");
        tell(&what);
        missing.push(what);
    }
    missing
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_mean_runs_leftovers_or_nothing() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let at = |name: &str| place.path().join(name);
        for directory in ["run", "empty", "logs", "logs/.log-app-7.weft"] {
            std::fs::create_dir(at(directory)).expect("made");
        }
        std::fs::write(at("run/run.json"), "{}").expect("written");
        std::fs::write(at("logs/.log-app-7.weft/publish.json"), "{}").expect("written");
        std::fs::write(at("logs/old-app-3.pfw.gz"), "").expect("written");
        let hidden = || vec![Target::Hidden(at("logs/.log-app-7.weft"))];
        for (path, ended, expected) in [
            ("run", false, vec![Target::Run(at("run"))]),
            ("empty", false, vec![Target::Done(at("empty"))]),
            ("logs", false, hidden()),
            ("logs/log", false, hidden()),
            ("logs/old", false, vec![Target::Done(at("logs/old"))]),
            ("logs/.gone.weft", true, vec![Target::Done(at("logs/.gone.weft"))]),
        ] {
            assert_eq!(targets(&[at(path)], ended).expect(path), expected, "{path}");
        }
        for missing in ["logs/other", "nowhere/log"] {
            targets(&[at(missing)], false).expect_err(missing);
        }
    }
}
