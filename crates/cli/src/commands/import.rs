//! `weft import`: foreign files become a run, or are added to one.

use std::io::Write as _;
use std::process::ExitCode;

use anyhow::Context as _;
use weftline_import::config::Config;
use weftline_import::import::Target;
use weftline_import::registry::FORMATS;
use weftline_import::{Options, import};

use crate::args::{ImportArgs, VERSION};
use crate::bar::Bar;
use crate::imports;
use crate::rundir;
use crate::terminal::{self, Terminal};

/// Runs the verb.
pub(crate) fn execute(args: &ImportArgs, terminal: Terminal) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    let target = match (&args.output, &args.into) {
        (Some(run), _) => Target::New(run),
        (None, Some(run)) => Target::Into(run),
        (None, None) => {
            let width = FORMATS.iter().map(|format| format.kind.len()).max().unwrap_or(0);
            for format in FORMATS {
                writeln!(out, "{:width$}  {}", format.kind, format.title)?;
            }
            return Ok(ExitCode::SUCCESS);
        }
    };
    let options = Options {
        kind: args.kind.clone(),
        zone_seconds: args.tz.map(|zone| zone.seconds),
        config: args.config.as_deref().map(Config::read).transpose().context("cannot import")?,
        align: args.align.clone(),
        host: args.host.clone().unwrap_or_else(rundir::host),
        keep_partial: args.keep_partial,
        tool_version: format!("weft {VERSION}"),
        ..Options::default()
    };
    let done = import(&args.paths, target, &options, &Bar::default()).context("cannot import")?;
    if args.json {
        serde_json::to_writer_pretty(&mut out, &done.record)?;
        writeln!(out)?;
    } else if done.known {
        writeln!(out, "{} holds these files already; nothing was added", done.run.display())?;
    } else {
        let paint = terminal.stdout();
        write!(out, "{}", imports::text(std::slice::from_ref(&done.record), paint))?;
        writeln!(out, "{}  weft report {}", paint.dim("     next"), done.run.display())?;
    }
    match &done.damage {
        Some(damage) => {
            let damage = terminal::printable(&damage.to_string());
            writeln!(std::io::stderr(), "weft: kept what was read before: {damage}")?;
            Ok(ExitCode::FAILURE)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}
