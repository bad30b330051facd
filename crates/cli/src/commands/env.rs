//! `weft env`: prints the variables to set if `weft run` cannot be used.

use std::io::Write;
use std::process::ExitCode;

use weftline_drain::{Live, LiveOptions};
use weftline_format::manifest::RunManifest;
use weftline_format::secrets::Arguments;
use weftline_recorder::process::LIVE_VARIABLE;

use crate::args::{EnvArgs, Syntax};
use crate::{library, rundir};

/// Runs the verb.
pub(crate) fn execute(args: &EnvArgs) -> anyhow::Result<ExitCode> {
    let library = library::find()?;
    let arguments = Arguments::unless(args.privacy.no_args);
    let run = rundir::create(args.output.as_deref(), Some("env"), &[], args.privacy.share, arguments)?.directory;
    let run_id = RunManifest::read(&run)?.id;
    let live = Live::create(&run, &LiveOptions { run_id, unsupervised: true, arguments, ..LiveOptions::default() })?;
    let preload = match std::env::var("LD_PRELOAD") {
        Ok(other) if !other.is_empty() => format!("{other}:{}", library.display()),
        _ => library.display().to_string(),
    };
    let mut out = std::io::stdout().lock();
    for (name, value) in [("LD_PRELOAD", preload), (LIVE_VARIABLE, live.directory().display().to_string())] {
        let quoted = format!("'{}'", value.replace('\'', r"'\''"));
        match args.syntax {
            Syntax::Sh => writeln!(out, "export {name}={quoted}")?,
            Syntax::Csh => writeln!(out, "setenv {name} {quoted}")?,
            Syntax::Fish => writeln!(out, "set -gx {name} {quoted}")?,
            Syntax::Plain => writeln!(out, "{name}={value}")?,
        }
    }
    live.leave();
    writeln!(
        std::io::stderr(),
        "weft: processes with these variables record into {}; read it with `weft info {0}`",
        run.display()
    )?;
    Ok(ExitCode::SUCCESS)
}
