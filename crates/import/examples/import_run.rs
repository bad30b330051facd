//! Imports files into a new run, without the command: `import_run RUN PATH…`. Tools that compare an import with another reader use it.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program")]

use std::path::PathBuf;
use std::process::ExitCode;

use weftline_import::import::Target;
use weftline_import::{Options, import};

fn main() -> ExitCode {
    let mut paths = std::env::args_os().skip(1).map(PathBuf::from);
    let Some(run) = paths.next() else {
        eprintln!("import_run RUN PATH…");
        return ExitCode::from(2);
    };
    let named: Vec<PathBuf> = paths.collect();
    let options = Options { host: "localhost".to_owned(), ..Options::default() };
    match import(&named, Target::New(&run), &options) {
        Ok(done) => {
            for source in &done.record.sources {
                println!("{}: {} events of {}", source.name, source.events, source.kind);
                for (reason, skipped) in &source.skipped {
                    println!("  left out, {} times, first at byte {}: {reason}", skipped.count, skipped.first);
                }
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
