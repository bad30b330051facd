//! `weft recover`: turns what a killed run left into trace files.

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;
use weftline_drain::{RecoverOptions, RecoverReport};

use crate::args::RecoverArgs;
use crate::rundir::{self, Source};
use crate::terminal::{self, Terminal};

/// Runs the verb.
pub(crate) fn execute(args: &RecoverArgs, terminal: Terminal) -> anyhow::Result<ExitCode> {
    let Source::Run(run) = rundir::find(args.run.as_slice())? else {
        bail!("these are trace files, not a run directory: there is nothing to recover");
    };
    let report = weftline_drain::recover(&run, &RecoverOptions::default())?;
    if !args.quiet {
        tell(&run, &report, terminal)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn tell(run: &Path, report: &RecoverReport, terminal: Terminal) -> anyhow::Result<()> {
    let mut err = std::io::stderr().lock();
    if report.events == 0 && report.open.is_empty() {
        writeln!(err, "weft: {}: nothing to recover", run.display())?;
    }
    if report.events > 0 {
        let what = format!("{} events of {} processes recovered", terminal::count(report.events), report.images);
        writeln!(err, "weft: {}: {}", run.display(), terminal.stderr().good(&what))?;
    }
    for open in &report.open {
        writeln!(err, "weft: {}: {}", run.display(), open.why)?;
    }
    Ok(())
}

/// What every reading verb does first. Trouble is told, not fatal: what is there can still be read.
pub(crate) fn before_reading(run: &Path) {
    match weftline_drain::recover(run, &RecoverOptions::default()) {
        Ok(report) if report.events > 0 => {
            let _ = writeln!(
                std::io::stderr(),
                "weft: {} events taken in that nobody had drained yet",
                terminal::count(report.events)
            );
        }
        Ok(_) => {}
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "weft: leftovers of this run could not be recovered: {error}");
        }
    }
}
