//! The smallest supervisor: runs a command and traces it, or recovers what a killed one left.
//!
//! ```text
//! cargo run --release -p weftline-drain --example supervise RUN_DIRECTORY COMMAND [ARGUMENT…]
//! cargo run --release -p weftline-drain --example supervise --recover RUN_DIRECTORY
//! ```
//! `WEFT_PRELOAD_LIB` names the library; by default it lies beside the example's own directory. `weft run` does the same with all
//! that a user expects around it.
#![allow(clippy::print_stderr, reason = "an example tells what it did")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

use weftline_drain::{Drain, DrainOptions, Live, LiveOptions, RecoverOptions, recover, tree_io};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    let [run, program, rest @ ..] = &arguments[..] else { return Err("RUN_DIRECTORY COMMAND [ARGUMENT…]".into()) };
    if run == "--recover" {
        let report = recover(Path::new(program), &RecoverOptions::default())?;
        eprintln!("{report:#?}");
        return Ok(());
    }
    let run = Path::new(run);
    std::fs::create_dir_all(run)?;
    let live = Live::create(run, &LiveOptions { run_id: "example".to_owned(), ..LiveOptions::default() })?;
    let mut drain = Drain::new(live, run, DrainOptions::default())?;
    let mut child =
        Command::new(program).args(rest).env("WEFT_LIVE", drain.directory()).env("LD_PRELOAD", library()?).spawn()?;
    while child.try_wait()?.is_none() {
        std::thread::sleep(drain.poll());
    }
    drain.record_mut().tree_io =
        tree_io().map(|io| weftline_format::manifest::IoCount { rchar: io.rchar, wchar: io.wchar });
    let outcome = drain.finish()?;
    let record = &outcome.record;
    let events: u64 = record.processes.iter().map(|process| process.events).sum();
    eprintln!(
        "{} process images, {events} events, {} µs in the drain",
        record.processes.len(),
        record.drain_cpu_ns / 1000
    );
    for process in &record.processes {
        let why = process.untraced.as_deref().unwrap_or_default();
        eprintln!("{:>8} {:>9} {} {why} {:?}", process.pid, process.events, process.exe, process.drops);
    }
    for survivor in outcome.survivors {
        eprintln!("still running: {} {}", survivor.pid, survivor.exe);
    }
    Ok(())
}

fn library() -> Result<PathBuf, Box<dyn Error>> {
    if let Some(path) = std::env::var_os("WEFT_PRELOAD_LIB") {
        return Ok(path.into());
    }
    let own = std::env::current_exe()?;
    let directory = own.parent().and_then(Path::parent).ok_or("the example has no directory")?;
    Ok(directory.join("libweft_preload.so"))
}
