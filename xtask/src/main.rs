//! `cargo xtask <chore>`: what the project checks and generates about itself.
//!
//! - `tidy` checks the rules of ARCHITECTURE.md that a machine can check (`tidy`).
//! - `docs` writes the documents that mirror code; `docs --check` only compares them (`docs`).
//!
//! Both look at the release build where they need the product; `make build` makes it.

#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a developer's command line tool")]

mod docs;
mod header;
mod repo;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask tidy            check the rules of ARCHITECTURE.md
       cargo xtask docs            write docs/hooks.md, docs/env.md, docs/cli.md, docs/formats.md, docs/masking.md, crates/capi/include/weft.h
       cargo xtask docs --check    compare them with what the release build prints";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy::run(),
        ["docs"] => docs::run(docs::Mode::Write),
        ["docs", "--check"] => docs::run(docs::Mode::Check),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
