//! `weft info`: what a run holds.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::bail;
use serde::Serialize;
use weftline_analysis::coverage::{self, Ledger, RunTotals, without_events};
use weftline_analysis::inventory::FileInventory;
use weftline_format::manifest::{RunManifest, SupervisorRecord};
use weftline_import::record::ImportRecord;

use crate::args::ReadArgs;
use crate::commands::recover;
use crate::imports;
use crate::opening;
use crate::rundir::{self, Source};
use crate::summary;
use crate::terminal::{self, Terminal};

/// Runs the verb.
pub(crate) fn execute(args: &ReadArgs, terminal: Terminal) -> anyhow::Result<ExitCode> {
    match rundir::find(&args.run)? {
        Source::Run(run) => match RunManifest::read(&run) {
            Ok(manifest) => of_run(&run, &manifest, args.json, terminal)?,
            // Its traces are as good as others.
            Err(error) => {
                writeln!(std::io::stderr(), "weft: {error}; showing its trace files only")?;
                of_files(&run, &rundir::traces_in(&run)?, args.json, terminal)?;
            }
        },
        Source::Files(files) => of_files(rundir::place_of(&files), &files, args.json, terminal)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether supervisors and collectors of a run have written anything.
fn holds_events(totals: &RunTotals, records: &[SupervisorRecord]) -> bool {
    let samples = records.iter().filter_map(|record| record.samples.as_ref()).any(|samples| samples.samples > 0);
    let kernel = records.iter().filter_map(|record| record.kernel.as_ref()).any(|kernel| kernel.events > 0);
    totals.events > 0 || samples || kernel
}

#[derive(Serialize)]
struct RunInfo<'a> {
    #[serde(serialize_with = "terminal::path_as_text")]
    directory: &'a Path,
    trace_bytes: u64,
    events: u64,
    lost: u64,
    manifest: &'a RunManifest,
    coverage: Ledger,
    index: IndexInfo,
    supervisors: &'a [SupervisorRecord],
    imports: Vec<ImportRecord>,
}

fn of_run(run: &Path, manifest: &RunManifest, json: bool, terminal: Terminal) -> anyhow::Result<()> {
    recover::before_reading(run);
    let (records, errors) = SupervisorRecord::read_all(run);
    for error in errors {
        writeln!(std::io::stderr(), "weft: {error}")?;
    }
    let trace_bytes = rundir::trace_bytes(run);
    let imports = ImportRecord::read_all(run);
    let totals = RunTotals::of(&records);
    let mut out = std::io::stdout().lock();
    if json {
        let coverage = coverage::ledger(&records);
        let info = RunInfo {
            directory: run,
            trace_bytes,
            events: totals.events,
            lost: totals.lost(),
            manifest,
            coverage,
            index: index_of(&[run.to_owned()]),
            supervisors: &records,
            imports,
        };
        serde_json::to_writer_pretty(&mut out, &info)?;
        writeln!(out)?;
        return require_events(run, &totals, &records);
    }
    let paint = terminal.stdout();
    let index = index_of(&[run.to_owned()]);
    if manifest.command.is_empty() {
        writeln!(out, "{}  {}", paint.dim("     name"), terminal::printable(&manifest.name))?;
    } else {
        let command: Vec<String> = manifest.command.iter().map(|word| terminal::printable(word)).collect();
        writeln!(out, "{}  {}", paint.dim("  command"), command.join(" "))?;
    }
    let started = [
        manifest.created.clone(),
        if manifest.host.is_empty() { String::new() } else { format!(" on {}", terminal::printable(&manifest.host)) },
        if manifest.tool_version.is_empty() { String::new() } else { format!(", {}", manifest.tool_version) },
    ];
    writeln!(out, "{}  {}", paint.dim("  started"), started.concat())?;
    if let Some(rank) = manifest.launcher.rank {
        let size = manifest.launcher.world_size.map(|size| format!(" of {size}")).unwrap_or_default();
        writeln!(out, "{}  rank {rank}{size} ({})", paint.dim(" launcher"), manifest.launcher.kind)?;
    }
    writeln!(out, "{}  {}", paint.dim("    index"), index.shown())?;
    write!(out, "{}", imports::text(&imports, paint))?;
    if records.is_empty() && trace_bytes > 0 {
        // Nobody supervised what was only imported. Otherwise its files tell what no supervisor does.
        return match imports.is_empty() {
            true => of_files(run, &rundir::traces_in(run)?, json, terminal),
            false => Ok(()),
        };
    }
    write!(
        out,
        "{}",
        summary::text(
            &run.display().to_string(),
            trace_bytes,
            &records,
            (None, None),
            opening::width(std::io::stdout()),
            paint
        )
    )?;
    require_events(run, &totals, &records)
}

/// All facts about the run were printed; a run without events is still an error, unless it is in progress.
fn require_events(run: &Path, totals: &RunTotals, records: &[SupervisorRecord]) -> anyhow::Result<()> {
    let unknown = records.is_empty() && rundir::trace_bytes(run) > 0;
    if unknown || totals.open || holds_events(totals, records) {
        return Ok(());
    }
    bail!(without_events(run))
}

/// The state of an index, without building it.
#[derive(Default, Serialize)]
struct IndexInfo {
    #[serde(serialize_with = "terminal::maybe_path_as_text")]
    directory: Option<PathBuf>,
    bytes: u64,
    rows: u64,
    files: usize,
    /// Trace files that the next question would read.
    files_to_read: usize,
}

impl IndexInfo {
    fn shown(&self) -> String {
        let (bytes, rows) = (terminal::bytes(self.bytes), terminal::counted(self.rows, "row", "rows"));
        match (&self.directory, self.files_to_read) {
            (None, _) => "none yet; the first `weft report` builds it".to_owned(),
            (Some(place), 0) => format!("{rows} in {bytes}, current ({})", place.display()),
            (Some(place), some) => {
                let files = terminal::counted(self.files as u64, "file", "files");
                format!("{rows} in {bytes}, {some} of {files} to be read ({})", place.display())
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

fn of_files(place: &Path, files: &[PathBuf], json: bool, terminal: Terminal) -> anyhow::Result<()> {
    let infos: Vec<FileInventory> = files.iter().map(|path| FileInventory::of(path)).collect();
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, &infos)?;
        writeln!(out)?;
    }
    if infos.iter().all(|info| info.events == 0) {
        return Err(weftline_index::run::no_events(place, files).into());
    }
    if json {
        return Ok(());
    }
    let unread = infos.iter().filter(|info| info.unreadable.is_some()).count() as u64;
    if unread > 0 {
        let (some, all) = (terminal::count(unread), terminal::counted(infos.len() as u64, "file", "files"));
        writeln!(std::io::stderr(), "weft: {some} of {all} could not be read")?;
    }
    let paint = terminal.stdout();
    for info in &infos {
        writeln!(out, "{}", paint.strong(&terminal::printable(&info.path.display().to_string())))?;
        if let Some(why) = &info.unreadable {
            writeln!(out, "  {}", paint.bad(&format!("could not be read: {why}")))?;
            continue;
        }
        let span = info.first_ns.zip(info.last_ns).map_or(0, |(first, last)| last.saturating_sub(first).max(0) as u64);
        writeln!(
            out,
            "  {}; {} ({}) and {} of {}, {}, over {}",
            info.dialect,
            terminal::counted(info.events, "event", "events"),
            terminal::counted(info.spans, "span", "spans"),
            terminal::counted(info.metadata, "metadata line", "metadata lines"),
            terminal::counted(info.processes as u64, "process", "processes"),
            terminal::counted(info.threads as u64, "thread", "threads"),
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
