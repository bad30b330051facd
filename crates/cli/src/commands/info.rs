//! `weft info`: what a run holds.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;
use weftline_format::event::Phase;
use weftline_format::manifest::{RunManifest, SupervisorRecord};
use weftline_format::reader;

use crate::args::ReadArgs;
use crate::commands::recover;
use crate::rundir::{self, Source};
use crate::terminal::{self, Terminal};
use crate::{ledger, summary};

/// Runs the verb.
pub(crate) fn execute(args: &ReadArgs, terminal: Terminal) -> anyhow::Result<ExitCode> {
    match rundir::find(&args.run)? {
        Source::Run(run) => of_run(&run, args.json, terminal)?,
        Source::Files(files) => of_files(&files, args.json, terminal)?,
    }
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct RunInfo<'a> {
    directory: &'a Path,
    trace_bytes: u64,
    events: u64,
    lost: u64,
    manifest: &'a RunManifest,
    coverage: ledger::Ledger,
    index: IndexInfo,
    supervisors: &'a [SupervisorRecord],
}

fn of_run(run: &Path, json: bool, terminal: Terminal) -> anyhow::Result<()> {
    recover::before_reading(run);
    let manifest = RunManifest::read(run)?;
    let (records, errors) = SupervisorRecord::read_all(run);
    for error in errors {
        writeln!(std::io::stderr(), "weft: {error}")?;
    }
    let trace_bytes = rundir::size_of(run);
    let totals = summary::Totals::of(&records);
    let mut out = std::io::stdout().lock();
    if json {
        let coverage = ledger::ledger(&records);
        let info = RunInfo {
            directory: run,
            trace_bytes,
            events: totals.events,
            lost: totals.lost(),
            manifest: &manifest,
            coverage,
            index: index_of(&[run.to_owned()]),
            supervisors: &records,
        };
        serde_json::to_writer_pretty(&mut out, &info)?;
        writeln!(out)?;
        return Ok(());
    }
    let paint = terminal.stdout();
    let index = index_of(&[run.to_owned()]);
    let command: Vec<String> = manifest.command.iter().map(|word| terminal::printable(word)).collect();
    writeln!(out, "{}  {}", paint.dim("  command"), command.join(" "))?;
    writeln!(out, "{}  {} on {}, {}", paint.dim("  started"), manifest.created, manifest.host, manifest.tool_version)?;
    if let Some(rank) = manifest.launcher.rank {
        let size = manifest.launcher.world_size.map(|size| format!(" of {size}")).unwrap_or_default();
        writeln!(out, "{}  rank {rank}{size} ({})", paint.dim(" launcher"), manifest.launcher.kind)?;
    }
    writeln!(out, "{}  {}", paint.dim("    index"), index.shown())?;
    write!(out, "{}", summary::text(&run.display().to_string(), trace_bytes, &records, paint))?;
    Ok(())
}

/// The state of an index, without building it.
#[derive(Default, Serialize)]
struct IndexInfo {
    directory: Option<PathBuf>,
    bytes: u64,
    rows: u64,
    files: usize,
    /// Trace files that the next question would read.
    files_to_read: usize,
}

impl IndexInfo {
    fn shown(&self) -> String {
        let (bytes, rows) = (terminal::bytes(self.bytes), terminal::count(self.rows));
        match (&self.directory, self.files_to_read) {
            (None, _) => "none yet; the first `weft report` builds it".to_owned(),
            (Some(place), 0) => format!("{rows} events in {bytes}, current ({})", place.display()),
            (Some(place), some) => {
                format!("{rows} events in {bytes}, {some} of {} files to be read ({})", self.files, place.display())
            }
        }
    }
}

fn index_of(named: &[PathBuf]) -> IndexInfo {
    // What cannot be looked at has no index that anybody could use.
    let parts = weftline_index::Run::peek(named, &[]).unwrap_or_default();
    parts.into_iter().fold(IndexInfo::default(), |sum, part| IndexInfo {
        directory: sum.directory.or(part.directory),
        bytes: sum.bytes + part.catalog.bytes(),
        rows: sum.rows + part.catalog.rows(),
        files: sum.files + part.files,
        files_to_read: sum.files_to_read + part.to_read,
    })
}

/// What can be told of trace files without a manifest.
#[derive(Default, Serialize)]
struct FileInfo {
    path: PathBuf,
    dialect: String,
    events: u64,
    metadata: u64,
    processes: usize,
    threads: usize,
    first_ns: Option<i64>,
    last_ns: Option<i64>,
    categories: BTreeMap<String, u64>,
    damage: Vec<String>,
}

fn of_files(files: &[PathBuf], json: bool, terminal: Terminal) -> anyhow::Result<()> {
    let infos = files.iter().map(|path| of_file(path)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, &infos)?;
        writeln!(out)?;
        return Ok(());
    }
    let paint = terminal.stdout();
    for info in &infos {
        writeln!(out, "{}", paint.strong(&info.path.display().to_string()))?;
        let span = info.first_ns.zip(info.last_ns).map_or(0, |(first, last)| last.saturating_sub(first).max(0) as u64);
        writeln!(
            out,
            "  {}; {} events and {} metadata lines of {} processes, {} threads, over {}",
            info.dialect,
            terminal::count(info.events),
            terminal::count(info.metadata),
            info.processes,
            info.threads,
            terminal::time(span)
        )?;
        for (category, count) in &info.categories {
            writeln!(out, "  {:>12}  {}", terminal::count(*count), terminal::printable(category))?;
        }
        for damage in &info.damage {
            writeln!(out, "  {}", paint.bad(damage))?;
        }
    }
    Ok(())
}

fn of_file(path: &Path) -> anyhow::Result<FileInfo> {
    let mut info = FileInfo { path: path.to_owned(), ..FileInfo::default() };
    let mut threads = BTreeSet::new();
    let scanned = reader::scan_file(path, &mut |event| {
        if event.phase == Phase::Metadata {
            info.metadata += 1;
            return;
        }
        info.events += 1;
        threads.insert((event.pid, event.tid));
        let category: &str = &event.cat;
        match info.categories.get_mut(category) {
            Some(count) => *count += 1,
            None => {
                info.categories.insert(category.to_owned(), 1);
            }
        }
        if let Some(start) = event.start_ns {
            info.first_ns = Some(info.first_ns.map_or(start, |first: i64| first.min(start)));
            let end = start + event.dur_ns.unwrap_or(0);
            info.last_ns = Some(info.last_ns.map_or(end, |last: i64| last.max(end)));
        }
    })
    .with_context(|| format!("cannot read {}", path.display()))?;
    info.threads = threads.len();
    info.processes = threads.iter().map(|(pid, _)| pid).collect::<BTreeSet<_>>().len();
    info.dialect = scanned.dialect.to_string();
    info.damage = scanned.damage.flaws.iter().map(ToString::to_string).collect();
    Ok(info)
}
