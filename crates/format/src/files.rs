//! Opens and creates files of a run safely: nothing planted in the run redirects a write, and files are private unless shared.
//!
//! A run may come from somebody else, and may be in a directory where others can write. So all code that *writes* into a run uses this module: it refuses a
//! symlink, a device, a pipe or a hard link, new files never replace an existing name, and temporary names
//! cannot be guessed. Files that are *read* may be symlinks (people gather traces that way), but must be regular files: reading a pipe could block for
//! ever. New files have the mode of their directory: in a run that `weft run` made (0700) they are 0600, in one that is shared others can
//! read them.

mod held;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{OFlags, SeekFrom};

pub use held::Held;

/// Small files (manifests, pointers, settings) are not believed beyond this: a sparse file can claim any length.
const SMALL: u64 = 256 << 20;

/// Whether a file or directory belongs to the user who runs this program. Only such runs are written to.
pub fn is_own(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.uid() == rustix::process::geteuid().as_raw())
}

/// Whether the system would let the user who runs this program make files in a directory.
pub fn is_writable(path: &Path) -> bool {
    path.is_dir() && rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Opens a regular file for reading; symlinks are followed.
pub fn open(path: &Path) -> io::Result<File> {
    // Without waiting: opening a pipe waits for its writer.
    regular(OpenOptions::new().read(true).custom_flags(flags(OFlags::NONBLOCK)).open(path)?)
}

/// Reads a small file as a whole.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    let too_long = || io::Error::new(io::ErrorKind::FileTooLarge, format!("is longer than {} MiB", SMALL >> 20));
    if length > SMALL {
        return Err(too_long());
    }
    let mut text = Vec::with_capacity(length as usize);
    // It may grow while it is read.
    if file.take(SMALL + 1).read_to_end(&mut text)? as u64 > SMALL {
        return Err(too_long());
    }
    Ok(text)
}

/// Files up to this length are read whatever they are made of.
const MAY_BE_SPARSE: u64 = 64 << 20;
/// A hole is at least this long; file systems create smaller ones by themselves.
const HOLE: u64 = 1 << 20;

/// How much of a file is there, in one piece from its start: up to its end, or to the first hole. Who writes a trace writes it to the end, so that a
/// hole was made to look like a terabyte, and reading zeros takes as long as reading events.
pub fn data_length(file: &File) -> io::Result<u64> {
    let length = file.metadata()?.len();
    if length <= MAY_BE_SPARSE {
        return Ok(length);
    }
    let before = rustix::fs::tell(file)?;
    let found = first_hole(file, length);
    // Later reads continue at the previous position.
    rustix::fs::seek(file, SeekFrom::Start(before))?;
    Ok(found)
}

fn first_hole(file: &File, length: u64) -> u64 {
    let mut at = 0;
    loop {
        // Where holes are not known, the first one is the end.
        let Ok(hole) = rustix::fs::seek(file, SeekFrom::Hole(at)) else { return length };
        if hole >= length {
            return length;
        }
        // An error: no more data.
        let data = rustix::fs::seek(file, SeekFrom::Data(hole)).unwrap_or(length);
        if data - hole >= HOLE {
            return hole;
        }
        at = data;
    }
}

/// Opens a file of the run for reading that is no symlink either: what it holds will be written elsewhere, or believed.
pub fn open_in_place(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true).custom_flags(flags(OFlags::NONBLOCK | OFlags::NOFOLLOW)).open(path)?)
}

/// Opens a file of the run to change it.
pub fn change(path: &Path) -> io::Result<File> {
    sole(OpenOptions::new().read(true).write(true).custom_flags(careful()).open(path)?)
}

/// The same, and makes it where there is none.
pub fn change_or_create(path: &Path) -> io::Result<File> {
    let mode = mode_beside(path)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(mode);
    sole(options.custom_flags(careful()).open(path)?)
}

/// Opens a file of the run to add to its end, and makes it where there is none.
pub fn append(path: &Path) -> io::Result<File> {
    let mode = mode_beside(path)?;
    sole(OpenOptions::new().read(true).append(true).create(true).mode(mode).custom_flags(careful()).open(path)?)
}

/// Makes a file that must not be there.
pub fn create(path: &Path) -> io::Result<File> {
    let mode = mode_beside(path)?;
    OpenOptions::new().read(true).write(true).create_new(true).mode(mode).open(path)
}

/// Makes an empty file in the place of one that a killed process may have left.
pub fn create_anew(path: &Path) -> io::Result<File> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => create(path),
    }
}

