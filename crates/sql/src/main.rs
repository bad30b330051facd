//! `weft-sql`: SQL over the index of a run. `weft query` runs it.
//!
//! | module | holds |
//! |---|---|
//! | [`args`] | the command line |
//! | [`session`] | the run, opened, and DataFusion over it |
//! | [`guard`] | admits only statements that read the run's tables |
//! | [`tables`] | the tables, with what is pushed down into the index |
//! | [`functions`] | time buckets, readable sizes, percentiles, unions of intervals |
//! | [`schema`] | description of tables, columns and functions, for the providers and for `docs/schema.md` |
//! | [`output`] | results as a table, CSV, JSON, Parquet, Arrow |
//! | [`complaint`] | error messages in one sentence |
//!
//! Data goes to stdout, messages to stderr. Exit codes: 0 success, 1 failure or a query that cannot be answered, 2 wrong usage. It is a binary of its
//! own because DataFusion takes longer to build than all the rest: `weft` never links it.
#![forbid(unsafe_code)]

mod args;
mod complaint;
mod functions;
mod guard;
mod output;
mod schema;
mod session;
mod tables;

use std::io::Write as _;
use std::process::ExitCode;

use clap::Parser as _;

/// Plans of queries are trees, and what walks them calls itself: a thread's usual 2 MiB are not enough for long ones.
const STACK: usize = 64 << 20;

fn main() -> ExitCode {
    let options = args::Options::parse().query;
    let outcome = args::Order::of(options).map(execute);
    let (code, error) = match outcome {
        Ok(Ok(())) => return ExitCode::SUCCESS,
        Ok(Err(error)) => (ExitCode::FAILURE, error),
        Err(error) => (ExitCode::from(2), error),
    };
    // A reader that has seen enough (`weft query … | head`) is no failure.
    if complaint::is_broken_pipe(&error) {
        return ExitCode::SUCCESS;
    }
    let _ = writeln!(std::io::stderr(), "weft-sql: {}", complaint::sentence(&error));
    code
}

fn execute(order: args::Order) -> anyhow::Result<()> {
    let args::Order::Query(query) = order else {
        std::io::stdout().write_all(schema::markdown().as_bytes())?;
        return Ok(());
    };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.thread_stack_size(STACK);
    if let Some(threads) = query.threads {
        runtime.worker_threads(threads);
    }
    let runtime = runtime.build()?;
    // In a worker, for its stack.
    let answered = runtime.block_on(async { tokio::spawn(session::answer(query)).await });
    // Scans that a LIMIT made needless are not waited for.
    runtime.shutdown_background();
    answered?
}
