//! Folders, archives and packed files → inputs, with limits: whatever is read here may be made to hurt.
//!
//! What is packed is known by its first bytes, not by its name. Archives are read as streams; nothing is ever written with a name that
//! an archive gives, so `../` and links in it lead nowhere. Symlinks within a folder are not followed.

use std::cell::Cell;
use std::fs;
use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use weftline_format::progress::Progress;

use crate::input::HEAD;
use crate::{ImportError, Result};

/// What an import unpacks at most.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Bytes of all files in archives and of packed files.
    pub bytes: u64,
    /// Files and directories, in archives and folders.
    pub entries: u64,
    /// Archives within archives.
    pub depth: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 64 << 30, entries: 1_000_000, depth: 2 }
    }
}

/// A file that was found.
#[derive(Debug)]
pub struct Found<'a> {
    /// Its path, with the endings of packed files; within an archive the path there behind a `!`.
    pub name: &'a str,
    /// Its first bytes, unpacked.
    pub head: &'a [u8],
}

/// What is done with each file. The reader gives all of it; it need not be read to its end.
pub type Each<'a> = dyn FnMut(&Found<'_>, &mut dyn Read) -> Result<()> + 'a;

/// Goes through a file or folder. `progress` is told of the bytes of files as they are on the disk.
pub fn walk(path: &Path, limits: Limits, progress: &dyn Progress, each: &mut Each<'_>) -> Result<()> {
    let bytes = Rc::new(Cell::new(limits.bytes));
    let mut walker = Walker { bytes, entries: limits.entries, limits, progress, each };
    let data = fs::metadata(path).map_err(ImportError::io(path))?;
    if data.is_dir() { walker.directory(path) } else { walker.file(path) }
}

/// Bytes of a file, or of all files of a folder, as they are on the disk. What cannot be looked at has none.
pub fn size(path: &Path) -> u64 {
    let Ok(data) = fs::symlink_metadata(path) else { return 0 };
    if !data.is_dir() {
        return fs::metadata(path).map_or(0, |data| data.len());
    }
    let below = fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path());
    below.filter(|path| !is_hidden(&path.to_string_lossy()) && !path.is_symlink()).map(|path| size(&path)).sum()
}

struct Walker<'a, 'e> {
    /// What may still be unpacked; each reader of something packed takes from it.
    bytes: Rc<Cell<u64>>,
    entries: u64,
    limits: Limits,
    progress: &'a dyn Progress,
    each: &'a mut Each<'e>,
}

impl Walker<'_, '_> {
    fn directory(&mut self, start: &Path) -> Result<()> {
        let mut pending = vec![start.to_owned()];
        while let Some(directory) = pending.pop() {
            let entries = fs::read_dir(&directory).and_then(Iterator::collect::<io::Result<Vec<_>>>);
            let mut entries = entries.map_err(ImportError::io(&directory))?;
            entries.sort_by_key(fs::DirEntry::file_name);
            let mut below: Vec<PathBuf> = Vec::new();
            for entry in entries {
                let path = entry.path();
                self.count_entry(start)?;
                if entry.file_name().as_encoded_bytes().starts_with(b".") {
                    continue;
                }
                let kind = entry.file_type().map_err(ImportError::io(&path))?;
                if kind.is_dir() {
                    below.push(path);
                } else if kind.is_file() {
                    self.file(&path)?;
                }
            }
            pending.extend(below.into_iter().rev());
        }
        Ok(())
    }

    fn file(&mut self, path: &Path) -> Result<()> {
        let file = weftline_format::files::open(path).map_err(ImportError::io(path))?;
        let mut file = Told { file, progress: self.progress };
        let name = path.display().to_string();
        self.stream(&name, &mut file, 0, false)
    }

    fn count_entry(&mut self, archive: &Path) -> Result<()> {
        self.entries = self.entries.checked_sub(1).ok_or_else(|| ImportError::Limit {
            name: archive.display().to_string(),
            what: format!("it holds more than {} files", self.limits.entries),
        })?;
        Ok(())
    }