/// Makes a hidden file beside `path`, to be renamed to it; its name cannot be guessed.
pub fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    loop {
        let mut name = std::ffi::OsString::from(".");
        name.push(path.file_name().unwrap_or_default());
        // The state of a map is random: as unguessable as std gets.
        let random = std::hash::RandomState::new().build_hasher().finish();
        name.push(format!(".{random:016x}.tmp"));
        let beside = path.with_file_name(name);
        match create(&beside) {
            Ok(file) => return Ok((beside, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Writes a file as a whole: readers see the old one or the new one. A symlink of its name is replaced, not followed.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, |file| file.write_all(bytes))
}

/// The same for a file that only its owner may read, whatever the mode of its directory.
pub fn replace_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, |file| {
        file.set_permissions(fs::Permissions::from_mode(0o600)).and_then(|()| file.write_all(bytes))
    })
}

fn replace_with(path: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let (beside, mut file) = create_beside(path)?;
    let written = write(&mut file).and_then(|()| fs::rename(&beside, path));
    // A full disk leaves a part of it; the error says more than a failed removal would.
    written.inspect_err(|_| drop(fs::remove_file(&beside)))
}

/// Makes a directory of the run, or takes the one that is there if it is no symlink.
pub fn directory(path: &Path) -> io::Result<()> {
    let parent = fs::metadata(parent_of(path))?;
    match DirBuilder::new().mode(parent.mode() & 0o777).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => in_place(path),
        made => made,
    }
}

/// Whether a path is a directory itself, not a symlink to one.
pub fn in_place(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path)?.is_dir() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::NotADirectory, "is not a directory of this run")),
    }
}

/// Removes a directory of this program's making: the files and directories in it whose names are `known`, then itself. Whether it is gone; one
/// that holds something else stays, and so does what a symlink leads to. Several processes may remove the same directory at once: what another
/// one has removed is gone. An error of kind `NotFound` means that the directory was not there.
pub fn remove_known(path: &Path, known: fn(&str) -> bool) -> io::Result<bool> {
    let whole = Held::open(path)?.clear(known, true)?;
    if whole {
        or_gone(fs::remove_dir(path), ())?;
    }
    Ok(whole)
}

/// The outcome of an operation on a name, or `gone` if there is no such name.
fn or_gone<T>(outcome: io::Result<T>, gone: T) -> io::Result<T> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(gone),
        outcome => outcome,
    }
}

/// What a new file in the directory of `path` is made with; the umask takes from it.
fn mode_beside(path: &Path) -> io::Result<u32> {
    Ok(fs::metadata(parent_of(path))?.mode() & 0o666)
}

fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn careful() -> i32 {
    flags(OFlags::NOFOLLOW | OFlags::NONBLOCK)
}

fn flags(flags: OFlags) -> i32 {
    flags.bits() as i32
}

fn regular(file: File) -> io::Result<File> {
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "is not a regular file")),
    }
}

