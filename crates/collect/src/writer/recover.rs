//! Recovers a killed collector: its tail becomes the last member of its file.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use weftline_format::files;
use weftline_format::identity::Identity;
use weftline_format::manifest::{RECORD_DIR, SAMPLES_END, State, SupervisorRecord};
use weftline_format::member::{self, Deflater, MAX_TEXT};
use weftline_format::reader::scan_member;

use super::{TAIL_END, append, count_events};
use crate::error::{CollectError, Result};

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Files that were completed.
    pub files: Vec<PathBuf>,
    /// Samples that came out of tails.
    pub samples: u64,
    /// Collectors that are at work.
    pub at_work: usize,
}

/// Completes the files of collectors that died. Tails of running ones, which hold a lock, are not touched.
pub fn recover(run: &Path) -> Result<Recovered> {
    let mut found = Recovered::default();
    // A run of another user is not changed.
    if !files::is_own(run) {
        return Ok(found);
    }
    let entries = match fs::read_dir(run) {
        Ok(entries) => entries,
        Err(error) => return Err(CollectError::io(run, error)),
    };
    let mut tails: Vec<(PathBuf, String)> = entries
        .flatten()
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            let stem = name.strip_prefix('.')?.strip_suffix(TAIL_END)?.to_owned();
            Some((entry.path(), stem))
        })
        .collect();
    tails.sort();
    for (tail, stem) in tails {
        let file = match files::change(&tail) {
            Ok(file) => file,
            // Its writer has just finished.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            Err(error) => return Err(CollectError::io(&tail, error)),
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            found.at_work += 1;
            continue;
        }
        let path = run.join(format!("{stem}{SAMPLES_END}"));
        let samples = complete(&tail, &file, &path)?;
        found.samples += samples;
        if samples > 0 {
            found.files.push(path.clone());
        }
        close_record(&run.join(RECORD_DIR).join(format!("{stem}.json")), run, &path);
    }
    Ok(found)
}

/// Turns one tail into a member, unless that was done before its writer died; samples that it held.
fn complete(tail: &Path, file: &File, path: &Path) -> Result<u64> {
    let mut text = Vec::new();
    // A collector makes a member of far less; a file can claim any length.
    file.take(MAX_TEXT as u64).read_to_end(&mut text).map_err(|error| CollectError::io(tail, error))?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    text.truncate(whole);
    let mut number = None;
    scan_member(&text, &mut |event| {
        if number.is_none() {
            number = Identity::from_event(&event.to_event()).map(|identity| identity.seq);
        }
    });
    let written = if path.exists() { member::cut_tail(path)? } else { member::Tail::default() };
    let mut samples = 0;
    if let Some(number) = number.filter(|number| written.last_seq.is_none_or(|last| last < *number)) {
        samples = count_events(&text);
        let mut sealed = Vec::new();
        member::seal(&text, samples as u32, number, &mut sealed, &mut Deflater::new());
        append(path, written.intact_len, &sealed).map_err(|error| CollectError::io(path, error))?;
    }
    fs::remove_file(tail).map_err(|error| CollectError::io(tail, error))?;
    Ok(samples)
}

/// The dead collector's record says how much there is, and that no more will come. A supervisor's record is left to its own recovery.
fn close_record(record: &Path, run: &Path, path: &Path) {
    let Ok(mut read) = SupervisorRecord::read(record) else { return };
    if !read.only_samples() || read.state == State::Complete {
        return;
    }
    let there = member::inspect_tail(path).unwrap_or_default();
    if let Some(samples) = &mut read.samples {
        samples.samples = there.events;
    }
    read.state = State::Complete;
    // The samples are safe; a record that cannot be replaced says that the collector is still running.
    let _ = read.write(run);
}
