//! What was named → a run: two passes over the files, the first for facts about all, the second for events.

use std::fs;
use std::hash::Hasher as _;
use std::io::Read;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use twox_hash::XxHash64;
use weftline_format::files;
use weftline_format::manifest::utc;
use weftline_format::manifest::{RECORD_DIR, RUN_FILE, RunManifest};
use weftline_format::progress::Progress;

use crate::config::Config;
use crate::input::{Head, Input, file_name};
use crate::record::ImportRecord;
use crate::registry::{self, Chosen};
use crate::sink::RunSink;
use crate::survey::Survey;
use crate::walk::{Limits, size, walk};
use crate::{ImportError, Result};

/// How an import is done.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The format of every file; found from content otherwise.
    pub kind: Option<String>,
    /// `--tz`: seconds that local time is ahead of UTC.
    pub zone_seconds: Option<i32>,
    /// `--align SOURCE=+1.25s`: what is added to the times of files whose name contains the text.
    pub align: Vec<(String, i64)>,
    /// The host that files belong to which name none.
    pub host: String,
    /// The file of `--config`.
    pub config: Option<Config>,
    /// Keeps what was written when a file turns out to be damaged.
    pub keep_partial: bool,
    /// The version that the run's manifest tells.
    pub tool_version: String,
    /// Limits for archives.
    pub limits: Limits,
}

/// Where events go.
#[derive(Debug, Clone, Copy)]
pub enum Target<'a> {
    /// A new run directory.
    New(&'a Path),
    /// A run that is there.
    Into(&'a Path),
}

/// What became of it.
#[derive(Debug)]
pub struct Imported {
    /// The run.
    pub run: PathBuf,
    /// What was imported.
    pub record: ImportRecord,
    /// Whether the run had the same bytes already, and nothing was added.
    pub known: bool,
    /// Why the last file was not read to its end (`--keep-partial`).
    pub damage: Option<ImportError>,
}

/// What the first pass found.
struct Plan {
    survey: Survey,
    mark: String,
    unknown: Vec<String>,
    sources: usize,
}

/// Imports files, folders and archives.
pub fn import(named: &[PathBuf], target: Target<'_>, options: &Options, progress: &dyn Progress) -> Result<Imported> {
    let forced = options.kind.as_deref().map(|kind| registry::by_name(kind, options.config.as_ref())).transpose()?;
    if let Target::New(run) = target
        && fs::symlink_metadata(run).is_ok()
    {
        return Err(ImportError::Exists { path: run.to_owned() });
    }
    // Everything is read twice.
    progress.begin("importing", named.iter().map(|path| 2 * size(path)).sum());
    let done = Work { named, forced, options, progress }.carry_out(target);
    progress.end();
    done
}

/// What is asked for.
struct Work<'a> {
    named: &'a [PathBuf],
    /// `--kind`.
    forced: Option<Chosen<'a>>,
    options: &'a Options,
    progress: &'a dyn Progress,
}

