//! Checksums, and the end of an index's files.
//!
//! Disks rot, and copies may be incomplete. So everything in an index has a checksum: each page (beside its length, in the
//! file's end), the ends of files, the file of strings and the catalog. The checksum is XXH64 rather than XXH3: it is as
//! fast as pages are read (20 GB/s), and parquet links it already, while another feature of that crate would rebuild all of DataFusion.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use twox_hash::XxHash64;
use weftline_format::files;

/// The last bytes of every file of an index.
const MAGIC: [u8; 8] = *b"weftidx2";
/// Length of what is sealed, its sum, the magic.
const SEAL: usize = 24;

/// The sum of some bytes.
pub(crate) fn sum(bytes: &[u8]) -> u64 {
    XxHash64::oneshot(0, bytes)
}

/// What stands behind sealed bytes.
pub(super) fn seal(bytes: &[u8]) -> [u8; SEAL] {
    let mut seal = [0; SEAL];
    seal[..8].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
    seal[8..16].copy_from_slice(&sum(bytes).to_le_bytes());
    seal[16..].copy_from_slice(&MAGIC);
    seal
}

/// The sealed bytes at the end of a file, and where they begin. An error of the kind `InvalidData` says what is wrong with them. Their length is
/// believed as far as the file is there: a hole can be any length, and nobody who builds an index leaves one.
pub(super) fn sealed(file: &File) -> io::Result<(Vec<u8>, u64)> {
    let bad = |why| io::Error::new(io::ErrorKind::InvalidData, why);
    let size = file.metadata()?.len();
    let end = size.checked_sub(SEAL as u64).ok_or_else(|| bad("it is too short"))?;
    if files::data_length(file)? < size {
        return Err(bad("it has a hole"));
    }
    let mut seal = [0; SEAL];
    file.read_exact_at(&mut seal, end)?;
    let word = |at: usize| seal[at..at + 8].iter().rev().fold(0_u64, |word, byte| word << 8 | u64::from(*byte));
    let from = end.checked_sub(word(0)).filter(|_| seal[16..] == MAGIC).ok_or_else(|| bad("its end is missing"))?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact((end - from) as usize)?;
    bytes.resize((end - from) as usize, 0);
    file.read_exact_at(&mut bytes, from)?;
    if sum(&bytes) == word(8) { Ok((bytes, from)) } else { Err(bad("its checksum is wrong")) }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn check(bytes: &[u8], long: u64, expected: Result<&[u8], &str>) {
        let mut file = tempfile::tempfile().expect("a temporary file");
        file.set_len(long).expect("room");
        io::Seek::seek(&mut file, io::SeekFrom::End(0)).expect("a file");
        file.write_all(bytes).expect("room");
        match (sealed(&file), expected) {
            (Ok((found, _)), Ok(expected)) => assert_eq!(found, expected),
            (Err(error), Err(expected)) => {
                assert!(error.to_string().contains(expected), "{error}, not {expected}");
                assert_eq!(error.kind(), io::ErrorKind::InvalidData);
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_what_is_there_is_believed() {
        let whole = [&b"text"[..], &seal(b"text")].concat();
        check(&whole, 0, Ok(b"text"));
        check(&whole, 1 << 20, Ok(b"text"));
        check(&whole[1..], 0, Err("its end is missing"));
        check(b"short", 0, Err("too short"));
        // A terabyte of nothing, said to be sealed: neither reserved nor read.
        let mut claim = seal(b"");
        claim[..8].copy_from_slice(&(1_u64 << 40).to_le_bytes());
        check(&claim, 1 << 40, Err("a hole"));
        check(&whole, 1 << 40, Err("a hole"));
    }
}