    /// `depth`: archives around it. `packed`: whether its bytes come out of something, and count.
    fn stream(&mut self, name: &str, reader: &mut dyn Read, depth: u32, packed: bool) -> Result<()> {
        let mut head = Vec::with_capacity(HEAD);
        let mut limited = Counted { reader, left: packed.then(|| self.bytes.clone()) };
        // What is damaged soon after its beginning still has one.
        let broken = (&mut limited).take(HEAD as u64).read_to_end(&mut head).err();
        let limited = Broken(broken).chain(limited);
        let kind = kind_of(&head);
        if let Some(Packing::Tar | Packing::Zip) = kind
            && depth >= self.limits.depth
        {
            let what = format!("archives in archives are read {} levels deep", self.limits.depth);
            return Err(ImportError::Limit { name: name.to_owned(), what });
        }
        let Some(kind) = kind else {
            let limits = self.limits;
            let mut whole = Cursor::new(&head).chain(limited);
            return (self.each)(&Found { name, head: &head }, &mut whole).map_err(|error| explained(error, limits));
        };
        let mut whole = Cursor::new(&head).chain(limited);
        match kind {
            Packing::Gzip => {
                let mut unpacked = flate2::read::MultiGzDecoder::new(&mut whole);
                self.stream(name, &mut unpacked, depth, true)
            }
            Packing::Xz => {
                let mut unpacked = liblzma::read::XzDecoder::new_multi_decoder(&mut whole);
                self.stream(name, &mut unpacked, depth, true)
            }
            Packing::Bzip2 => {
                let mut unpacked = bzip2::read::MultiBzDecoder::new(&mut whole);
                self.stream(name, &mut unpacked, depth, true)
            }
            Packing::Zstd => {
                let mut unpacked = zstd::Decoder::new(&mut whole).map_err(failed(name, self.limits))?;
                self.stream(name, &mut unpacked, depth, true)
            }
            Packing::Tar => self.tar(name, &mut whole, depth),
            Packing::Zip => self.zip(name, &mut whole, depth),
        }
    }

    fn tar(&mut self, name: &str, reader: &mut dyn Read, depth: u32) -> Result<()> {
        let mut archive = tar::Archive::new(reader);
        let limits = self.limits;
        for entry in archive.entries().map_err(failed(name, limits))? {
            let mut entry = entry.map_err(failed(name, limits))?;
            self.count_entry(Path::new(name))?;
            if !entry.header().entry_type().is_file() {
                continue;
            }
            let path = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
            if is_hidden(&path) {
                continue;
            }
            self.stream(&format!("{name}!{path}"), &mut entry, depth + 1, true)?;
        }
        Ok(())
    }

    fn zip(&mut self, name: &str, mut reader: &mut dyn Read, depth: u32) -> Result<()> {
        let limits = self.limits;
        let invalid = |error: zip::result::ZipError| failed(name, limits)(io::Error::other(error));
        while let Some(mut entry) = zip::read::read_zipfile_from_stream(&mut reader).map_err(invalid)? {
            self.count_entry(Path::new(name))?;
            let path = entry.name().map_err(invalid)?.into_owned();
            if entry.is_file() && !is_hidden(&path) {
                self.stream(&format!("{name}!{path}"), &mut entry, depth + 1, true)?;
            }
        }
        Ok(())
    }
}

/// Files that systems add to archives: `._x` of macOS, `.DS_Store`.
pub(crate) fn is_hidden(path: &str) -> bool {
    path.rsplit('/').next().is_some_and(|name| name.starts_with('.')) || path.starts_with("__MACOSX/")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    Gzip,
    Xz,
    Bzip2,
    Zstd,
    Tar,
    Zip,
}

fn kind_of(head: &[u8]) -> Option<Packing> {
    let kinds: [(&[u8], Packing); 4] = [
        (b"\x1f\x8b\x08", Packing::Gzip),
        (b"\xfd7zXZ\0", Packing::Xz),
        (b"\x28\xb5\x2f\xfd", Packing::Zstd),
        (b"PK\x03\x04", Packing::Zip),
    ];
    if let Some((_, kind)) = kinds.into_iter().find(|(magic, _)| head.starts_with(magic)) {
        return Some(kind);
    }
    // `BZh`, a digit, and the first block's or the end's number.
    let bzip2 = head.starts_with(b"BZh")
        && matches!(head.get(4..10), Some(b"\x31\x41\x59\x26\x53\x59" | b"\x17\x72\x45\x38\x50\x90"));
    if bzip2 {
        return Some(Packing::Bzip2);
    }
    (head.get(257..262) == Some(b"ustar")).then_some(Packing::Tar)
}

/// Tells how far a file is read.
struct Told<'a> {
    file: fs::File,
    progress: &'a dyn Progress,
}

impl Read for Told<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.progress.advance(read as u64);
        Ok(read)
    }
}

/// Takes what is read from what may be unpacked.
struct Counted<'a> {
    reader: &'a mut dyn Read,
    left: Option<Rc<Cell<u64>>>,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        if let Some(left) = &self.left {
            left.set(left.get().checked_sub(read as u64).ok_or_else(|| io::Error::other(TooMuch))?);
        }
        Ok(read)
    }
}

/// Gives an error once, and then nothing.
struct Broken(Option<io::Error>);

impl Read for Broken {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("too much is packed in it")]
struct TooMuch;

/// An error of reading something packed: a limit, or what the system or the packing said.
fn failed(name: &str, limits: Limits) -> impl FnOnce(io::Error) -> ImportError {
    let name = name.to_owned();
    move |source| explained(ImportError::Io { name, source }, limits)
}

fn explained(error: ImportError, limits: Limits) -> ImportError {
    match error {
        ImportError::Io { name, source } if is_too_much(&source) => {
            let what = format!("more than {} GiB are packed in it", limits.bytes >> 30);
            ImportError::Limit { name, what }
        }
        other => other,
    }
}

