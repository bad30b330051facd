//! The live directory, which holds the arenas of one supervisor while its programs run.
//!
//! ```text
//! <live>/ctl         control page, mapped by every traced process
//! <live>/rules       what was decided for all of them, in a run that is shared with other users
//! <live>/a<N>        arenas, a<N>.<K> their growth
//! <live>/lock        locked by the process that drains
//! <live>/clock       the timeline so far
//! <live>/settings    what a recovery must know of the drain's options
//! <live>/journal     images that ended
//! <live>/run         the run directory, where that is elsewhere
//! <run>/run.d/<host>-<pid>-<start>.live    points at it
//! ```
//! If a process makes a second live directory for the same run (it stops and starts recording, or executes
//! a program that records), the names have a session number: `<host>-<pid>-<start>-<session>`.
//!
//! Shared memory needs a local file system. Under a supervisor that is `/dev/shm` if it is large enough: a
//! stalled disk would stall the program at its next page. Otherwise, and for programs that record without a supervisor, it is the run directory
//! if that is on a local disk, else a temporary directory of this node.

mod abandoned;
mod pointer;
mod removal;

use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use weftline_format::files;
use weftline_format::identity::held;
use weftline_format::manifest::{RECORD_DIR, RunManifest};
use weftline_format::secrets::Arguments;
use weftline_recorder::arena::LIVE_PATH_MAX;
use weftline_recorder::clock;
use weftline_recorder::layout::{LAYOUT_VERSION, MAX_PIECES, PIECE_SIZE, RUN_ID_MAX, Rules, SHARED_SUFFIX, options};

use crate::arena::{ControlPage, ControlSettings};
use crate::error::DrainError;
use crate::filter::Patterns;
use crate::procfs::Host;
use crate::room::{self, Machine};
use crate::timeline::Clock;
use crate::{Result, system};

pub use abandoned::{Abandoned, abandoned};
pub(crate) use pointer::Pointer;
pub(crate) use removal::{removal_begun, remove};

/// The directory of a run that holds live directories.
const IN_RUN: &str = ".live";
/// The file of a shared live directory that tells programs of all users what was decided.
const RULES: &str = "rules";
/// The file of a live directory that names the run.
const RUN: &str = "run";

/// The directory of a user that holds live directories, in a temporary directory that others can write as well. `shared`: the one for
/// [`LiveOptions::other_users`].
fn of_user(shared: bool) -> String {
    format!("weft-{}{}", system::user(), if shared { SHARED_SUFFIX } else { "" })
}

/// Mode of a live directory, and of the directory that holds it. Others may pass through a shared one if they know its name, and neither
/// list it nor make files in it.
fn mode_of(shared: bool) -> u32 {
    if shared { 0o711 } else { 0o700 }
}

/// Whether a live directory is one for [`LiveOptions::other_users`]: only those let others pass through.
pub(crate) fn is_shared(directory: &Path) -> bool {
    std::fs::metadata(directory).is_ok_and(|data| data.mode() & 0o001 != 0)
}

/// How the programs are to record.
#[derive(Clone, Debug, Default)]
pub struct LiveOptions {
    /// The run's id, part of the directory's name where it cannot lie inside the run directory.
    pub run_id: String,
    /// Record process life only.
    pub no_io: bool,
    /// Let spans tell what they used: processor time and memory.
    pub span_usage: bool,
    /// When an arena is full, let threads wait so long for the drain instead of dropping records.
    pub wait_when_full: Option<Duration>,
    /// Nobody will drain while the programs run: arenas grow, recovery comes later.
    pub unsupervised: bool,
    /// Where arenas are to lie.
    pub place: Place,
    /// Programs that become other users (`su`, `runuser`) record on, each user into arenas that only that user can open. Whoever knows the name
    /// of the live directory can read and write the control page, so the name is random and stands only in the environment of traced programs
    /// and in files of the owner's. Needs the right to give files away.
    pub other_users: bool,
    /// How much of command lines is kept.
    pub arguments: Arguments,
    /// Growth limit: pieces of 4 MiB per arena. By default 128 where a supervisor empties them, and all there can be where none does.
    pub max_pieces: Option<usize>,
}

