//! `weft index`: builds, shows or removes the index of a run.

use std::io::Write as _;
use std::process::ExitCode;

use serde::Serialize;
use weftline_index::Run;

use crate::args::IndexArgs;
use crate::opening;
use crate::terminal::{self, Terminal};

#[derive(Serialize)]
struct Built {
    directory: String,
    bytes: u64,
    rows: u64,
    files_read: usize,
    files_kept: usize,
}

/// Runs the verb.
pub(crate) fn execute(args: &IndexArgs, terminal: Terminal) -> anyhow::Result<ExitCode> {
    let mut out = std::io::stdout().lock();
    if args.remove {
        let removed = Run::remove_index(&opening::named(&args.open)?, &args.open.group)?;
        writeln!(out, "{}", if removed == 0 { "there was no index" } else { "removed the index" })?;
        return Ok(ExitCode::SUCCESS);
    }
    let run = opening::open(&args.open)?;
    let built: Vec<Built> = run
        .index()
        .iter()
        .map(|index| Built {
            directory: index.directory.display().to_string(),
            bytes: index.bytes,
            rows: index.rows,
            files_read: index.read,
            files_kept: index.kept,
        })
        .collect();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &built)?;
        writeln!(out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let paint = terminal.stdout();
    for index in &built {
        writeln!(out, "{}  {}", paint.dim("index"), index.directory)?;
        let (rows, bytes) = (terminal::counted(index.rows, "row", "rows"), terminal::bytes(index.bytes));
        let (read, kept) = (terminal::counted(index.files_read as u64, "file", "files"), index.files_kept);
        writeln!(out, "{}  {rows} in {bytes}; {read} read, {kept} known already", paint.dim(" size"))?;
    }
    for source in run.sources().iter().filter(|source| source.flaws > 0 || source.unreadable.is_some()) {
        let path = source.path.display();
        match &source.unreadable {
            Some(why) => writeln!(out, "{}  {path}: {why}", paint.bad("unread"))?,
            None => writeln!(
                out,
                "{}  {path}: {}, {} unusable; `weft check {path}` names them",
                paint.bad("damage"),
                terminal::counted(source.flaws, "flaw", "flaws"),
                terminal::bytes(source.lost_bytes)
            )?,
        }
    }
    Ok(ExitCode::SUCCESS)
}