/// Decoders wrap errors of what they read from.
fn is_too_much(error: &io::Error) -> bool {
    let mut next: Option<&(dyn std::error::Error + 'static)> = error.get_ref().map(|inner| inner as _);
    while let Some(error) = next {
        if error.is::<TooMuch>() {
            return true;
        }
        next = match error.downcast_ref::<io::Error>() {
            Some(inner) => inner.get_ref().map(|inner| inner as _),
            None => error.source(),
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use weftline_format::progress::Silent;

    use super::*;

    fn tar_of(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = tar::Builder::new(Vec::new());
        for (name, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o600);
            // The safe setter refuses what hostile archives have.
            header.as_gnu_mut().expect("gnu").name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            archive.append(&header, *bytes).expect("memory");
        }
        archive.into_inner().expect("memory")
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    fn xz(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    fn bzip2(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
        encoder.write_all(bytes).expect("memory");
        encoder.finish().expect("memory")
    }

    fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
        let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Deflated);
        for (name, bytes) in files {
            archive.start_file(*name, options).expect("memory");
            archive.write_all(bytes).expect("memory");
        }
        archive.finish().expect("memory").into_inner()
    }

    fn found(bytes: &[u8], limits: Limits) -> Result<Vec<(String, Vec<u8>)>> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.tar.gz");
        fs::write(&path, bytes).expect("written");
        let mut files = Vec::new();
        walk(&path, limits, &Silent, &mut |found, reader| {
            let mut whole = Vec::new();
            reader.read_to_end(&mut whole).map_err(failed(found.name, limits))?;
            assert!(whole.starts_with(found.head));
            let name = found.name.strip_prefix(&*directory.path().to_string_lossy()).expect("below");
            files.push((name.to_owned(), whole));
            Ok(())
        })?;
        Ok(files)
    }

    fn check(bytes: &[u8], expected: &[(&str, &[u8])]) {
        let found = found(bytes, Limits::default()).expect("read");
        let expected: Vec<_> = expected.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn packed_files_and_archives() {
        let text: &[u8] = b"one\ntwo\n";
        check(text, &[("/a.tar.gz", text)]);
        check(&gzip(text), &[("/a.tar.gz", text)]);
        check(&[gzip(b"one\n"), gzip(b"two\n")].concat(), &[("/a.tar.gz", text)]);
        check(&xz(text), &[("/a.tar.gz", text)]);
        check(&bzip2(text), &[("/a.tar.gz", text)]);
        check(&zstd::encode_all(text, 1).expect("memory"), &[("/a.tar.gz", text)]);
        let files: [(&str, &[u8]); 2] = [("d/x.log", text), ("y", b"")];
        let inside: [(&str, &[u8]); 2] = [("/a.tar.gz!d/x.log", text), ("/a.tar.gz!y", b"")];
        check(&gzip(&tar_of(&files)), &inside);
        check(&zip_of(&files), &[("/a.tar.gz!d/x.log", text), ("/a.tar.gz!y", b"")]);
        let nested = tar_of(&[("in.zip", &zip_of(&[("z", text)])), ("._in.zip", b"of macOS"), ("p.xz", &xz(text))]);
        check(&nested, &[("/a.tar.gz!in.zip!z", text), ("/a.tar.gz!p.xz", text)]);
    }

    #[test]
    fn names_in_archives_lead_nowhere() {
        let files: [(&str, &[u8]); 2] = [("../../up", b"x"), ("/etc/passwd", b"y")];
        check(&tar_of(&files), &[("/a.tar.gz!../../up", b"x"), ("/a.tar.gz!/etc/passwd", b"y")]);
    }

    #[test]
    fn limits_are_told() {
        let says = |bytes: &[u8], limits: Limits, words: &str| {
            let error = found(bytes, limits).expect_err("a limit").to_string();
            assert!(error.contains(words) && error.contains("a.tar"), "{error}");
        };
        let limits = Limits::default();
        let bomb = gzip(&gzip(&vec![0; 32 << 20]));
        says(&bomb, Limits { bytes: 1 << 20, ..limits }, "GiB are packed");
        says(&tar_of(&[("a", b""), ("b", b"")]), Limits { entries: 1, ..limits }, "more than 1 files");
        let deep = zip_of(&[("1.tar", &tar_of(&[("2.zip", &zip_of(&[("3", b"x")]))]))]);
        says(&deep, limits, "2 levels deep");
    }

    #[test]
    fn damage_is_an_error_and_no_panic() {
        let files: [(&str, &[u8]); 2] = [("d/x.log", b"one\ntwo\n"), ("y", &[7; 3000])];
        for whole in [gzip(&tar_of(&files)), zip_of(&files), xz(b"hello"), bzip2(b"hello")] {
            for length in 0..whole.len() {
                let _ = found(&whole[..length], Limits::default());
            }
        }
    }
}
