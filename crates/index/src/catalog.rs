//! The trace files that an index covers, and whether they are unchanged.
//!
//! `index.json` is the commit point: it is written under a temporary name and renamed, so that a crash or two concurrent builders leave a
//! good index or none. It lists parts and, for each, the trace files in it with their size, time, inode and a fingerprint of their content.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use weftline_format::damage::Damage;
use weftline_format::files;
use weftline_format::hash::path_hash;

use crate::pipeline::FileInfo;
use crate::{IndexError, Result};

/// Version of everything in an index directory; indexes of other versions are rebuilt.
pub const FORMAT: u32 = 6;
pub(crate) const FILE: &str = "index.json";
/// Flaws of a file that are kept in words.
const LISTED: usize = 20;
/// Bytes at each end of a file that its mark is made of.
const MARKED: u64 = 4096;

/// The content of `index.json`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Catalog {
    /// See [`FORMAT`].
    pub format: u32,
    /// The program that wrote it.
    pub tool: String,
    /// The parts, in the order of their files.
    pub parts: Vec<PartEntry>,
}

/// A part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartEntry {
    /// What its files' names begin with.
    pub name: String,
    /// Rows in it.
    pub rows: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// The trace files in it.
    pub sources: Vec<SourceEntry>,
}

/// A trace file, or a part of one that grew.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceEntry {
    /// Its path below the directory of the run.
    pub file: String,
    /// Where this part begins.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub from: u64,
    /// Its size when it was read: where this part ends.
    pub size: u64,
    /// When it was last changed, ns since the epoch.
    pub mtime_ns: i64,
    /// Its inode.
    pub inode: u64,
    /// See [`mark_of`].
    pub mark: u64,
    /// Who wrote it.
    pub dialect: String,
    /// Events in it, metadata not counted.
    pub events: u64,
    /// Lines that say what hashes mean.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub definitions: u64,
    /// Things that were wrong with it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub flaws: u64,
    /// Bytes that could not be used.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_bytes: u64,
    /// The first of those things, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<FlawEntry>,
    /// Why it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

/// Something that was wrong.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlawEntry {
    /// Where.
    pub place: String,
    /// What.
    pub what: String,
    /// Bytes that could not be used.
    pub lost_bytes: u64,
    /// Why, in words.
    pub note: String,
}

/// Nothing in deflate's format stands for more bytes than this, and no event is shorter than a byte.
const MOST_EVENTS: u64 = 1032;

impl PartEntry {
    fn is_sound(&self) -> bool {
        let is_plain = |name: &str| name.len() < 64 && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let bytes = self.sources.iter().fold(0_u64, |sum, source| sum.saturating_add(source.size - source.from));
        self.name.strip_prefix("s-").is_some_and(is_plain)
            && !self.sources.is_empty()
            && self.rows <= bytes.saturating_mul(MOST_EVENTS)
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The file system's facts about a file; zeros if it has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Stat {
    pub size: u64,
    pub mtime_ns: i64,
    pub inode: u64,
}

impl Stat {
    /// A link that leads nowhere, or a directory, is among the files of a run like any other: why it cannot be read is said by whoever tries to.
    pub(crate) fn of(path: &Path) -> Stat {
        let Some(metadata) = fs::metadata(path).ok().filter(fs::Metadata::is_file) else { return Stat::default() };
        let mtime_ns = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
        Stat { size: metadata.len(), mtime_ns, inode: metadata.ino() }
    }
}

/// A mark of a file's first bytes and its last ones before `size`: a file that was replaced by one of the same size at the same time has
/// another.
pub(crate) fn mark_of(path: &Path, size: u64) -> Result<u64> {
    let file = files::open(path).map_err(IndexError::io(path))?;
    let mut bytes = Vec::with_capacity(2 * MARKED as usize + 8);
    for start in [0, size.saturating_sub(MARKED)] {
        let len = MARKED.min(size - start) as usize;
        let mut part = vec![0; len];
        let mut done = 0;
        while done < len {
            match file.read_at(&mut part[done..], start + done as u64).map_err(IndexError::io(path))? {
                0 => break,
                read => done += read,
            }
        }
        bytes.extend_from_slice(&part);
    }
    bytes.extend_from_slice(&size.to_le_bytes());
    Ok(path_hash(&bytes))
}

impl SourceEntry {
    pub(crate) fn new(file: &Path, from: u64, stat: Stat, mark: u64, info: &FileInfo) -> SourceEntry {
        let Damage { flaws, lost, .. } = &info.damage;
        let damage = flaws.iter().take(LISTED).map(|flaw| FlawEntry {
            place: flaw.place.to_string(),
            what: flaw.what.describe().to_owned(),
            lost_bytes: flaw.lost,
            note: flaw.note.clone(),
        });
        SourceEntry {
            file: file.to_string_lossy().into_owned(),
            from,
            size: stat.size,
            mtime_ns: stat.mtime_ns,
            inode: stat.inode,
            mark,
            dialect: info.dialect.to_string(),
            events: info.events,
            definitions: info.definitions,
            flaws: info.damage.len(),
            lost_bytes: *lost,
            damage: damage.collect(),
            unreadable: info.unreadable.clone(),
        }
    }

    /// Whether the file is still what it was.
    pub(crate) fn is_current(&self, path: &Path, now: Stat) -> bool {
        let is_same = (self.size, self.mtime_ns, self.inode) == (now.size, now.mtime_ns, now.inode);
        // What could not be read then and cannot be read now is still the same.
        is_same && mark_of(path, self.size).map_or(self.unreadable.is_some(), |mark| mark == self.mark)
    }

