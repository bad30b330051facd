//! `weft query`: becomes `weft-sql`, an optional part ([`parts`]).
//!
//! `weft` does not link DataFusion, which takes longer to build than all the rest. As every reading verb does, this one first finds the newest run
//! when none was named, and finishes what killed runs left.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Context as _;

use crate::args::QueryArgs;
use crate::commands::recover;
use crate::parts::{self, Part, SQL_PROGRAM, SQL_VARIABLE};
use crate::rundir;
use crate::usage::Usage;

/// Runs the verb. Returns only when that failed.
pub(crate) fn execute(mut args: QueryArgs) -> anyhow::Result<ExitCode> {
    let program = parts::sql_program().with_context(|| {
        format!("{SQL_PROGRAM}, which answers queries, is not installed; {} adds it", parts::remedy(Part::Query))
    })?;
    if let [_] = args.words.as_slice()
        && !args.schema
    {
        args.words.insert(0, rundir::newest()?.into());
    }
    if let [runs @ .., _] = args.words.as_slice() {
        for run in runs.iter().map(Path::new).filter(|path| rundir::is_run(path)) {
            recover::before_reading(run);
        }
    }
    let error = Command::new(&program).args(words(&args)).exec();
    if std::env::var_os(SQL_VARIABLE).is_some_and(|given| given == program) {
        let what = format!("{SQL_VARIABLE} names {}, which cannot be started: {error}", program.display());
        return Err(Usage::error(what));
    }
    Err(error).with_context(|| format!("cannot start {}", program.display()))
}

/// The arguments, in the form in which `weft-sql` takes them.
fn words(args: &QueryArgs) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut option = |name: &str, value: Option<&OsStr>| {
        words.push(name.into());
        words.extend(value.map(OsStr::to_owned));
    };
    if let Some(format) = &args.format {
        option("--format", Some(format.as_ref()));
    }
    if let Some(output) = &args.output {
        option("--output", Some(output.as_ref()));
    }
    for group in &args.group {
        option("--group", Some(group.as_ref()));
    }
    if let Some(threads) = args.threads {
        option("--threads", Some(threads.to_string().as_ref()));
    }
    if let Some(memory) = args.memory {
        option("--memory", Some(memory.to_string().as_ref()));
    }
    for (name, given) in [("--no-index", args.no_index), ("--explain", args.explain), ("--schema", args.schema)] {
        if given {
            option(name, None);
        }
    }
    option("--", None);
    words.extend(args.words.iter().cloned());
    words
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Command, Options};

    fn check(line: &[&str], expected: &[&str]) {
        let given = ["weft", "query"].iter().chain(line);
        let Command::Query(args) = Options::try_parse_from(given).expect("it parses").command else {
            panic!("{line:?}")
        };
        assert_eq!(words(&args), expected.iter().map(OsString::from).collect::<Vec<_>>());
    }

    #[test]
    fn all_arguments_are_handed_on() {
        check(&["run", "SELECT 1"], &["--", "run", "SELECT 1"]);
        check(&["--schema"], &["--schema", "--"]);
        check(
            &[
                "--format",
                "csv",
                "-o",
                "x.csv",
                "--no-index",
                "--explain",
                "--group=a",
                "--threads",
                "3",
                "r1",
                "r2",
                "-",
            ],
            &[
                "--format",
                "csv",
                "--output",
                "x.csv",
                "--group",
                "a",
                "--threads",
                "3",
                "--no-index",
                "--explain",
                "--",
                "r1",
                "r2",
                "-",
            ],
        );
    }
}
