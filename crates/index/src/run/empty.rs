//! Detects input without events before an index is made beside it.

use std::path::{Path, PathBuf};

use weftline_format::reader;

use crate::input::{TraceSet, is_run};
use crate::{IndexError, Result};

/// Refuses parts of which no file holds an event, unless all of them are runs: one that recorded nothing is still a run.
pub(super) fn refuse(sets: &[TraceSet]) -> Result<()> {
    let mut files = sets.iter().flat_map(|set| set.files.iter().map(|file| set.path(file)));
    match files.any(|path| reader::holds_events(&path).unwrap_or(false)) || sets.iter().all(|set| is_run(&set.base)) {
        true => Ok(()),
        false => Err(error(sets)),
    }
}

/// What there is in place of events.
pub(super) fn error(sets: &[TraceSet]) -> IndexError {
    let files: Vec<_> = sets.iter().flat_map(|set| set.files.iter().map(|file| set.path(file))).collect();
    let place = sets.first().map(|set| set.base.clone()).unwrap_or_default();
    no_events(&place, &files)
}

/// The message for files without events, also without an index.
pub fn no_events(place: &Path, files: &[PathBuf]) -> IndexError {
    let unread: Vec<_> =
        files.iter().filter_map(|path| Some((path, weftline_format::files::open(path).err()?))).collect();
    let path = if let [one] = files { one.clone() } else { place.to_owned() };
    let why = match (files.len(), unread.as_slice()) {
        (0, _) => "nothing was recorded".to_owned(),
        (1, []) => "it holds no trace events".to_owned(),
        (1, [(_, why), ..]) => format!("cannot be read: {why}"),
        (count, []) => format!("none of its {count} files holds trace events"),
        (count, [(first, why), ..]) => {
            let (unread, first) = (unread.len(), first.display());
            format!("none of its {count} files holds trace events, and {unread} cannot be read ({first}: {why})")
        }
    };
    IndexError::NoEvents { path, why }
}