/// Where arenas lie.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Place {
    /// In memory under a supervisor, if there is enough; else on a disk.
    #[default]
    Automatic,
    /// In memory, if there is any; else on a disk.
    Memory,
    /// On a local disk if there is one.
    Disk,
}

/// Variables that name a directory on a local disk, for shared memory that cannot lie in the run directory.
pub const PLACE_VARIABLES: [&str; 2] = ["SLURM_TMPDIR", "TMPDIR"];
/// What an arena may grow to under a supervisor: half a GiB is several seconds of a drain that does not get to run.
const SUPERVISED_PIECES: usize = 128;

/// A live directory that this process drains.
pub struct Live {
    pub(crate) directory: PathBuf,
    pub(crate) pointer: PathBuf,
    pub(crate) control: ControlPage,
    pub(crate) clock: Clock,
    pub(crate) host: Host,
    pub(crate) session: u32,
    pub(crate) started_ns: i64,
    pub(crate) arguments: Arguments,
    /// Held for as long as the drain lives.
    _lock: File,
}

impl Live {
    /// Makes the live directory of this process for a run.
    pub fn create(run: &Path, given: &LiveOptions) -> Result<Live> {
        Live::create_with(run, given, &Settings { arguments: given.arguments, ..Settings::default() })
    }

    pub(crate) fn create_with(run: &Path, given: &LiveOptions, settings: &Settings) -> Result<Live> {
        let host = Host::here();
        let run = run.canonicalize().map_err(|error| DrainError::io(run, error))?;
        // What recovery compares with; a program that records alone may call its run otherwise.
        let run_id = RunManifest::read(&run).map_or_else(|_| given.run_id.clone(), |manifest| manifest.id);
        let session = free_session(&run, &host);
        let place = if given.unsupervised { Place::Disk } else { given.place };
        let directory = make_directory(&run, &given.run_id, &host.file_stem(session), place, given.other_users)?;
        let lock = lock_directory(&directory)?;
        if !directory.starts_with(&run) {
            let path = directory.join(RUN);
            let named = files::create(&path).and_then(|mut file| file.write_all(run.as_os_str().as_encoded_bytes()));
            named.map_err(|error| DrainError::io(&path, error))?;
        }
        let kind = clock::best_kind();
        let clock_path = directory.join("clock");
        let clock = Clock::create(&clock_path, kind).map_err(|error| DrainError::io(&clock_path, error))?;
        let mut bits = 0;
        for (on, bit) in [
            (given.no_io, options::NO_IO),
            (given.span_usage, options::SPAN_USAGE),
            (given.wait_when_full.is_some(), options::WAIT_WHEN_FULL),
            (given.unsupervised, options::UNSUPERVISED),
            (clock::is_slow(), options::SLOW_CLOCK),
            (given.other_users, options::OTHER_USERS),
        ] {
            bits |= if on { bit } else { 0 };
        }
        let usual = if given.unsupervised { MAX_PIECES } else { SUPERVISED_PIECES };
        let control = ControlSettings {
            clock: kind as u32,
            options: bits,
            max_pieces: given.max_pieces.unwrap_or(usual).clamp(1, MAX_PIECES) as u32,
            wait_limit: given.wait_when_full.map_or(0, |limit| limit.as_nanos().min(u128::from(u64::MAX)) as u64),
            run_id: named(&run_id),
        };
        if given.other_users {
            let (clock, options, max_pieces) = (control.clock, control.options, control.max_pieces);
            let rules = Rules { version: LAYOUT_VERSION, clock, options, max_pieces, wait_limit: control.wait_limit };
            write_rules(&directory.join(RULES), rules)?;
        }
        let control_path = directory.join("ctl");
        let control =
            ControlPage::create(&control_path, control).map_err(|error| DrainError::io(&control_path, error))?;
        settings.write(&directory)?;
        let started_ns = clock::read(libc::CLOCK_REALTIME) as i64;
        let pointer = Pointer::path(&run, &host, session);
        let records = run.join(RECORD_DIR);
        files::directory(&records).map_err(|error| DrainError::io(&records, error))?;
        let pointed = Pointer {
            run_id,
            path: held(directory.as_os_str().as_encoded_bytes()),
            host: host.name.clone(),
            boot: host.boot.clone(),
            pid: host.pid,
            start: host.start,
            session,
            pidns: host.pid_namespace,
            started_ns,
        };
        write_json(&pointer, &pointed, files::replace_private)?;
        let arguments = settings.arguments;
        Ok(Live { directory, pointer, control, clock, host, session, started_ns, arguments, _lock: lock })
    }

