//! The strings of a part: names, categories and keys of files in the order of their ids, and the strings of hashes.
//!
//! Each is its table (one byte), its length (4) and its bytes; a definition is followed by the length and the bytes of its value. All of it is
//! compressed by zstd and sealed. Strings that compress better than [`bounds::most_unpacked`] allows stay uncompressed: they begin with a table, not with zstd's magic.

use std::io::{self, Read as _, Write as _};
use std::path::Path;

use weftline_format::files;

use super::{bounds, seal};
use crate::dictionary::DefinitionKind;
use crate::pipeline::Tables;

/// Which table a string belongs to. From `DEFINED` on: definitions, by their kind.
const NAMES: u8 = 0;
const CATS: u8 = 1;
const FILES: u8 = 2;
const DEFINED: u8 = 3;
const KINDS: [DefinitionKind; 3] = [DefinitionKind::Path, DefinitionKind::Host, DefinitionKind::Text];
/// So much may be packed in any number of bytes.
const FREE: usize = 64 << 20;
/// The first bytes of everything that zstd packs.
const ZSTD: [u8; 4] = 0xfd2f_b528_u32.to_le_bytes();
/// A window of zstd that is larger than any level's that we write (2^19 at level 1) would be reserved at once.
const WINDOW_LOG: u32 = 23;

/// Writes the strings; how many bytes.
pub(super) fn write(path: &Path, tables: &Tables) -> io::Result<u64> {
    let mut packed = zstd::Encoder::new(Vec::new(), 1)?;
    let length = encode(tables, &mut packed)?;
    let mut packed = packed.finish()?;
    if length > bounds::most_unpacked(packed.len(), FREE) {
        packed.clear();
        encode(tables, &mut packed)?;
    }
    let seal = seal::seal(&packed);
    let mut file = files::create(path)?;
    file.write_all(&packed)?;
    file.write_all(&seal)?;
    file.sync_data()?;
    Ok((packed.len() + seal.len()) as u64)
}

/// Writes all strings; how many bytes.
fn encode(tables: &Tables, out: &mut impl io::Write) -> io::Result<usize> {
    let mut length = 0;
    let mut put = |table: Option<u8>, text: &str| {
        length += table.as_slice().len() + 4 + text.len();
        out.write_all(table.as_slice())?;
        out.write_all(&(text.len() as u32).to_le_bytes())?;
        out.write_all(text.as_bytes())
    };
    for (table, strings) in [(NAMES, &tables.names), (CATS, &tables.cats)] {
        strings.iter().try_for_each(|text| put(Some(table), text))?;
    }
    tables.file_keys().try_for_each(|key| put(Some(FILES), &key))?;
    for (kind, hash) in &tables.defined {
        if let Some(meaning) = tables.definition(*kind, hash) {
            put(Some(DEFINED + *kind as u8), hash)?;
            put(None, meaning)?;
        }
    }
    Ok(length)
}

/// Reads them. An error of the kind `InvalidData` says what is wrong with the file.
pub(super) fn read(path: &Path) -> io::Result<Tables> {
    let bad = |why: &'static str| io::Error::new(io::ErrorKind::InvalidData, why);
    let (packed, _) = seal::sealed(&files::open(path)?)?;
    let text = if packed.starts_with(&ZSTD) { unpacked(&packed)? } else { packed };
    let mut tables = Tables::default();
    let mut rest = &text[..];
    while let Some(table) = rest.split_off_first() {
        let string = next(&mut rest).ok_or_else(|| bad("a string is truncated"))?;
        match table {
            &NAMES => drop(tables.names.intern(string)),
            &CATS => drop(tables.cats.intern(string)),
            // Several keys may have become the same, and keep their numbers.
            &FILES => tables.files.push(string),
            defined => {
                let kind = KINDS.get(usize::from(defined - DEFINED)).ok_or_else(|| bad("an unknown table"))?;
                let meaning = next(&mut rest).ok_or_else(|| bad("a definition is truncated"))?;
                tables.define(*kind, string.to_owned(), meaning.to_owned());
            }
        }
    }
    Ok(tables)
}

fn unpacked(packed: &[u8]) -> io::Result<Vec<u8>> {
    let bad = |error| io::Error::new(io::ErrorKind::InvalidData, error);
    let most = bounds::most_unpacked(packed.len(), FREE);
    let mut text = Vec::new();
    let mut decoder = zstd::Decoder::with_buffer(packed)?;
    decoder.window_log_max(WINDOW_LOG)?;
    decoder.take(most as u64 + 1).read_to_end(&mut text).map_err(bad)?;
    if text.len() > most {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "its strings are longer than such a file can hold"));
    }
    Ok(text)
}

fn next<'t>(rest: &mut &'t [u8]) -> Option<&'t str> {
    let (len, behind) = rest.split_first_chunk::<4>()?;
    let (text, behind) = behind.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    *rest = behind;
    std::str::from_utf8(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: &Path, packed: &[u8]) {
        let _ = std::fs::remove_file(path);
        std::fs::write(path, [packed, &seal::seal(packed)].concat()).expect("written");
    }

    /// Strings of any length are read as they were written; what is packed too well is not packed.
    #[test]
    fn strings_come_back() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("x.strings");
        for (count, long) in [(0, 0), (1000, 10), (3, 30 << 20)] {
            let mut tables = Tables::default();
            for number in 0..count {
                tables.names.intern(&format!("{number}{}", "x".repeat(long)));
            }
            tables.define(DefinitionKind::Host, "h".to_owned(), "node".to_owned());
            let _ = std::fs::remove_file(&path);
            let bytes = write(&path, &tables).expect("written");
            assert_eq!(bytes > 64 << 20, long > 1 << 20, "{bytes} bytes");
            let found = read(&path).expect("read");
            assert!(found.names.iter().eq(tables.names.iter()));
            assert_eq!(found.definition(DefinitionKind::Host, "h"), Some("node"));
        }
    }

    /// Some kilobytes that stand for gigabytes, with a right sum; and a window of 128 MiB.
    #[test]
    fn bombs_are_refused() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("x.strings");
        let mut bomb = zstd::Encoder::new(Vec::new(), 1).expect("zstd");
        let block = vec![0; 1 << 20];
        for _ in 0..200 {
            bomb.write_all(&block).expect("packed");
        }
        put(&path, &bomb.finish().expect("packed"));
        let error = read(&path).map(drop).expect_err("a bomb");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains("longer than"), "{error}");
        let mut wide = zstd::Encoder::new(Vec::new(), 1).expect("zstd");
        wide.window_log(27).expect("set");
        wide.write_all(&block).expect("packed");
        put(&path, &wide.finish().expect("packed"));
        let error = read(&path).map(drop).expect_err("a window");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{error}");
    }
}
