//! Takes the files of an index apart and seals them again: a forged index has valid checksums.
//!
//! This code is independent of `weftline-index` and follows the documentation of its files (`part.rs` and below), so that it does not repeat a mistake of the reader.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde_json::Value;
use twox_hash::XxHash64;
use weftline_format::hash::path_hash;

/// The last bytes of every file of an index but its catalog.
const MAGIC: [u8; 8] = *b"weftidx2";
/// Length of what is sealed, its sum, the magic.
const SEAL: usize = 24;
/// Digits of the catalog's sum.
const DIGITS: usize = 16;
/// Bytes at each end of a trace file that its mark is made of.
const MARKED: usize = 4096;
/// Nobody here looks into an index that an earlier change made longer.
const MOST: u64 = 64 << 20;

/// The sum of some bytes.
pub fn sum(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}

/// Sealed bytes with what stands behind them.
pub fn seal(bytes: &[u8]) -> Vec<u8> {
    let mut sealed = bytes.to_vec();
    sealed.extend((bytes.len() as u64).to_le_bytes());
    sealed.extend(sum(bytes).to_le_bytes());
    sealed.extend(MAGIC);
    sealed
}

/// A small file as it is; nothing when an earlier change made it something else.
pub fn read(path: &Path) -> Option<Vec<u8>> {
    let data = fs::symlink_metadata(path).ok()?;
    (data.is_file() && data.len() <= MOST).then(|| fs::read(path).ok())?
}

/// What lies before the sealed end of a file, and that.
pub fn opened(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (rest, seal) = bytes.split_last_chunk::<SEAL>()?;
    let length = u64::from_le_bytes(*seal.first_chunk::<8>()?);
    let at = rest.len().checked_sub(usize::try_from(length).ok()?)?;
    (seal[16..] == MAGIC).then(|| rest.split_at(at))
}

/// The catalog of an index directory.
pub fn catalog(path: &Path) -> Option<Value> {
    let text = read(path)?;
    let (text, _) = text.trim_ascii_end().split_last_chunk::<DIGITS>()?;
    serde_json::from_slice(text).ok()
}

/// Writes a catalog with its sum.
pub fn write_catalog(path: &Path, catalog: &Value) -> Option<()> {
    let mut text = serde_json::to_vec(catalog).ok()?;
    text.push(b'\n');
    let line = format!("{:016x}", sum(&text));
    text.extend(line.bytes());
    fs::write(path, text).ok()
}

/// A file of rows, taken apart.
pub struct Rows {
    /// All pages, one behind the other.
    pub pages: Vec<u8>,
    /// What is said of the row groups.
    pub meta: Value,
    /// The chunks of all groups' columns.
    pub chunks: Vec<Chunk>,
}

/// The pages of a column.
pub struct Chunk {
    /// Where they begin.
    pub offset: u64,
    /// The length and the sum of each.
    pub pages: Vec<(u32, u64)>,
}

impl Rows {
    /// Takes a file apart; nothing when it is no file of rows any more.
    pub fn read(path: &Path) -> Option<Rows> {
        let bytes = read(path)?;
        let (pages, mut end) = opened(&bytes)?;
        let mut take = |length: usize| end.split_off(..length);
        let length = u64::from_le_bytes(take(8)?.try_into().ok()?);
        let meta = serde_json::from_slice(take(usize::try_from(length).ok()?)?).ok()?;
        let mut chunks = Vec::new();
        while let Some(offset) = take(8) {
            let offset = u64::from_le_bytes(offset.try_into().ok()?);
            let count = u32::from_le_bytes(take(4)?.try_into().ok()?) as usize;
            let entries = take(count.checked_mul(12)?)?;
            let entry = |entry: &[u8]| {
                let (length, sum) = entry.split_first_chunk::<4>()?;
                Some((u32::from_le_bytes(*length), u64::from_le_bytes(sum.try_into().ok()?)))
            };
            chunks.push(Chunk { offset, pages: entries.chunks_exact(12).map_while(entry).collect() });
        }
        Some(Rows { pages: pages.to_vec(), meta, chunks })
    }

    /// Writes it again, sealed. `hole`: so many zeros that nobody wrote before its end.
    pub fn write(&self, path: &Path, hole: u64) -> Option<()> {
        use std::os::unix::fs::FileExt as _;
        let meta = serde_json::to_vec(&self.meta).ok()?;
        let mut end = (meta.len() as u64).to_le_bytes().to_vec();
        end.extend(meta);
        for chunk in &self.chunks {
            end.extend(chunk.offset.to_le_bytes());
            end.extend((chunk.pages.len() as u32).to_le_bytes());
            for (length, sum) in &chunk.pages {
                end.extend(length.to_le_bytes());
                end.extend(sum.to_le_bytes());
            }
        }
        fs::write(path, &self.pages).ok()?;
        let file = File::options().write(true).open(path).ok()?;
        file.write_all_at(&seal(&end), self.pages.len() as u64 + hole).ok()
    }

    /// Changes the bytes of a page and gives it the sum that they have then. What lies behind it moves, if it has another length.
    pub fn change_page(&mut self, chunk: usize, page: usize, change: impl FnOnce(&mut Vec<u8>)) -> Option<()> {
        let before: u64 = self.chunks[chunk].pages[..page].iter().map(|(length, _)| u64::from(*length)).sum();
        let start = usize::try_from(self.chunks[chunk].offset.checked_add(before)?).ok()?;
        let length = self.chunks[chunk].pages[page].0 as usize;
        let mut bytes = self.pages.get(start..start.checked_add(length)?)?.to_vec();
        change(&mut bytes);
        self.chunks[chunk].pages[page] = (bytes.len() as u32, sum(&bytes));
        let moved = bytes.len() as u64;
        self.pages.splice(start..start + length, bytes);
        for later in &mut self.chunks[chunk + 1..] {
            later.offset = later.offset.wrapping_add(moved).wrapping_sub(length as u64);
        }
        Some(())
    }
}

/// Makes the index of a run one of its trace files as they are now, whatever was done to them: whoever sends a run can do that too.
pub fn accept(run: &Path) {
    let path = run.join(".weft/index/index.json");
    let Some(mut catalog) = catalog(&path) else { return };
    let list = |value: &mut Value, field: &str| match value.get_mut(field) {
        Some(Value::Array(list)) => std::mem::take(list),
        _ => Vec::new(),
    };
    let mut parts = list(&mut catalog, "parts");
    for part in &mut parts {
        let mut sources = list(part, "sources");
        for source in sources.iter_mut().filter(|source| source.is_object()) {
            let file = run.join(source["file"].as_str().unwrap_or_default());
            let Some((data, bytes)) = fs::symlink_metadata(&file).ok().zip(read(&file)) else { continue };
            let nanoseconds = data.mtime().saturating_mul(1_000_000_000).saturating_add(data.mtime_nsec());
            let ends = [&bytes[..bytes.len().min(MARKED)], &bytes[bytes.len().saturating_sub(MARKED)..]];
            let mark = path_hash(&[&ends.concat()[..], &(bytes.len() as u64).to_le_bytes()].concat());
            for (field, value) in [("mtime_ns", nanoseconds.into()), ("inode", data.ino().into())] {
                source[field] = value;
            }
            source["mark"] = mark.into();
            source["size"] = data.len().into();
        }
        if !sources.is_empty() {
            part["sources"] = sources.into();
        }
    }
    if !parts.is_empty() {
        catalog["parts"] = parts.into();
    }
    write_catalog(&path, &catalog);
}