    /// What `WEFT_LIVE` must say.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Leaves the directory to the programs and a later recovery, without draining: for `weft env`.
    pub fn leave(self) {}
}

/// Writes what others may read and not change.
fn write_rules(path: &Path, rules: Rules) -> Result<()> {
    let written = files::create(path).and_then(|mut file| {
        file.set_permissions(std::fs::Permissions::from_mode(0o644))?;
        file.write_all(&rules.to_bytes())
    });
    written.map_err(|error| DrainError::io(path, error))
}

/// A run's id as the control page has it.
fn named(run_id: &str) -> [u8; RUN_ID_MAX] {
    let mut name = [0; RUN_ID_MAX];
    let kept = run_id.len().min(RUN_ID_MAX);
    name[..kept].copy_from_slice(&run_id.as_bytes()[..kept]);
    name
}

/// What recovery must know of the drain's options.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Settings {
    pub patterns: Patterns,
    pub arguments: Arguments,
    /// No image goes to the file that short ones share.
    pub separate_files: bool,
    /// For the code that publishes the files.
    pub note: String,
}

impl Settings {
    pub(crate) fn write(&self, live: &Path) -> Result<()> {
        // Every file less makes the start of a short program cheaper.
        if *self == Settings::default() { Ok(()) } else { write_json(&live.join("settings"), self, files::replace) }
    }

    pub(crate) fn read(live: &Path) -> Result<Settings> {
        Ok(read_json(&live.join("settings"))?.unwrap_or_default())
    }
}

/// Writes a small file as a whole.
fn write_json<T: Serialize>(path: &Path, value: &T, write: fn(&Path, &[u8]) -> io::Result<()>) -> Result<()> {
    let fail = |error| DrainError::io(path, error);
    let text = serde_json::to_vec_pretty(value).map_err(|error| fail(error.into()))?;
    write(path, &text).map_err(fail)
}

/// Reads a small file; nothing when it is gone, which another recovery may have seen to.
fn read_json<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    match files::read(path) {
        Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| DrainError::io(path, error.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(DrainError::io(path, error)),
    }
}

/// Opens and locks `<live>/lock`.
pub(crate) fn lock_directory(directory: &Path) -> Result<File> {
    let path = directory.join("lock");
    let fail = |error| DrainError::io(&path, error);
    let file = files::change_or_create(&path).map_err(fail)?;
    match system::lock(&file).map_err(fail)? {
        true => Ok(file),
        false => Err(DrainError::Locked { path: directory.to_owned() }),
    }
}

/// The first number under which this process has left nothing in the run.
fn free_session(run: &Path, host: &Host) -> u32 {
    let records = run.join(RECORD_DIR);
    let is_used = |session: &u32| {
        let stem = host.file_stem(*session);
        [records.join(format!("{stem}.live")), records.join(format!("{stem}.json")), run.join(IN_RUN).join(stem)]
            .iter()
            .any(|path| path.exists())
    };
    (0..).find(|session| !is_used(session)).unwrap_or_default()
}

/// Finds a place for the live directory and makes it.
fn make_directory(run: &Path, run_id: &str, stem: &str, place: Place, shared: bool) -> Result<PathBuf> {
    let mut tried = Vec::new();
    // A run that is shared tells its id to everybody.
    let name = match shared {
        true => format!("{run_id}-{:016x}-{stem}", RandomState::new().build_hasher().finish()),
        false => format!("{run_id}-{stem}"),
    };
    let mut attempt = |parent: PathBuf, name: String, home: bool| match make_in(&parent, &name, home, mode_of(shared)) {
        Ok(directory) => Some(directory),
        Err(why) => {
            tried.push(format!("{}: {why}", parent.display()));
            None
        }
    };
    let least = match place {
        Place::Automatic => Some(room::LEAST),
        Place::Memory => Some(LEAST_ROOM),
        Place::Disk => None,
    };
    if least.is_some_and(|least| has_memory(Path::new(MEMORY), least))
        && let Some(directory) = attempt(Path::new(MEMORY).join(of_user(shared)), name.clone(), false)
    {
        return Ok(directory);
    }
    // Names in a run can be guessed.
    if !shared && let Some(directory) = attempt(run.join(IN_RUN), stem.to_owned(), true) {
        return Ok(directory);
    }
    let variables = PLACE_VARIABLES.into_iter().filter_map(std::env::var_os).map(PathBuf::from);
    let places = variables.filter(|path| path.is_absolute()).chain(["/tmp", MEMORY].map(PathBuf::from));
    for place in places {
        let own = place.join(of_user(shared));
        if let Some(directory) = attempt(own, name.clone(), false) {
            return Ok(directory);
        }
    }
    Err(DrainError::NoLocalDirectory { tried })
}

