//! Files as shared memory, and the control page.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::atomic::AtomicI64;

use weftline_format::files;
use weftline_recorder::layout::{CONTROL_MAGIC, CONTROL_SIZE, Control, LAYOUT_VERSION, RUN_ID_MAX};
use weftline_recorder::sys;

use super::guard;
use crate::live::is_shared;

/// A shared mapping of a file's start; writable unless it was opened to be looked at only.
pub(super) struct Mapping {
    pub(super) at: NonNull<u8>,
    length: usize,
    entry: guard::Entry,
}

// SAFETY: the memory is shared with other processes anyway; all access goes through atomics or volatile copies.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: nothing keeps a reference into the mapping beyond the owner that is being dropped.
        unsafe { sys::unmap(self.at.as_ptr(), self.length) };
    }
}

impl Mapping {
    /// Maps a file that is at least `length` bytes long: pages beyond the end would fault.
    pub(super) fn of(file: &File, length: usize) -> io::Result<Mapping> {
        Mapping::part_of(file, 0, length)
    }

    /// Maps a part of a file, which must exist completely.
    pub(super) fn part_of(file: &File, from: usize, length: usize) -> io::Result<Mapping> {
        is_long_enough(file, from + length)?;
        Mapping::around(sys::map_shared_at(file.as_raw_fd(), from, length), length)
    }

    /// What was just mapped, if it was.
    fn around(mapped: Option<*mut u8>, length: usize) -> io::Result<Mapping> {
        let failed = || io::Error::new(io::ErrorKind::OutOfMemory, "cannot be mapped");
        let at = mapped.and_then(NonNull::new).ok_or_else(failed)?;
        let Some(entry) = guard::Entry::new(at.as_ptr() as usize, length) else {
            // SAFETY: just mapped, and nobody knows it.
            unsafe { sys::unmap(at.as_ptr(), length) };
            return Err(failed());
        };
        Ok(Mapping { at, length, entry })
    }

    /// Whether a part of the file was missing when it was looked at.
    pub(super) fn is_torn(&self) -> bool {
        self.entry.is_torn()
    }

    pub(super) fn open(path: &Path, length: usize) -> io::Result<Mapping> {
        Mapping::of(&files::change(path)?, length)
    }

    /// Maps a file read-only: the kernel kills a process that stores into it, so only code that never stores may use it.
    pub(super) fn open_to_look(path: &Path, length: usize) -> io::Result<Mapping> {
        Mapping::part_to_look(&files::open_in_place(path)?, 0, length)
    }

    /// The same for a part of it.
    pub(super) fn part_to_look(file: &File, from: usize, length: usize) -> io::Result<Mapping> {
        is_long_enough(file, from + length)?;
        let (read, fd) = (libc::PROT_READ, file.as_raw_fd());
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), length, read, libc::MAP_SHARED, fd, from as libc::off_t) };
        if at == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Mapping::around(Some(at.cast()), length)
    }
}

fn is_long_enough(file: &File, length: usize) -> io::Result<()> {
    match file.metadata()?.len() < length as u64 {
        true => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is too short")),
        false => Ok(()),
    }
}

/// Makes a file of this user's alone with all its blocks reserved, so that no store into its mapping can fail.
pub(super) fn reserve(path: &Path, length: usize) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    match sys::allocate(file.as_raw_fd(), length) {
        Ok(_) => Ok(file),
        Err(error) => {
            // A part of it may be there; the error says more than a failed removal would.
            let _ = std::fs::remove_file(path);
            Err(io::Error::from_raw_os_error(error))
        }
    }
}

/// What a new control page says.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlSettings {
    pub clock: u32,
    pub options: u32,
    pub max_pieces: u32,
    pub wait_limit: u64,
    pub run_id: [u8; RUN_ID_MAX],
}

/// The control page of a live directory.
pub(crate) struct ControlPage(Mapping);

impl ControlPage {
    pub(crate) fn create(path: &Path, settings: ControlSettings) -> io::Result<ControlPage> {
        let file = reserve(path, CONTROL_SIZE)?;
        // The one file for all users of a shared run; nonsense in it harms only the recording of others.
        if path.parent().is_some_and(is_shared) {
            file.set_permissions(Permissions::from_mode(0o666))?;
        }
        let mapping = Mapping::of(&file, CONTROL_SIZE)?;
        let page = mapping.at.as_ptr().cast::<Control>();
        // SAFETY: a new file of zeros that no other process knows yet, large enough for a Control.
        unsafe {
            (*page).magic = CONTROL_MAGIC;
            (*page).version = LAYOUT_VERSION;
            (*page).clock = settings.clock;
            (*page).options = settings.options;
            (*page).max_pieces = settings.max_pieces;
            (*page).wait_limit = settings.wait_limit;
            (*page).run_id = settings.run_id;
            // Until a supervisor says how much there is.
            (*page).room = AtomicI64::new(i64::MAX / 2);
        }
        Ok(ControlPage(mapping))
    }

    /// Maps the page of an existing live directory; nothing when it is not one of this layout.
    pub(crate) fn open(path: &Path) -> io::Result<Option<ControlPage>> {
        let page = ControlPage(Mapping::open(path, CONTROL_SIZE)?);
        let control = page.get();
        Ok((control.magic == CONTROL_MAGIC && control.version == LAYOUT_VERSION).then_some(page))
    }

    /// The same read-only; nothing may be stored through [`ControlPage::get`] then.
    pub(crate) fn open_to_look(path: &Path) -> io::Result<Option<ControlPage>> {
        let page = ControlPage(Mapping::open_to_look(path, CONTROL_SIZE)?);
        let control = page.get();
        Ok((control.magic == CONTROL_MAGIC && control.version == LAYOUT_VERSION).then_some(page))
    }

    pub(crate) fn get(&self) -> &Control {
        // SAFETY: the mapping is CONTROL_SIZE bytes and page-aligned; plain fields are written before anyone else maps it.
        unsafe { self.0.at.cast::<Control>().as_ref() }
    }
}
