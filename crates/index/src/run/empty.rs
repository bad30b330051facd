//! What is no trace: told before an index is made beside it.

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

/// What to say of files in a place that hold no event, also to those who read them without an index.
pub fn no_events(place: &Path, files: &[PathBuf]) -> IndexError {
    let unread: Vec<_> =
        files.iter().filter_map(|path| Some((path, weftline_format::files::open(path).err()?))).collect();
    let path = if let [one] = files { one.clone() } else { place.to_owned() };
    let why = match (files.len(), unread.as_slice()) {
        (0, _) => "nothing was recorded".to_owned(),
        (1, []) => "no event of a trace is in it".to_owned(),
        (1, [(_, why), ..]) => format!("cannot be read: {why}"),
        (count, []) => format!("no event of a trace is in any of its {count} files"),
        (count, [(first, why), ..]) => {
            let (unread, first) = (unread.len(), first.display());
            format!(
                "no event of a trace is in any of its {count} files, of which {unread} cannot be read ({first}: {why})"
            )
        }
    };
    IndexError::NoEvents { path, why }
}
