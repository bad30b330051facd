//! What an index covers, and whether that is still true.
//!
//! `index.json` is the commit point: it is written beside its final name and renamed, so that a crash or two builders at once leave a
//! good index or none. It lists segments and, for each, the trace files in it with their size, time, inode and a mark of their content.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use serde::{Deserialize, Serialize};
use weftline_format::damage::Damage;
use weftline_format::files;
use weftline_format::hash::path_hash;

use crate::pipeline::FileFacts;
use crate::{IndexError, Result};

/// Version of everything in an index directory; others are built anew.
pub const FORMAT: u32 = 1;
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
    /// The segments, in the order of their files.
    pub segments: Vec<SegmentEntry>,
}

/// A segment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentEntry {
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

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What the system says of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stat {
    pub size: u64,
    pub mtime_ns: i64,
    pub inode: u64,
}

impl Stat {
    pub(crate) fn of(path: &Path) -> Result<Stat> {
        let metadata = fs::metadata(path).map_err(IndexError::io(path))?;
        let mtime_ns = metadata.mtime().saturating_mul(1_000_000_000).saturating_add(metadata.mtime_nsec());
        Ok(Stat { size: metadata.len(), mtime_ns, inode: metadata.ino() })
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
    pub(crate) fn new(file: &Path, from: u64, stat: Stat, mark: u64, facts: &FileFacts) -> SourceEntry {
        let Damage { flaws, lost, .. } = &facts.damage;
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
            dialect: facts.dialect.to_string(),
            events: facts.events,
            definitions: facts.definitions,
            flaws: facts.damage.len(),
            lost_bytes: *lost,
            damage: damage.collect(),
            unreadable: facts.unreadable.clone(),
        }
    }

    /// Whether the file is still what it was.
    pub(crate) fn is_current(&self, path: &Path, now: Stat) -> bool {
        (self.size, self.mtime_ns, self.inode) == (now.size, now.mtime_ns, now.inode)
            && mark_of(path, self.size).is_ok_and(|mark| mark == self.mark)
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

impl Catalog {
    /// Reads the catalog of an index directory; nothing when there is none that can be used.
    pub fn read(directory: &Path) -> Option<Catalog> {
        let text = files::read(&directory.join(FILE)).ok()?;
        let catalog: Catalog = serde_json::from_slice(&text).ok()?;
        // A name is that of a file here: nothing is read elsewhere because a catalog says so.
        let is_plain = |segment: &SegmentEntry| !segment.name.contains('/');
        (catalog.format == FORMAT && catalog.segments.iter().all(is_plain)).then_some(catalog)
    }

    /// Puts the catalog in its place, at once.
    pub(crate) fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(FILE);
        let mut file = tempfile::NamedTempFile::new_in(directory).map_err(IndexError::io(directory))?;
        let written = serde_json::to_writer(&mut file, self).map_err(std::io::Error::from);
        written.and_then(|()| file.flush()).and_then(|()| file.as_file().sync_data()).map_err(IndexError::io(&path))?;
        file.persist(&path).map_err(|error| IndexError::Io { path, source: error.error })?;
        Ok(())
    }

    /// Takes a catalog away; nothing happens where there is none.
    pub(crate) fn remove(directory: &Path) {
        let _ = fs::remove_file(directory.join(FILE));
    }

    /// All trace files in it.
    pub fn sources(&self) -> impl Iterator<Item = &SourceEntry> {
        self.segments.iter().flat_map(|segment| &segment.sources)
    }

    /// Rows of all segments.
    pub fn rows(&self) -> u64 {
        self.segments.iter().map(|segment| segment.rows).sum()
    }

    /// Bytes of all segments.
    pub fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }
}