    /// Whether the file is what it was and then some.
    pub(crate) fn has_grown(&self, path: &Path, now: Stat) -> bool {
        self.inode == now.inode
            && now.size > self.size
            && self.flaws == 0
            && self.unreadable.is_none()
            && mark_of(path, self.size).is_ok_and(|mark| mark == self.mark)
    }
}

/// Digits of the sum that is the catalog's second line.
const SUM: usize = 16;

/// The sum of a catalog's first line, in hexadecimal digits.
fn sum_line(text: &[u8]) -> [u8; SUM] {
    let sum = crate::part::sum(text);
    std::array::from_fn(|place| b"0123456789abcdef"[(sum >> (60 - 4 * place)) as usize & 15])
}

impl Catalog {
    /// Reads the catalog of an index directory; nothing when there is none that can be used.
    pub fn read(directory: &Path) -> Option<Catalog> {
        let text = files::read(&directory.join(FILE)).ok()?;
        let (text, sum) = text.trim_ascii_end().split_last_chunk::<SUM>()?;
        if sum_line(text) != *sum {
            return None;
        }
        let catalog: Catalog = serde_json::from_slice(text).ok()?;
        (catalog.format == FORMAT && catalog.is_sound()).then_some(catalog)
    }

    /// Whether a builder can have written it. Names are those of files here: nothing is read elsewhere because a catalog says so. Each trace file is
    /// in it from its first byte to its last, once, and a part has no more rows than its files could have events.
    fn is_sound(&self) -> bool {
        let mut stretches: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
        for source in self.sources() {
            stretches.entry(&source.file).or_default().push((source.from, source.size));
        }
        let whole = stretches.values_mut().all(|stretches| {
            stretches.sort_unstable();
            let mut end = 0;
            stretches.iter().all(|(from, to)| *from == std::mem::replace(&mut end, *to) && from <= to)
        });
        let mut names: Vec<&str> = self.parts.iter().map(|part| part.name.as_str()).collect();
        names.sort_unstable();
        whole && names.is_sorted_by(|a, b| a < b) && self.parts.iter().all(PartEntry::is_sound)
    }

    /// Puts the catalog in its place, at once.
    pub(crate) fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(FILE);
        let (beside, mut file) = files::create_beside(&path).map_err(IndexError::io(directory))?;
        let mut text = serde_json::to_vec(self).map_err(|error| IndexError::io(&path)(error.into()))?;
        text.push(b'\n');
        let written = file.write_all(&text).and_then(|()| file.write_all(&sum_line(&text)));
        let renamed = written.and_then(|()| file.sync_data()).and_then(|()| fs::rename(&beside, &path));
        renamed.inspect_err(|_| drop(fs::remove_file(&beside))).map_err(IndexError::io(&path))
    }

    /// Takes a catalog away; nothing happens where there is none.
    pub(crate) fn remove(directory: &Path) {
        let _ = fs::remove_file(directory.join(FILE));
    }

    /// All trace files in it.
    pub fn sources(&self) -> impl Iterator<Item = &SourceEntry> {
        self.parts.iter().flat_map(|part| &part.sources)
    }

    /// Rows of all parts.
    pub fn rows(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.rows))
    }

    /// Bytes of all parts.
    pub fn bytes(&self) -> u64 {
        self.parts.iter().fold(0, |sum, part| sum.saturating_add(part.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(file: &str, from: u64, size: u64) -> SourceEntry {
        SourceEntry { file: file.to_owned(), from, size, ..SourceEntry::default() }
    }

    fn good() -> Catalog {
        let part = |name: &str, sources| PartEntry { name: name.to_owned(), rows: 5, bytes: 1, sources };
        let parts = vec![
            part("s-abcDEF12", vec![source("a", 0, 10), source("b", 0, 7), source("empty", 0, 0)]),
            part("s-abcDEF13", vec![source("a", 10, 30)]),
        ];
        Catalog { format: FORMAT, tool: String::new(), parts }
    }

    /// A catalog with a right sum is believed only if a builder can have written it.
    #[test]
    fn forged_catalogs_are_refused() {
        type Forge = fn(&mut Catalog);
        let cases: [(bool, Forge); 14] = [
            (true, |_| {}),
            (true, |catalog| catalog.parts.clear()),
            (false, |catalog| catalog.format += 1),
            (false, |catalog| catalog.parts[0].name = "../../x".to_owned()),
            (false, |catalog| catalog.parts[0].name = "s-\0".to_owned()),
            (false, |catalog| catalog.parts[0].name = format!("s-{}", "x".repeat(300))),
            // Counted twice.
            (false, |catalog| catalog.parts[1].name = "s-abcDEF12".to_owned()),
            (false, |catalog| catalog.parts[1].sources[0].file = "b".to_owned()),
            (false, |catalog| catalog.parts.push(catalog.parts[0].clone())),
            (false, |catalog| catalog.parts[1].sources[0].from = 11),
            (false, |catalog| catalog.parts[1].sources[0].size = 9),
            (false, |catalog| catalog.parts[1].sources.clear()),
            (false, |catalog| catalog.parts[0].rows = u64::MAX),
            (false, |catalog| catalog.parts[0].rows = 1 << 20),
        ];
        let place = tempfile::tempdir().expect("a directory");
        for (case, (believed, forge)) in cases.into_iter().enumerate() {
            let mut catalog = good();
            forge(&mut catalog);
            catalog.write(place.path()).expect("written");
            assert_eq!(Catalog::read(place.path()), believed.then_some(catalog), "case {case}");
        }
    }
}
