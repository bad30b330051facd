//! A directory that is held open: later operations use this one, even if somebody puts another in its place.
//!
//! Between checking a path and changing something below it, anybody who can write to a directory on the way can exchange it. Files are
//! therefore removed relative to a directory that is held open and was checked through the same descriptor.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

const FLAGS: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A directory that is held open.
#[derive(Debug)]
pub struct Held(OwnedFd);

impl Held {
    /// Opens a directory; a symlink to one is an error of the kind `NotADirectory`.
    pub fn open(path: &Path) -> io::Result<Held> {
        Ok(Held(rustix::fs::open(path, FLAGS, Mode::empty())?))
    }

    /// Opens a directory in this one, likewise.
    pub fn below(&self, name: &OsStr) -> io::Result<Held> {
        Ok(Held(rustix::fs::openat(&self.0, name, FLAGS, Mode::empty())?))
    }

    /// Whether it belongs to the caller and is no more open to others than `mode`.
    pub fn is_own(&self, mode: u32) -> io::Result<bool> {
        let metadata = rustix::fs::fstat(&self.0)?;
        Ok(metadata.st_uid == rustix::process::geteuid().as_raw() && metadata.st_mode & 0o777 & !mode == 0)
    }

    /// What lies in it.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let entries = rustix::fs::Dir::read_from(&self.0)?;
        let name = |entry: rustix::fs::DirEntry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned();
        let names = entries.map(|entry| Ok(name(entry?)));
        names.filter(|name| !name.as_ref().is_ok_and(|name| name == "." || name == "..")).collect()
    }

    /// Gives something in it another name there.
    pub fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Removes a file, or a symlink and not what it leads to.
    pub fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes an empty directory.
    pub fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Removes the files in it whose names are `known`, and with `deep` the directories of such names too, if there is nothing else in them. Whether
    /// nothing is left. What somebody else removes meanwhile is gone.
    pub fn clear(&self, known: fn(&str) -> bool, deep: bool) -> io::Result<bool> {
        let mut whole = true;
        for name in self.names()? {
            let gone = match name.to_str().is_some_and(known) {
                true => self.clear_one(&name, known, deep),
                false => Ok(false),
            };
            whole &= super::or_gone(gone, true)?;
        }
        Ok(whole)
    }

    fn clear_one(&self, name: &OsStr, known: fn(&str) -> bool, deep: bool) -> io::Result<bool> {
        match rustix::fs::unlinkat(&self.0, name, AtFlags::empty()) {
            Err(Errno::ISDIR) if deep => {
                let whole = self.below(name)?.clear(known, deep)?;
                if whole {
                    self.remove_directory(name)?;
                }
                Ok(whole)
            }
            Err(Errno::ISDIR) => Ok(false),
            other => Ok(other.map(|()| true)?),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;

    /// What is held is changed, not what took its name.
    #[test]
    fn an_exchanged_directory_is_left_alone() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        for name in ["live/one", "victim/one"] {
            fs::create_dir_all(at(name)).expect("made");
            fs::write(at(name).join("a1"), "kept").expect("written");
        }
        let held = Held::open(&at("live")).expect("opened");
        fs::rename(at("live"), at("moved")).expect("moved");
        symlink(at("victim"), at("live")).expect("linked");
        assert_eq!(Held::open(&at("live")).expect_err("a link").kind(), io::ErrorKind::NotADirectory);
        let one = held.below("one".as_ref()).expect("opened");
        assert!(one.clear(|name| name == "a1", false).expect("cleared"));
        held.remove_directory("one".as_ref()).expect("empty");
        assert!(at("victim/one/a1").exists() && !at("moved/one").exists());
    }

    #[test]
    fn directories_are_own_or_not() {
        let place = tempfile::tempdir().expect("a directory");
        let of = |mode: u32| {
            fs::set_permissions(place.path(), fs::Permissions::from_mode(mode)).expect("set");
            Held::open(place.path()).and_then(|held| held.is_own(0o700)).expect("looked at")
        };
        assert!(of(0o700) && of(0o500) && !of(0o750) && !of(0o702));
    }
}
