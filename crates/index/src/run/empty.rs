//! Detects input without events before an index is made beside it.

use std::io::Read as _;
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
        (1, []) => match known_by_its_first_bytes(&path) {
            Some(what) => format!("it holds no trace events: {what}"),
            None => "it holds no trace events".to_owned(),
        },
        (1, [(_, why), ..]) => format!("cannot be read: {why}"),
        (count, []) => format!("none of its {count} files holds trace events"),
        (count, [(first, why), ..]) => {
            let (unread, first) = (unread.len(), first.display());
            format!("none of its {count} files holds trace events, and {unread} cannot be read ({first}: {why})")
        }
    };
    IndexError::NoEvents { path, why }
}

/// What people take for a trace that can be read: other compressions, other encodings, profiles of other tools.
const OTHERS: [(&[u8], &str); 7] = [
    (b"\x28\xb5\x2f\xfd", "it is compressed by zstd; unpack it with `unzstd`, or compress it with gzip"),
    (b"\xfd7zXZ\0", "it is compressed by xz; unpack it with `unxz`, or compress it with gzip"),
    (b"BZh", "it is compressed by bzip2; unpack it with `bunzip2`, or compress it with gzip"),
    (b"PK\x03\x04", "it is a ZIP archive; unpack it with `unzip`"),
    (b"\xff\xfe", "it is text in UTF-16; convert it to UTF-8, for example with `iconv -f UTF-16 -t UTF-8`"),
    (b"\xfe\xff", "it is text in UTF-16; convert it to UTF-8, for example with `iconv -f UTF-16 -t UTF-8`"),
    (b"\x7fELF", "it is a program or library; `weft run` traces it"),
];

/// Profiles that are JSON as well; the word that their first bytes hold.
const PROFILES: [(&[u8], &str); 1] = [(
    b"speedscope.app/file-format-schema",
    "it is a profile for speedscope, samples and no events; write the form of Chrome instead (py-spy: `--format chrometrace`)",
)];

/// What a file is that holds no event, if its beginning says so.
fn known_by_its_first_bytes(path: &Path) -> Option<&'static str> {
    let mut begin = Vec::new();
    weftline_format::files::open(path).ok()?.take(4096).read_to_end(&mut begin).ok()?;
    let by_magic = OTHERS.iter().find(|(magic, _)| begin.starts_with(magic));
    let by_word = || PROFILES.iter().find(|(word, _)| begin.windows(word.len()).any(|part| part == *word));
    by_magic.or_else(by_word).map(|(_, what)| *what)
}