/// The tmpfs that every Linux system has.
const MEMORY: &str = "/dev/shm";

/// Whether arenas may take at least so much of a directory's memory.
fn has_memory(directory: &Path, least: u64) -> bool {
    system::file_system(directory).is_ok_and(|found| found.tmpfs) && Machine::here().allowance(directory, 0) >= least
}

/// Makes `<parent>/<name>`, both with `mode`, or says why not. `in_run`: the parent may be another's.
fn make_in(parent: &Path, name: &str, in_run: bool, mode: u32) -> std::result::Result<PathBuf, String> {
    let grand = parent.parent().unwrap_or(parent);
    let found = system::file_system(grand).map_err(|error| error.to_string())?;
    if !found.local {
        return Err("not a local file system".to_owned());
    }
    if mode & 0o001 != 0 && !grand.ancestors().all(is_open_to_all) {
        return Err("other users cannot traverse it".to_owned());
    }
    // A run directory on a full disk can still have its shared memory elsewhere: then what is lost is counted.
    if found.free < LEAST_ROOM {
        return Err("No space left on device".to_owned());
    }
    let make = |path: &Path| {
        DirBuilder::new().mode(mode).create(path)?;
        // The umask has taken from it.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
    };
    match make(parent) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.to_string()),
        _ => {}
    }
    let data = std::fs::symlink_metadata(parent).map_err(|error| error.to_string())?;
    // Others can make directories in a shared temporary directory, under our name too.
    if !data.is_dir() || (!in_run && (data.uid() != system::user() || data.permissions().mode() & 0o777 & !mode != 0)) {
        return Err("belongs to someone else".to_owned());
    }
    let directory = parent.join(name);
    if directory.as_os_str().len() > LIVE_PATH_MAX {
        return Err("the path is too long".to_owned());
    }
    match make(&directory) {
        Ok(()) => {}
        // Another drain went and took the empty parent with it.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            make(parent).and_then(|()| make(&directory)).map_err(|error| error.to_string())?;
        }
        Err(error) => return Err(error.to_string()),
    }
    if found.btrfs
        && let Ok(opened) = File::open(&directory)
    {
        system::no_copy_on_write(&opened);
    }
    Ok(directory)
}

/// Whether every user can pass through a directory.
fn is_open_to_all(directory: &Path) -> bool {
    std::fs::metadata(directory).is_ok_and(|data| data.mode() & 0o001 != 0)
}

/// Room that a disk must have for arenas: the first ones and some growth.
const LEAST_ROOM: u64 = 4 * PIECE_SIZE as u64;

/// Room for the manifest of a run whose disk the trace has filled.
const KEPT_FREE: usize = 16 << 10;

/// Disks with less free room than this may be full before the run ends; on others the room need not be taken.
const PLENTY: u64 = 1 << 30;

/// Reserves that space at the start. If the disk has not even this much, the first failing write will report it.
pub(crate) fn keep_room(pointer: &Path) {
    let directory = pointer.parent().unwrap_or(pointer);
    if system::file_system(directory).is_ok_and(|found| found.free > PLENTY) {
        return;
    }
    let _ = files::create(&pointer.with_extension("room")).and_then(|mut room| room.write_all(&[0; KEPT_FREE]));
}

/// Gives it back, just before the manifest is written.
pub(crate) fn give_room(pointer: &Path) {
    let _ = std::fs::remove_file(pointer.with_extension("room"));
}
