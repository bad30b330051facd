//! Changes to an index with valid checksums, which a reader accepts at first.

use std::io::Write as _;
use std::path::Path;

use super::{json, number, words};
use crate::hostile::index::{self, Rows};
use crate::hostile::sandbox::Sandbox;
use crate::random::Random;

/// Fields of a page's head: name, place, length.
const FIELDS: [(&str, usize, usize); 5] =
    [("flags", 0, 1), ("planes", 1, 1), ("count", 2, 4), ("smallest", 6, 8), ("start", 14, 8)];
/// Where a page's body begins that has no first number.
const HEAD: usize = 14;
/// The flag of a body that is packed by zstd.
const PACKED: u8 = 4;
/// Text that a bomb stands for: more than a verb may take.
const BOMB: usize = 2 << 30;

/// Changes a catalog.
pub(super) fn catalog(random: &mut Random, sandbox: &Sandbox, path: &Path) -> Option<String> {
    let mut value = index::catalog(path)?;
    let what = json::change_value(random, sandbox, &mut value);
    index::write_catalog(path, &value)?;
    Some(format!("{what}, sealed"))
}

/// Changes a file of rows.
pub(super) fn rows(random: &mut Random, sandbox: &Sandbox, path: &Path) -> Option<String> {
    let mut rows = Rows::read(path)?;
    let with_pages: Vec<usize> = (0..rows.chunks.len()).filter(|place| !rows.chunks[*place].pages.is_empty()).collect();
    let mut hole = 0;
    let what = match random.below(10) {
        0..3 => json::change_value(random, sandbox, &mut rows.meta),
        3 if !rows.chunks.is_empty() => {
            let place = random.below(rows.chunks.len() as u64) as usize;
            chunk(random, &mut rows, place)
        }
        4 => {
            hole = 1 << 40;
            "a terabyte before its end".to_owned()
        }
        _ if with_pages.is_empty() => return None,
        _ => {
            let place = *random.one_of(&with_pages);
            let page = random.below(rows.chunks[place].pages.len() as u64) as usize;
            let mut what = String::new();
            rows.change_page(place, page, |bytes| what = change_page(random, bytes))?;
            format!("page {page} of chunk {place}: {what}")
        }
    };
    rows.write(path, hole)?;
    Some(format!("{what}, sealed"))
}

fn chunk(random: &mut Random, rows: &mut Rows, place: usize) -> String {
    let chunk = &mut rows.chunks[place];
    let pages = chunk.pages.len();
    match (random.below(4), chunk.pages.first_mut()) {
        (0, Some(page)) => {
            page.0 = words::other_than(random, Some(page.0.into()), 4) as u32;
            format!("the first page of chunk {place} has {} bytes", page.0)
        }
        (1, Some(page)) => {
            let copies = 1 << random.below(16);
            let page = *page;
            chunk.pages.extend(std::iter::repeat_n(page, copies));
            format!("chunk {place} has {copies} pages more")
        }
        (2, _) => {
            chunk.pages.clear();
            format!("chunk {place} has none of its {pages} pages")
        }
        _ => {
            chunk.offset = words::other_than(random, Some(chunk.offset), 8);
            format!("chunk {place} begins at {:#x}", chunk.offset)
        }
    }
}

fn change_page(random: &mut Random, bytes: &mut Vec<u8>) -> String {
    match random.below(8) {
        0..5 => {
            let (name, at, size) = *random.one_of(&FIELDS);
            let Some(field) = bytes.get_mut(at..at + size) else { return "too short".to_owned() };
            let before = field.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            let value = words::other_than(random, Some(before), size);
            field.copy_from_slice(&value.to_le_bytes()[..size]);
            format!("{name} from {before:#x} to {value:#x}")
        }
        5 => {
            let at = random.below(bytes.len().max(1) as u64) as usize;
            bytes.truncate(at);
            format!("cut to {at} bytes")
        }
        6 => {
            let flips = 1 + random.below(16);
            for _ in 0..flips {
                let at = random.below(bytes.len().max(1) as u64) as usize;
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << random.below(8);
                }
            }
            format!("{flips} bits flipped")
        }
        _ => {
            let count = *random.one_of(&[BOMB as u32 / 4, u32::MAX, 1 << 24]);
            bytes.resize(HEAD, 0);
            (bytes[0], bytes[1]) = (PACKED, 0);
            bytes[2..6].copy_from_slice(&count.to_le_bytes());
            bytes[6..14].copy_from_slice(&u64::from(count).to_le_bytes());
            bytes.extend(bomb());
            format!("a text of {count} bytes")
        }
    }
}

/// Changes a file of strings.
pub(super) fn strings(random: &mut Random, path: &Path) -> Option<String> {
    let bytes = index::read(path)?;
    let (_, packed) = index::opened(&bytes)?;
    let mut text = zstd::bulk::decompress(packed, 64 << 20).ok()?;
    let at = random.below(text.len().max(1) as u64) as usize;
    let (what, packed) = match random.below(6) {
        0 => ("a bomb".to_owned(), bomb().to_vec()),
        1 => {
            text.truncate(at);
            (format!("cut to {at}"), pack(&text)?)
        }
        // A string's table and length, of whatever begins here.
        2 => {
            let length = number(random) as u32;
            let mut string = vec![random.below(8) as u8];
            string.extend(length.to_le_bytes());
            text.splice(at..at, string);
            (format!("a string of {length} bytes at {at}"), pack(&text)?)
        }
        3 => {
            let copies = 1 << random.below(16);
            for copy in 0..copies {
                let string = format!("{copy}");
                text.push(random.below(3) as u8);
                text.extend((string.len() as u32).to_le_bytes());
                text.extend(string.bytes());
            }
            (format!("{copies} strings more"), pack(&text)?)
        }
        4 => {
            text.clear();
            ("none".to_owned(), pack(&text)?)
        }
        _ => {
            if let Some(byte) = text.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
            (format!("a bit of {at} flipped"), pack(&text)?)
        }
    };
    std::fs::write(path, index::seal(&packed)).ok()?;
    Some(format!("{what}, sealed"))
}

fn pack(text: &[u8]) -> Option<Vec<u8>> {
    zstd::bulk::compress(text, 1).ok()
}

/// Some hundred kilobytes of zstd that stand for [`BOMB`] bytes: one string without end, if it is read as strings.
fn bomb() -> &'static [u8] {
    static PACKED_BOMB: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    PACKED_BOMB.get_or_init(|| {
        let mut packed = zstd::Encoder::new(Vec::new(), 1).expect("zstd");
        packed.write_all(&[0]).and_then(|()| packed.write_all(&(BOMB as u32).to_le_bytes())).expect("memory");
        let block = vec![b'x'; 1 << 20];
        for _ in 0..BOMB >> 20 {
            packed.write_all(&block).expect("memory");
        }
        packed.finish().expect("memory")
    })
}
