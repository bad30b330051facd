//! `weft`: traces a program tree and reports what it did.
//!
//! `args` parses the command line; each verb is one file in `commands` that calls a library and prints. Data goes to stdout,
//! messages to stderr. This crate is the only place for `anyhow`, printing and exit codes.
//!
//! Exit codes: `weft run` returns the program's own, dies by the signal that killed the program, and exits with 126 or 127 as a shell would for a program
//! that cannot be started; `weft weave` executes the compiler. Every other verb: 0 success, 1 failure or `--fail-on` reached. 2 is wrong usage, found before
//! anything starts.

mod args;
mod bar;
mod commands;
mod defaults;
mod imports;
mod kernel;
mod library;
mod memory;
mod opening;
mod parts;
mod rundir;
mod signals;
mod summary;
mod terminal;
mod top;
mod usage;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let options = defaults::parse().unwrap_or_else(|error| error.exit());
    let terminal = terminal::Terminal::new(options.color);
    // Anybody who can write to a run can truncate the files that verbs map, and so can a traced program.
    weftline_drain::survive_cut_files();
    match commands::execute(options.command, terminal) {
        Ok(code) => code,
        // A reader that has seen enough (`weft info | head`) is no failure.
        Err(error) if broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "weft: {}", terminal::chain(&error));
            if error.is::<usage::Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn broken_pipe(error: &anyhow::Error) -> bool {
    let kind = |cause: &(dyn std::error::Error + 'static)| {
        let io = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        io.or_else(|| cause.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind))
    };
    error.chain().filter_map(kind).any(|kind| kind == ErrorKind::BrokenPipe)
}
