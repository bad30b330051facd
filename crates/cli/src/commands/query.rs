//! `weft query`: executes `weft-sql`, an optional part ([`parts`]).
//!
//! `weft` does not link DataFusion, which takes longer to build than all the rest. As every reading verb does, this one first finds the newest run
//! when none was named, and finishes what killed runs left.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Context as _;
use weftline_query::QueryArgs;

use crate::commands::recover;
use crate::parts::{self, Component, SQL_PROGRAM, SQL_VARIABLE};
use crate::usage::Usage;
use crate::{opening, rundir};

/// Runs the verb. Returns only when that failed.
pub(crate) fn execute(mut args: QueryArgs) -> anyhow::Result<ExitCode> {
    let program = parts::sql_program()
        .with_context(|| format!("{SQL_PROGRAM} is not installed; {} adds it", parts::remedy(Component::Query)))?;
    if let [_] = args.words.as_slice()
        && !args.schema
    {
        args.words.insert(0, rundir::newest()?.into());
    }
    if let [runs @ .., _] = args.words.as_slice() {
        for run in runs.iter().map(Path::new).filter(|path| rundir::is_run(path)) {
            recover::before_reading(run);
        }
        if !args.no_index {
            let runs: Vec<&Path> = runs.iter().map(Path::new).collect();
            opening::index_for_others(&runs, &args.group, args.threads.map(usize::from));
        }
    }
    let error = Command::new(&program).args(args.command_line()).exec();
    if std::env::var_os(SQL_VARIABLE).is_some_and(|given| given == program) {
        let what = format!("{SQL_VARIABLE} names {}, which cannot be started: {error}", program.display());
        return Err(Usage::error(what));
    }
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}