impl Work<'_> {
    fn carry_out(&self, target: Target<'_>) -> Result<Imported> {
        let (Target::New(run) | Target::Into(run)) = target;
        let run = run.to_owned();
        let plan = self.survey()?;
        let record = ImportRecord { mark: plan.mark.clone(), unknown: plan.unknown.clone(), ..ImportRecord::default() };
        if let Target::Into(run) = target {
            // A run, and the caller's: the manifest says so, and files are made in it.
            RunManifest::read(run)?;
            if record.path(run).exists() {
                return Ok(Imported { run: run.to_owned(), record, known: true, damage: None });
            }
        }
        let staging = staging(&run, &plan.mark)?;
        let written = self.write(&plan, &staging, record);
        let done = written.and_then(|(record, damage)| {
            if record.events() == 0 {
                let why = match &damage {
                    Some(damage) => damage.to_string(),
                    None => "it holds no event".to_owned(),
                };
                return Err(ImportError::Empty { path: self.named.first().cloned().unwrap_or_default(), why });
            }
            match target {
                Target::New(run) => publish_new(&staging, run, self.named, self.options, &record)?,
                Target::Into(run) => publish_into(&staging, run, &record)?,
            }
            Ok(Imported { run: run.clone(), record, known: false, damage })
        });
        if done.is_err() || matches!(target, Target::Into(_)) {
            discard(&staging);
        }
        done
    }

    /// The format of a file, if it has one.
    fn format_of(&self, name: &str, head: &[u8]) -> Option<Chosen<'_>> {
        let head = Head { name: file_name(name), bytes: head };
        self.forced.or_else(|| registry::choose(&head, self.options.config.as_ref()))
    }

    fn survey(&self) -> Result<Plan> {
        let mut survey = Survey { zone_seconds: self.options.zone_seconds, ..Survey::default() };
        if let Some(config) = &self.options.config {
            survey.discs.overrides = config.discs.clone();
        }
        let mut mark = XxHash64::with_seed(0);
        let (mut unknown, mut sources) = (Vec::new(), 0);
        for path in self.named {
            let walked = walk(path, self.options.limits, self.progress, &mut |found, reader| {
                let Some(format) = self.format_of(found.name, found.head) else {
                    unknown.push(found.name.to_owned());
                    return Ok(());
                };
                sources += 1;
                mark.write(format.kind().as_bytes());
                if let (Chosen::Custom(_), Some(config)) = (&format, &self.options.config) {
                    mark.write_u64(config.mark);
                }
                let mut marked = Marked { reader, mark: &mut mark };
                format.survey(&mut Input::new(found.name, &mut marked), &mut survey)?;
                let io = |source| ImportError::Io { name: found.name.to_owned(), source };
                std::io::copy(&mut marked, &mut std::io::sink()).map_err(io)?;
                Ok(())
            });
            match walked {
                // The second pass meets the same damage, and tells it.
                Err(_) if self.options.keep_partial && sources > 0 => {}
                walked => walked?,
            }
        }
        if sources == 0 {
            return Err(ImportError::Unknown { path: self.named.first().cloned().unwrap_or_default() });
        }
        survey.conclude();
        Ok(Plan { survey, mark: format!("{:016x}", mark.finish()), unknown, sources })
    }

    fn write(
        &self,
        plan: &Plan,
        staging: &Path,
        mut record: ImportRecord,
    ) -> Result<(ImportRecord, Option<ImportError>)> {
        let mut damage = None;
        for path in self.named {
            let walked = walk(path, self.options.limits, self.progress, &mut |found, reader| {
                let Some(format) = self.format_of(found.name, found.head) else { return Ok(()) };
                let number = record.sources.len();
                let stem = match plan.sources {
                    1 => format!("{}-{}", format.kind(), plan.mark),
                    _ => format!("{}-{}-{number:03}", format.kind(), plan.mark),
                };
                let align = self.options.align.iter().find(|(source, _)| found.name.contains(source.as_str()));
                let align = align.map(|(source, by_ns)| (*by_ns, format!("--align {source}")));
                let mut sink =
                    RunSink::new(staging.to_owned(), stem, &self.options.host, found.name, format.kind(), align);
                let read = format.read(&mut Input::new(found.name, reader), &plan.survey, &mut sink);
                record.sources.push(sink.finish()?);
                read
            });
            match walked {
                Err(error) if self.options.keep_partial => damage = Some(error),
                walked => walked?,
            }
        }
        record.notes.clone_from(&plan.survey.notes);
        Ok((record, damage))
    }
}

/// Adds what is read to a mark.
struct Marked<'a> {
    reader: &'a mut dyn Read,
    mark: &'a mut XxHash64,
}

impl Read for Marked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.mark.write(&buffer[..read]);
        Ok(read)
    }
}

/// A directory of our own beside the run, or within it.
fn staging(run: &Path, mark: &str) -> Result<PathBuf> {
    let name = run.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let parent = match run.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let path = parent.join(format!(".{name}.import-{mark}-{}", std::process::id()));
    fs::create_dir_all(parent).map_err(ImportError::io(parent))?;
    // As private as the run: files take after their directory.
    let mode = fs::metadata(run).map_or(0o700, |data| data.mode() & 0o777);
    fs::DirBuilder::new().mode(mode).create(&path).map_err(ImportError::io(&path))?;
    Ok(path)
}

/// Removes a directory that [`staging`] made, with the files that this module makes in it.
fn discard(staging: &Path) {
    let known = |name: &str| name.ends_with(".pfw.gz") || name.ends_with(".import") || name == RUN_FILE;
    for directory in [&staging.join(RECORD_DIR), staging] {
        // What cannot be removed has a name that says what it is.
        let _ = files::remove_known(directory, known);
    }
}

fn publish_new(staging: &Path, run: &Path, named: &[PathBuf], options: &Options, record: &ImportRecord) -> Result<()> {
    record.write(staging)?;
    let began = record.sources.iter().filter(|source| source.events > 0).map(|source| source.first_ns).min();
    let began_ns = began.unwrap_or(0);
    let name = named.first().and_then(|path| path.file_name()).unwrap_or_default().to_string_lossy().into_owned();
    let manifest = RunManifest {
        id: format!("import-{}", record.mark),
        name,
        created: utc::rfc3339(began_ns),
        created_ns: began_ns,
        host: options.host.clone(),
        node: options.host.clone(),
        tool_version: options.tool_version.clone(),
        ..RunManifest::default()
    };
    manifest.create(staging)?;
    fs::rename(staging, run).map_err(ImportError::io(run))
}

fn publish_into(staging: &Path, run: &Path, record: &ImportRecord) -> Result<()> {
    for name in record.sources.iter().flat_map(|source| &source.files) {
        let to = run.join(name);
        fs::rename(staging.join(name), &to).map_err(ImportError::io(&to))?;
    }
    record.write(run)
}
