//! One file per verb. Each calls libraries and prints; none is called by another.

pub(crate) mod check;
pub(crate) mod collect;
pub(crate) mod doctor;
pub(crate) mod env;
pub(crate) mod import;
pub(crate) mod index;
pub(crate) mod info;
pub(crate) mod list;
pub(crate) mod pages;
pub(crate) mod query;
pub(crate) mod recover;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod top;
pub(crate) mod weave;

use std::process::ExitCode;

use crate::args::Command;
use crate::terminal::Terminal;

/// Does what a verb says.
pub(crate) fn execute(command: Command, terminal: Terminal) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run(given) => run::execute(&given, terminal),
        Command::Collect(given) => collect::execute(&given),
        Command::Recover(given) => recover::execute(&given, terminal),
        Command::Import(given) => import::execute(&given, terminal),
        Command::List(given) => list::execute(&given, terminal),
        Command::Info(given) => info::execute(&given, terminal),
        Command::Check(given) => check::execute(&given, terminal),
        Command::Report(given) => report::execute(&given, terminal),
        Command::Index(given) => index::execute(&given, terminal),
        Command::Query(given) => query::execute(given),
        Command::Weave(given) => weave::execute(&given),
        Command::Top(given) => top::execute(&given, terminal),
        Command::Env(given) => env::execute(&given),
        Command::Doctor(given) => doctor::execute(&given, terminal),
        Command::Completions { shell } => pages::completions(shell),
        Command::Man { directory } => pages::man(directory.as_deref()),
        Command::Docs { document } => pages::document(document),
    }
}