/// A file that is written to has no second name outside the run.
fn sole(file: File) -> io::Result<File> {
    let file = regular(file)?;
    match file.metadata()?.nlink() {
        0 | 1 => Ok(file),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "is a hard link, so it is not written to")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    type Way = fn(&Path) -> io::Result<File>;

    /// Each way to write, by name.
    const WAYS: [(&str, Way); 4] =
        [("change", change), ("change_or_create", change_or_create), ("append", append), ("create", create)];

    #[test]
    fn what_is_planted_is_not_written_to() {
        let run = tempfile::tempdir().expect("a directory");
        let outside = run.path().join("outside");
        let at = |name: &str| run.path().join(name);
        fs::write(&outside, "kept").expect("written");
        symlink(&outside, at("link")).expect("linked");
        symlink(at("nowhere"), at("dangling")).expect("linked");
        fs::hard_link(&outside, at("second")).expect("linked");
        fs::create_dir(at("directory")).expect("made");
        let pipe = std::process::Command::new("mkfifo").arg(at("pipe")).status().expect("mkfifo runs");
        assert!(pipe.success());
        for (way, open) in WAYS {
            for name in ["link", "dangling", "second", "directory", "pipe"] {
                open(&at(name)).map(|_| ()).expect_err(&format!("{way} of {name}"));
            }
        }
        for name in ["pipe", "directory"] {
            read(&at(name)).expect_err(name);
        }
        assert_eq!(read(&at("link")).expect("links may be read"), b"kept");
        open_in_place(&at("link")).expect_err("a link is not in place");
        replace(&at("link"), b"new").expect("replaced");
        assert_eq!((fs::read(&outside).expect("there"), at("nowhere").exists()), (b"kept".to_vec(), false));
        assert!(!fs::symlink_metadata(at("link")).expect("there").is_symlink());
        directory(&at("second")).expect_err("a file is no directory");
        symlink("/tmp", at("elsewhere")).expect("linked");
        directory(&at("elsewhere")).expect_err("a link is no directory of the run");
    }

    #[test]
    fn files_have_the_mode_of_their_directory() {
        let run = tempfile::tempdir().expect("a directory");
        for (mode, file, folder) in [(0o700, 0o600, 0o700), (0o755, 0o644, 0o755)] {
            fs::set_permissions(run.path(), fs::Permissions::from_mode(mode)).expect("set");
            let at = |name: &str| run.path().join(format!("{name}-{mode:o}"));
            for (way, open) in &WAYS[1..] {
                let made = open(&at(way)).expect(way).metadata().expect("its metadata").mode() & 0o777;
                assert_eq!(made, file, "{way} in {mode:o}");
            }
            directory(&at("folder")).expect("made");
            directory(&at("folder")).expect("there");
            assert_eq!(fs::metadata(at("folder")).expect("there").mode() & 0o777, folder, "{mode:o}");
        }
    }

    #[test]
    fn only_known_names_are_removed() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        fs::create_dir_all(at("old/deep")).expect("made");
        for name in ["old/ours", "old/deep/ours", "old/theirs", "kept"] {
            fs::write(at(name), "").expect("written");
        }
        symlink(place.path(), at("old/ours-too")).expect("linked");
        let known = |name: &str| name.starts_with("ours") || name == "deep";
        assert!(!remove_known(&at("old"), known).expect("removed"), "it holds something else");
        assert_eq!(fs::read_dir(at("old")).expect("there").count(), 1);
        fs::rename(at("old/theirs"), at("old/ours")).expect("renamed");
        assert!(remove_known(&at("old"), known).expect("removed") && !at("old").exists() && at("kept").exists());
        symlink(place.path(), at("link")).expect("linked");
        remove_known(&at("link"), |_| true).expect_err("a link");
        assert!(at("kept").exists());
    }

    #[test]
    fn several_remove_one_directory() {
        let place = tempfile::tempdir().expect("a directory");
        let path = place.path().join("done");
        for round in 0..50 {
            fs::create_dir_all(path.join("deep")).expect("made");
            for number in 0..40 {
                fs::write(path.join(format!("a{number}")), "").expect("written");
                fs::write(path.join(format!("deep/a{number}")), "").expect("written");
            }
            std::thread::scope(|scope| {
                let removals = [(); 3].map(|()| scope.spawn(|| remove_known(&path, |_| true)));
                for outcome in removals.map(|removal| removal.join().expect("no panic")) {
                    // Whoever came late found nothing.
                    let late = outcome.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
                    assert!(late || outcome.as_ref().is_ok_and(|gone| *gone), "round {round}: {outcome:?}");
                }
            });
            assert!(!path.exists(), "round {round}");
        }
    }

    #[test]
    fn lengths_are_not_believed() {
        let run = tempfile::tempdir().expect("a directory");
        let path = run.path().join("sparse");
        File::create(&path).and_then(|file| file.set_len(1 << 40)).expect("made");
        assert_eq!(read(&path).expect_err("a TiB").kind(), io::ErrorKind::FileTooLarge);
    }

    #[test]
    fn holes_are_no_data() {
        let run = tempfile::tempdir().expect("a directory");
        let path = run.path().join("sparse");
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("made");
        let at = |place: u64| std::os::unix::fs::FileExt::write_all_at(&file, &[b'x'; 4096], place).expect("written");
        at(0);
        assert_eq!(data_length(&file).expect("asked"), 4096);
        file.set_len(1 << 40).expect("longer");
        assert_eq!(data_length(&file).expect("asked"), 4096);
        // Data behind it are out of reach.
        at(1 << 39);
        assert_eq!(data_length(&file).expect("asked"), 4096);
        // A file without holes is whole, however long.
        file.set_len(0).expect("emptied");
        (0..(65 << 20) / 4096).for_each(|block| at(block * 4096));
        assert_eq!(data_length(&file).expect("asked"), 65 << 20);
    }
}
