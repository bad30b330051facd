//! From a hidden run directory to the files that a program's user expects.
//!
//! A session records into a hidden run directory of its own, beside the final place of its files. `publish.json` in it states their
//! names and contents, so that the next session or `weft recover` can finish the work after a kill.
//! Publishing may be interrupted anywhere and repeated: a file gets its name by a hard link, which never replaces
//! another file, and its original goes only after that.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use weftline_drain::{RecoverOptions, WhyOpen};
use weftline_dropin::dftracer;
use weftline_dropin::perfflow::{self, Flavour};
use weftline_format::event::Phase;
use weftline_format::files;
use weftline_format::identity::{CATEGORY, Identity};
use weftline_format::manifest::{RECORD_DIR, SupervisorRecord};
use weftline_format::members::{self, Members};
use weftline_format::reader::{scan_member, trace_files};
use weftline_format::text::path_bytes;

use crate::app::app_name;
use crate::error::{Result, SessionError};
use crate::host::Owner;

/// What the name of a hidden run directory ends with.
pub(crate) const HIDDEN_END: &str = ".weft";
/// And what is added while it is removed.
const DONE_END: &str = ".done";
const PUBLICATION: &str = "publish.json";
const LOCK: &str = "publish.lock";

/// `publish.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Publication {
    /// Who began.
    pub owner: Owner,
    /// Its command line, and what it is called: forked children have the same.
    pub command: Vec<String>,
    pub app: String,
    pub style: Style,
}

/// What files are wanted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Style {
    Dftracer {
        /// The last part of the prefix, held as `weftline_format::text` tells.
        base: String,
        compression: bool,
    },
    Perfflow {
        options: perfflow::Options,
        instance_path: String,
        flavour: Flavour,
    },
}

/// What came of a hidden directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// Files that have their names now.
    pub files: Vec<PathBuf>,
    /// Events that were brought from shared memory into files.
    pub events: u64,
    /// Why something is left, if so.
    pub open: Option<WhyOpen>,
    /// What the user should hear.
    pub messages: Vec<String>,
}

/// How to go about it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct How {
    /// See [`RecoverOptions::believe_ended`].
    pub believe_ended: bool,
    /// How long to wait for another process that works on the same directory.
    pub patience: Duration,
}

impl Publication {
    pub(crate) fn write(&self, hidden: &Path) -> Result<()> {
        let path = hidden.join(PUBLICATION);
        let text = serde_json::to_vec_pretty(self).map_err(io::Error::from).map_err(SessionError::io(&path))?;
        files::replace(&path, &text).map_err(SessionError::io(&path))
    }

    /// Nothing when the directory has none: it is being made, or being removed, or something else.
    pub(crate) fn read(hidden: &Path) -> Result<Option<Publication>> {
        let path = hidden.join(PUBLICATION);
        match files::read(&path) {
            Ok(text) => {
                serde_json::from_slice(&text).map(Some).map_err(io::Error::from).map_err(SessionError::io(&path))
            }
            Err(error) if is_missing(&error) => Ok(None),
            Err(error) => Err(SessionError::io(&path)(error)),
        }
    }

    /// What the file of an image is called, if it is the `number`th of its name.
    fn name(&self, image: &Identity, number: u32) -> OsString {
        match &self.style {
            Style::Dftracer { base, compression, .. } => {
                let own = image.cmd == self.command;
                let app = if own { self.app.clone() } else { app_name(&image.cmd, &image.exe, []) };
                let base = OsString::from_vec(path_bytes(base).into_owned());
                dftracer::file_name(&base, &app, image.pid, number, *compression)
            }
            Style::Perfflow { options, instance_path, .. } => {
                options.file_name(instance_path, &image.host, image.pid, number).into()
            }
        }
    }
}

