//! The libraries that an ELF file needs, and where the loader will find them.
//!
//! Only what a compiler and its plugin have to agree on: 64-bit little-endian files, `DT_NEEDED`, `DT_RUNPATH` and `DT_RPATH`.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

const MAGIC: &[u8] = b"\x7fELF\x02\x01";
const PT_LOAD: u32 = 1;
const PT_DYNAMIC: u32 = 2;
const DT_NEEDED: u64 = 1;
const DT_STRTAB: u64 = 5;
const DT_STRSZ: u64 = 10;
const DT_RPATH: u64 = 15;
const DT_RUNPATH: u64 = 29;
/// No table of a sound file is larger; a damaged one must not take all memory.
const LARGEST_TABLE: u64 = 64 << 20;

/// Where the loader looks after all else: Debian's directories of the machine's architecture, those of others.
const DIRECTORIES: [&str; 8] = [
    "/lib/x86_64-linux-gnu",
    "/usr/lib/x86_64-linux-gnu",
    "/lib/aarch64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/lib64",
    "/usr/lib64",
    "/lib",
    "/usr/lib",
];

/// What a file wants of the loader.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Names of libraries, in order.
    pub libraries: Vec<String>,
    /// Directories to look in first, with `$ORIGIN` replaced.
    directories: Vec<PathBuf>,
}

impl Needs {
    /// Reads them; `None` for a file that is no 64-bit ELF file, such as a script.
    pub fn of(path: &Path) -> io::Result<Option<Needs>> {
        let file = File::open(path)?;
        let mut head = [0u8; 64];
        match file.read_exact_at(&mut head, 0) {
            Ok(()) if head.starts_with(MAGIC) => {}
            Ok(()) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            Err(error) => return Err(error),
        }
        let origin = path.parent().unwrap_or(Path::new("/"));
        read(&file, &head, origin).map(|needs| Some(needs.unwrap_or_default()))
    }

    /// The file that the loader will take for a library.
    pub fn file_of(&self, library: &str) -> Option<PathBuf> {
        let variable = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        let given: Vec<PathBuf> = std::env::split_paths(&variable).filter(|path| path.is_absolute()).collect();
        let places = self.directories.iter().chain(&given).cloned().chain(DIRECTORIES.iter().map(PathBuf::from));
        places.map(|directory| directory.join(library)).find_map(|path| path.canonicalize().ok())
    }
}

fn number<const SIZE: usize>(bytes: &[u8], at: usize) -> Option<[u8; SIZE]> {
    bytes.get(at..at + SIZE)?.try_into().ok()
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    number(bytes, at).map(u64::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    number(bytes, at).map(u32::from_le_bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u64> {
    number(bytes, at).map(u16::from_le_bytes).map(u64::from)
}

/// A piece of the file.
fn piece(file: &File, at: u64, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; size.min(LARGEST_TABLE) as usize];
    file.read_exact_at(&mut bytes, at)?;
    Ok(bytes)
}

/// `None` where the file has no dynamic section: it is linked statically.
fn read(file: &File, head: &[u8], origin: &Path) -> io::Result<Option<Needs>> {
    let (Some(table), Some(size), Some(count)) = (u64_at(head, 32), u16_at(head, 54), u16_at(head, 56)) else {
        return Ok(None);
    };
    let programs = piece(file, table, size * count)?;
    let (mut loads, mut dynamic) = (Vec::new(), None);
    for entry in programs.chunks(size.max(1) as usize) {
        let kind = u32_at(entry, 0).unwrap_or(0);
        let (Some(offset), Some(address), Some(bytes)) = (u64_at(entry, 8), u64_at(entry, 16), u64_at(entry, 32))
        else {
            continue;
        };
        match kind {
            PT_LOAD => loads.push((address, bytes, offset)),
            PT_DYNAMIC => dynamic = Some((offset, bytes)),
            _ => {}
        }
    }
    let Some((at, bytes)) = dynamic else { return Ok(None) };
    let entries = piece(file, at, bytes)?;
    let entries: Vec<(u64, u64)> =
        entries.chunks_exact(16).filter_map(|entry| Some((u64_at(entry, 0)?, u64_at(entry, 8)?))).collect();
    let value = |tag: u64| entries.iter().find(|(found, _)| *found == tag).map(|(_, value)| *value);
    let (Some(address), Some(length)) = (value(DT_STRTAB), value(DT_STRSZ)) else { return Ok(None) };
    let inside = |(start, size, _): &&(u64, u64, u64)| address.checked_sub(*start).is_some_and(|into| into < *size);
    let Some((start, _, offset)) = loads.iter().find(inside) else { return Ok(None) };
    // A sum that no file can have; reading there fails, as it does anywhere behind the end.
    let strings = piece(file, (address - start).saturating_add(*offset), length)?;
    let text = |at: u64| -> Option<String> {
        let bytes = strings.get(usize::try_from(at).ok()?..)?;
        Some(String::from_utf8_lossy(bytes.split(|byte| *byte == 0).next()?).into_owned())
    };
    let all = |tag: u64| entries.iter().filter(move |(found, _)| *found == tag).filter_map(|(_, at)| text(*at));
    let shown = origin.to_string_lossy();
    let directories = all(DT_RPATH).chain(all(DT_RUNPATH)).flat_map(|path| {
        let path = path.replace("${ORIGIN}", &shown).replace("$ORIGIN", &shown);
        path.split(':').filter(|part| !part.is_empty()).map(PathBuf::from).collect::<Vec<_>>()
    });
    Ok(Some(Needs { libraries: all(DT_NEEDED).collect(), directories: directories.collect() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_needs_the_c_library() {
        let own = std::env::current_exe().expect("a path");
        let needs = Needs::of(&own).expect("it can be read").expect("an ELF file");
        assert!(needs.libraries.iter().any(|name| name == "libc.so.6"), "{needs:?}");
        let library = needs.file_of("libc.so.6").expect("the loader has found it");
        assert!(library.is_absolute() && library.is_file());
        assert_eq!(needs.file_of("libno-such-thing.so.1"), None);
    }

    #[test]
    fn what_is_no_program_needs_nothing() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (name, content) in [("empty", &b""[..]), ("script", b"#!/bin/sh\nexec true\n"), ("long", &[b'x'; 4096])] {
            let path = directory.path().join(name);
            std::fs::write(&path, content).expect("written");
            assert_eq!(Needs::of(&path).expect("it can be read"), None, "{name}");
        }
        // The beginning of an ELF file with nothing behind it.
        let path = directory.path().join("cut");
        let own = std::fs::read(std::env::current_exe().expect("a path")).expect("this test");
        std::fs::write(&path, &own[..64]).expect("written");
        assert!(Needs::of(&path).is_err());
    }
}
