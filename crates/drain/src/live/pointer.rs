//! `run.d/<host>-<pid>-<start>.live`: tells recovery where a live directory is, and how far to trust that.
//!
//! The file is part of a run, and a run may come from anybody. Recovery changes and removes what the file points to, so a path in it is only a
//! hint: a live directory must be one that this program makes ([`Pointer::find`] has the rules), belongs to the caller alone, and names the run.

use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use weftline_format::manifest::RECORD_DIR;
use weftline_format::text::path_bytes;
use weftline_recorder::layout::Control;

use super::{IN_RUN, mode_of, named, of_user, read_json};
use crate::error::DrainError;
use crate::procfs::Host;
use crate::{Result, system};

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Pointer {
    pub run_id: String,
    pub path: String,
    pub host: String,
    pub boot: String,
    pub pid: u32,
    pub start: u64,
    pub session: u32,
    pub pidns: u64,
    pub started_ns: i64,
}

/// The pointers of a run.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pointers {
    pub known: Vec<(PathBuf, Pointer)>,
    pub unreadable: Vec<PathBuf>,
}

impl Pointers {
    pub(crate) fn is_empty(&self) -> bool {
        self.known.is_empty() && self.unreadable.is_empty()
    }
}

impl Pointer {
    pub(super) fn path(run: &Path, host: &Host, session: u32) -> PathBuf {
        run.join(RECORD_DIR).join(format!("{}.live", host.file_stem(session)))
    }

    /// The path that it names. For reading only; code that changes anything there must use [`Pointer::find`].
    pub(crate) fn directory(&self) -> PathBuf {
        PathBuf::from(std::ffi::OsStr::from_bytes(&path_bytes(&self.path)))
    }

    /// All pointers of a run, with their own paths, and those that cannot be read: one of them hides no other.
    pub(crate) fn read_all(run: &Path) -> Result<Pointers> {
        let directory = run.join(RECORD_DIR);
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Pointers::default()),
            Err(error) => return Err(DrainError::io(&directory, error)),
        };
        let mut found = Pointers::default();
        for path in entries.flatten().map(|entry| entry.path()) {
            if path.extension().is_none_or(|extension| extension != "live") {
                continue;
            }
            match read_json::<Pointer>(&path) {
                Ok(Some(pointer)) => found.known.push((path, pointer)),
                Ok(None) => {}
                Err(_) => found.unreadable.push(path),
            }
        }
        found.known.sort_by(|a, b| a.0.cmp(&b.0));
        found.unreadable.sort();
        Ok(found)
    }

    /// The live directory of a pointer that lies at `own_path`, or why what it names is none. The directory may be gone.
    ///
    /// It lies in the run, under the pointer's own name, or in a directory of the user's where nobody else can exchange it. `run` must be
    /// canonical.
    pub(crate) fn find(&self, run: &Path, own_path: &Path) -> std::result::Result<PathBuf, &'static str> {
        let stem = own_path.file_stem().unwrap_or_default().as_bytes();
        let inside = run.join(IN_RUN).join(std::ffi::OsStr::from_bytes(stem));
        let named = self.directory();
        // The run may have been moved since; what lies in it is its own.
        if named.parent().is_some_and(|parent| parent.ends_with(IN_RUN)) || inside.exists() {
            owned_directory(&run.join(IN_RUN), None)?;
            owned_directory(&inside, Some(mode_of(false)))?;
            return Ok(inside);
        }
        let called = |parent: &Path, name: String| parent.file_name().is_some_and(|own| *own == *name);
        let of = |shared: bool| {
            named.parent().filter(|parent| called(parent, of_user(shared))).map(|parent| (parent, shared))
        };
        let Some((parent, shared)) = of(false).or_else(|| of(true)) else {
            return Err("is not where weft keeps shared memory");
        };
        let is_plain = named.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
        let name = named.file_name().unwrap_or_default().as_bytes();
        if !is_plain || !named.is_absolute() || !name.strip_suffix(stem).is_some_and(|rest| rest.ends_with(b"-")) {
            return Err("is not where weft keeps shared memory");
        }
        if !parent.ancestors().skip(1).all(is_settled) {
            return Err("is in a directory where others can replace it");
        }
        owned_directory(parent, Some(mode_of(shared)))?;
        owned_directory(&named, Some(mode_of(shared)))?;
        Ok(named)
    }

    /// Whether a control page is that of a live directory of this run; `id` is what the run's manifest says, if it has one.
    pub(crate) fn is_of_run(&self, control: &Control, id: Option<&str>) -> bool {
        control.run_id == named(&self.run_id) && id.is_none_or(|id| id == self.run_id)
    }
}

/// A directory that is not there yet or no more, or one that is the caller's and no more open to others than `mode`.
fn owned_directory(path: &Path, mode: Option<u32>) -> std::result::Result<(), &'static str> {
    let Ok(data) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !data.is_dir() {
        return Err("is not a directory, or is a symlink to one");
    }
    if mode.is_some_and(|mode| data.uid() != system::user() || data.mode() & 0o777 & !mode != 0) {
        return Err("does not belong to you alone");
    }
    Ok(())
}

/// Whether only root and the caller can replace what is in a directory.
fn is_settled(directory: &Path) -> bool {
    std::fs::symlink_metadata(directory).is_ok_and(|data| {
        let sticky = data.mode() & 0o1000 != 0;
        data.is_dir() && [0, system::user()].contains(&data.uid()) && (sticky || data.mode() & 0o022 == 0)
    })
}