pub(crate) fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Brings what the processes of a hidden directory have recorded into files, gives these their names, and removes the directory when
/// nobody records into it any more.
pub(crate) fn finish_directory(hidden: &Path, how: How) -> Result<Published> {
    let mut published = Published::default();
    if hidden.exists() && !files::is_own(hidden) {
        published.open = Some(WhyOpen::OtherUser);
        return Ok(published);
    }
    let Some(_lock) = lock(hidden, how.patience)? else {
        published.open = hidden.exists().then_some(WhyOpen::Locked);
        return Ok(published);
    };
    // The previous holder of the lock may have finished it.
    let Some(publication) = Publication::read(hidden)? else { return Ok(published) };
    let options = RecoverOptions {
        believe_ended: how.believe_ended,
        wait_for_lock: Some(how.patience),
        ..RecoverOptions::default()
    };
    let report = weftline_drain::recover(hidden, &options)?;
    published.events = report.events;
    published.messages = report.messages;
    published.open = report.open.into_iter().next().map(|open| open.why);
    // Files are made of images that have ended, and only under the lock: all that are there are whole.
    let traces = trace_files(hidden).map_err(|error| SessionError::io(&error.path)(error.source))?;
    for trace in traces.into_iter().filter(|file| file.as_os_str().as_bytes().ends_with(b".pfw.gz")) {
        published.files.extend(publish_file(hidden, &trace, &publication)?);
    }
    if published.open.is_none() {
        published.messages.extend(losses(hidden));
        remove(hidden)?;
    }
    Ok(published)
}

/// The right to work on a hidden directory. It is given back by word: a child that was forked meanwhile has the file open too.
#[derive(Debug)]
pub(crate) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing does the same, but for such children.
        let _ = self.0.unlock();
    }
}

/// Takes that right; nothing when another process has it for too long, or the directory is gone. Whoever makes the
/// directory has it until its recorder has started, so that nobody takes an empty one for one that is done with.
pub(crate) fn lock(hidden: &Path, patience: Duration) -> Result<Option<Lock>> {
    let path = hidden.join(LOCK);
    let deadline = Instant::now() + patience;
    loop {
        let file = match files::change_or_create(&path) {
            Ok(file) => file,
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(SessionError::io(&path)(error)),
        };
        match file.try_lock() {
            // The directory may have been removed, and another one made under its name, since the file was opened.
            Ok(()) if same_file(file.metadata(), fs::metadata(&path)) => return Ok(Some(Lock(file))),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) if Instant::now() >= deadline => return Ok(None),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
            Err(TryLockError::Error(error)) => return Err(SessionError::io(&path)(error)),
        }
    }
}

fn same_file(one: io::Result<fs::Metadata>, other: io::Result<fs::Metadata>) -> bool {
    let identity = |data: fs::Metadata| (data.dev(), data.ino());
    one.map(identity).ok().zip(other.map(identity).ok()).is_some_and(|(one, other)| one == other)
}

/// What was not kept goes with the directory; the user hears of it before.
fn losses(hidden: &Path) -> Vec<String> {
    let (records, _) = SupervisorRecord::read_all(hidden);
    let processes = records.iter().flat_map(|record| &record.processes);
    let lost =
        processes.flat_map(|process| process.drops.iter().map(move |(reason, count)| (process.pid, reason, count)));
    lost.map(|(pid, reason, count)| format!("process {pid}: {count} events are not in its trace: {reason}")).collect()
}

fn remove(hidden: &Path) -> Result<()> {
    let mut done = hidden.as_os_str().to_owned();
    done.push(DONE_END);
    let done = PathBuf::from(done);
    fs::rename(hidden, &done).map_err(SessionError::io(hidden))?;
    // What is not ours stays, in a directory whose name tells that it is done with. Another process that passed by may have removed it.
    match files::remove_known(&done, is_ours) {
        Err(error) if !is_missing(&error) => Err(SessionError::io(&done)(error)),
        _ => Ok(()),
    }
}

/// Whether a name in a hidden directory is one that this program or the drain gives.
fn is_ours(name: &str) -> bool {
    let ends = [".pfw.gz", ".out", ".json", ".live", ".room", ".tmp"];
    [LOCK, RECORD_DIR].contains(&name) || ends.iter().any(|end| name.ends_with(end))
}

