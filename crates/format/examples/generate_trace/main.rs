//! Makes traces for `make bench-analysis`: the same job in several forms, in one pass.
//!
//! `generate_trace EVENTS [--seconds N] [--sharded yes] [--single FILE] [--multi FILE] [--plain FILE] [--run DIRECTORY]`
//!
//! `--single` is one gzip member as `gzip -6` makes it, `--multi` a sequence of members of 1 MiB of whole lines at the same level, both of
//! DFTracer's text; `--plain` is that text. `--run` is a run directory of our own. Prints as JSON what a correct analysis must find.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that prints its result")]

mod dftracer;
mod outputs;
mod run;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

use outputs::{Forms, generate};

const USAGE: &str = "usage: generate_trace EVENTS [--seconds N] [--sharded yes] [--single FILE] [--multi FILE] [--plain FILE] [--run DIRECTORY]";

/// How long the job takes: at 8 million events and 1 s, 1.4 million groups of bucket, category, name, process and file.
const SECONDS: u32 = 600;

fn arguments() -> Option<(u64, u32, bool, Forms)> {
    let mut words = std::env::args().skip(1);
    let events = words.next()?.parse().ok()?;
    let (mut seconds, mut sharded, mut forms) = (SECONDS, false, Forms::default());
    while let Some(option) = words.next() {
        let value = words.next()?;
        match option.as_str() {
            "--seconds" => seconds = value.parse().ok()?,
            "--sharded" => sharded = value == "yes",
            "--single" => forms.single = Some(PathBuf::from(value)),
            "--multi" => forms.multi = Some(PathBuf::from(value)),
            "--plain" => forms.plain = Some(PathBuf::from(value)),
            "--run" => forms.run = Some(PathBuf::from(value)),
            _ => return None,
        }
    }
    Some((events, seconds, sharded, forms))
}

fn main() -> ExitCode {
    let Some((events, seconds, sharded, forms)) = arguments() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match generate(events, seconds, sharded, &forms) {
        Ok(summary) => {
            println!("{}", summary.as_json());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("generate_trace: {error}");
            ExitCode::FAILURE
        }
    }
}