/// Hidden directories in `directory` whose names begin with `.<prefix>`, and leftovers of removals, which are removed now.
pub(crate) fn hidden_directories(directory: &Path, prefix: &[u8]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(SessionError::io(directory))?.flatten() {
        let name = entry.file_name();
        let Some(rest) = name.as_bytes().strip_prefix(b".").filter(|rest| rest.starts_with(prefix)) else { continue };
        if rest.ends_with(HIDDEN_END.as_bytes()) {
            // One without is being made at this moment.
            found.extend(Some(entry.path()).filter(|hidden| hidden.join(PUBLICATION).is_file()));
        } else if rest.strip_suffix(DONE_END.as_bytes()).is_some_and(|rest| rest.ends_with(HIDDEN_END.as_bytes())) {
            // Another process may be at it.
            let _ = files::remove_known(&entry.path(), is_ours);
        }
    }
    found.sort();
    Ok(found)
}

/// Publishes one trace file; where it is now, if anything was in it.
fn publish_file(hidden: &Path, trace: &Path, publication: &Publication) -> Result<Option<PathBuf>> {
    let Some(image) = members::identity(trace)? else { return Ok(None) };
    let converted = trace.with_extension("out");
    // A link beside the result means that it was published already, and its maker killed before it could clear up.
    if fs::metadata(&converted).is_ok_and(|data| data.nlink() > 1) {
        clear(&[trace, &converted])?;
        return Ok(None);
    }
    let result = match &publication.style {
        Style::Dftracer { .. } if only_marks(trace)? => None,
        Style::Dftracer { compression: true, .. } => Some(trace),
        Style::Dftracer { compression: false, .. } => {
            write_plain(trace, &converted)?;
            Some(&*converted)
        }
        Style::Perfflow { options, flavour, .. } => {
            let events = perfflow::write(trace, &converted, options, *flavour)?;
            (events > 0).then_some(&*converted)
        }
    };
    let place = match result {
        Some(result) => {
            let directory = hidden.parent().unwrap_or(hidden);
            Some(give_name(result, |number| directory.join(plain(publication.name(&image, number))))?)
        }
        None => None,
    };
    clear(&[trace, &converted])?;
    Ok(place)
}

/// A name of one part, whatever the file that asks for it says: nothing is published elsewhere.
fn plain(name: OsString) -> OsString {
    let bytes: Vec<u8> = name.into_vec().into_iter().map(|byte| if byte == b'/' { b'_' } else { byte }).collect();
    OsString::from_vec(bytes)
}

fn clear(done_with: &[&Path]) -> Result<()> {
    for file in done_with {
        match fs::remove_file(file) {
            Err(error) if !is_missing(&error) => return Err(SessionError::io(file)(error)),
            _ => {}
        }
    }
    Ok(())
}

/// Gives a file the first name that no other file has.
fn give_name(file: &Path, name: impl Fn(u32) -> PathBuf) -> Result<PathBuf> {
    for number in 1.. {
        let candidate = name(number);
        match fs::hard_link(file, &candidate) {
            Ok(()) => return Ok(candidate),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                // Linked before a kill.
                if same_file(fs::metadata(file), fs::metadata(&candidate)) {
                    return Ok(candidate);
                }
            }
            // A file system without links: the name is taken first, then the file put in its place.
            Err(_) => match File::options().write(true).create_new(true).open(&candidate) {
                Ok(_) => {
                    return fs::rename(file, &candidate).map(|()| candidate.clone()).map_err(SessionError::io(file));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(SessionError::io(&candidate)(error)),
            },
        }
    }
    Ok(name(1))
}

/// Whether a file holds only the start and end of its process.
fn only_marks(trace: &Path) -> Result<bool> {
    let mut members = Members::open(trace)?;
    let mut marks_only = true;
    while let Some((_, text)) = members.next_text()? {
        scan_member(&text, &mut |event| {
            let mark = event.cat == CATEGORY && matches!(&*event.name, "start" | "end");
            marks_only &= mark || event.phase == Phase::Metadata;
        });
        if !marks_only {
            break;
        }
    }
    Ok(marks_only)
}

/// Writes a trace as plain text.
fn write_plain(trace: &Path, to: &Path) -> Result<()> {
    let fail = |source| SessionError::Io { path: to.to_owned(), source };
    let mut out = io::BufWriter::new(files::create_anew(to).map_err(fail)?);
    let mut members = Members::open(trace)?;
    while let Some((_, text)) = members.next_text()? {
        out.write_all(&text).map_err(fail)?;
    }
    out.flush().map_err(fail)
}

#[cfg(test)]
mod tests;
