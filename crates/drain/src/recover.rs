//! Recovery: writes trace files for a supervisor that was killed, for processes that outlived theirs, and for programs that never
//! had one.
//!
//! It locks each live directory that a run points to, encodes its dead images as a supervisor would have,
//! and when nothing is left writes the manifest and removes the directory. Recovery may be killed anywhere and run
//! any number of times: the crate's documentation says why each event is written exactly once.

mod leftovers;

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use weftline_format::files;
use weftline_format::manifest::{RunManifest, State, SupervisorRecord};

use crate::arena::ControlPage;
use crate::live::{self, Pointer};
use crate::procfs::Host;
use crate::record;
use crate::stop::{self, Stop};
use crate::{DrainError, Result};

use leftovers::Leftovers;

/// Inode of the first pid namespace, from which all processes are seen.
const FIRST_NAMESPACE: u64 = 0xEFFF_FFFC;

/// What a recovery should do.
#[derive(Clone, Debug, Default)]
pub struct RecoverOptions {
    /// Only tell what is open; change nothing.
    pub dry_run: bool,
    /// Take processes that cannot be seen from this pid namespace for dead: for the leftovers of a container that is gone.
    pub force: bool,
    /// Worker threads at most; by default none for little work, else one per processor, up to four.
    pub workers: Option<usize>,
    /// An image that announced its end is finished although its process is still there, if that process is the caller, or the
    /// caller's parent, which waits for it. Of others nobody knows whether they have really stopped.
    pub believe_ended: bool,
    /// Another process may be finishing its own image at this moment: wait so long for it.
    pub wait_for_lock: Option<Duration>,
    /// Look at this live directory only.
    pub only: Option<PathBuf>,
}

/// Why a live directory was left alone, wholly or in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WhyOpen {
    /// Its supervisor is at work, or another recovery.
    Locked,
    /// These processes still record.
    Running {
        /// Their pids, as they see themselves.
        pids: Vec<u32>,
    },
    /// It is on another host.
    OtherHost {
        /// Its name.
        host: String,
    },
    /// Its processes cannot be seen from this pid namespace.
    OtherNamespace,
    /// It was made by another version of this program.
    OtherVersion,
    /// The run's pointer is not trusted, for this reason: a run may come from anybody.
    NotOfRun {
        /// What is wrong with the directory.
        why: &'static str,
    },
    /// The run belongs to another user, so nothing is changed in it.
    OtherUser,
    /// It would have been recovered.
    NotYet,
}

impl fmt::Display for WhyOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyOpen::Locked => write!(f, "still running"),
            WhyOpen::Running { pids } => {
                write!(f, "still running: pid")?;
                pids.iter().try_for_each(|pid| write!(f, " {pid}"))
            }
            WhyOpen::OtherHost { host } => write!(f, "open on host {host}"),
            WhyOpen::OtherNamespace => write!(f, "open in another pid namespace"),
            WhyOpen::OtherVersion => write!(f, "made by another version of weft"),
            WhyOpen::NotOfRun { why } => write!(f, "left alone: it {why}"),
            WhyOpen::OtherUser => write!(f, "not recovered: the run belongs to another user"),
            WhyOpen::NotYet => write!(f, "not recovered yet"),
        }
    }
}

/// A live directory that is still needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOpen {
    /// The directory.
    pub directory: PathBuf,
    /// Why it was left.
    pub why: WhyOpen,
}

/// The trace file of an image that is finished: nothing will be added to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FinishedFile {
    /// The process.
    pub pid: u32,
    /// Where the file is. Short images may share one.
    pub path: PathBuf,
    /// The executable.
    pub exe: String,
    /// The command line.
    pub command: Vec<String>,
    /// Rank within a parallel job.
    pub rank: Option<u32>,
    /// When the image began, ns since the epoch.
    pub started_ns: i64,
    /// Events of this image, metadata not counted.
    pub events: u64,
    /// What [`Unsupervised::note`](crate::Unsupervised::note) said.
    pub note: String,
    /// Nothing else of the run is open any more.
    pub last: bool,
}

/// What a recovery did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecoverReport {
    /// Events that it brought into files.
    pub events: u64,
    /// Process images that it finished.
    pub images: u64,
    /// Live directories that are completely written to files.
    pub completed: Vec<PathBuf>,
    /// Live directories that are still needed.
    pub open: Vec<LeftOpen>,
    /// Live directories that were gone before anyone recovered them.
    pub gone: Vec<PathBuf>,
    /// Things the user should hear.
    pub messages: Vec<String>,
    /// The files of the images that it finished and that have one.
    pub files: Vec<FinishedFile>,
}

impl RecoverReport {
    /// Whether anything was done.
    pub fn did_something(&self) -> bool {
        self.events > 0 || self.images > 0 || !self.completed.is_empty() || !self.gone.is_empty()
    }
}

/// Turns what the live directories of a run still hold into trace files.
///
/// A program that recorded itself may call this at its end, in a forked child too, once its recorder was stopped; not while it
/// records, since reading an arena may choose another clock for this process.
pub fn recover(run: &Path, options: &RecoverOptions) -> Result<RecoverReport> {
    let host = Host::here();
    let mut report = RecoverReport::default();
    let pointers = Pointer::read_all(run)?;
    if pointers.is_empty() {
        return Ok(report);
    }
    let place = run.canonicalize().map_err(|error| DrainError::io(run, error))?;
    let mine = files::is_own(run);
    if options.only.is_none() {
        let why = WhyOpen::NotOfRun { why: "cannot be read" };
        let unreadable = pointers.unreadable.into_iter().map(|directory| LeftOpen { directory, why: why.clone() });
        report.open.extend(unreadable);
    }
    for (pointer_path, pointer) in pointers.known {
        let found = pointer.find(&place, &pointer_path);
        let directory = found.clone().unwrap_or_else(|_| pointer.directory());
        if options.only.as_ref().is_some_and(|only| *only != directory) {
            continue;
        }
        let why = match found {
            _ if pointer.host != host.name => Some(WhyOpen::OtherHost { host: pointer.host.clone() }),
            _ if !mine => Some(WhyOpen::OtherUser),
            Err(why) => Some(WhyOpen::NotOfRun { why }),
            Ok(_) => recover_one(run, &pointer_path, &pointer, &directory, &host, options, &mut report)?,
        };
        report.open.extend(why.map(|why| LeftOpen { directory, why }));
    }
    if let Some(file) = report.files.last_mut() {
        file.last = Pointer::read_all(run)?.is_empty();
    }
    Ok(report)
}

/// Recovers one live directory; why it is still needed.
fn recover_one(
    run: &Path,
    pointer_path: &Path,
    pointer: &Pointer,
    directory: &Path,
    host: &Host,
    options: &RecoverOptions,
    report: &mut RecoverReport,
) -> Result<Option<WhyOpen>> {
    if !directory.exists() {
        if !options.dry_run {
            retire_directory(run, pointer_path, pointer, directory, report)?;
        }
        return Ok(None);
    }
    let same_boot = pointer.boot == host.boot;
    let sees_all = [pointer.pidns, FIRST_NAMESPACE].contains(&host.pid_namespace);
    if same_boot && !sees_all && !options.force {
        return Ok(Some(WhyOpen::OtherNamespace));
    }
    let _lock = match lock_patiently(directory, options.wait_for_lock) {
        Ok(Some(lock)) => lock,
        // The previous holder of the lock has done it.
        Ok(None) => return Ok(None),
        Err(DrainError::Locked { .. }) => return Ok(Some(WhyOpen::Locked)),
        Err(error) => return Err(error),
    };
    if options.dry_run {
        return Ok(Some(WhyOpen::NotYet));
    }
    let control_path = directory.join("ctl");
    let control = match ControlPage::open(&control_path) {
        Ok(Some(control)) => control,
        Ok(None) => return Ok(Some(WhyOpen::OtherVersion)),
        // A pointer is written when the control page is there. Without one nothing tells whose directory this is.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Some(WhyOpen::NotOfRun { why: "has no control page" }));
        }
        Err(error) => return Err(DrainError::io(&control_path, error)),
    };
    let id = RunManifest::read(run).ok().map(|manifest| manifest.id);
    if !pointer.is_of_run(control.get(), id.as_deref()) {
        return Ok(Some(WhyOpen::NotOfRun { why: "belongs to another run" }));
    }
    let mut leftovers = Leftovers::new(run, directory, pointer, &control, host, same_boot)?;
    let running = leftovers.drain(options, report)?;
    let starting = leftovers.starting(options);
    live::give_room(pointer_path);
    leftovers.record(&running, &starting, report)?;
    stop::reached(Stop::Recorded)?;
    if running.is_empty() && starting.is_empty() {
        drop(leftovers);
        remove(directory, pointer_path, report)?;
        return Ok(None);
    }
    let pids = running.iter().map(|image| image.info.birth.pid).chain(starting).collect();
    Ok(Some(WhyOpen::Running { pids }))
}

/// Removes a live directory that is completely written to files.
fn remove(directory: &Path, pointer_path: &Path, report: &mut RecoverReport) -> Result<()> {
    report.messages.extend(live::remove(directory, pointer_path)?);
    report.completed.push(directory.to_owned());
    Ok(())
}

/// Locks a live directory, waiting this long for the current holder; nothing if the directory is gone by then.
fn lock_patiently(directory: &Path, patience: Option<Duration>) -> Result<Option<File>> {
    let deadline = Instant::now() + patience.unwrap_or_default();
    loop {
        match live::lock_directory(directory) {
            Err(DrainError::Locked { .. }) if Instant::now() < deadline => weftline_recorder::sys::nap(1_000_000),
            // The lock of a directory that was removed while we waited for it is worth nothing.
            Ok(_) | Err(DrainError::Io { .. }) if !directory.exists() => return Ok(None),
            other => return other.map(Some),
        }
    }
}

/// Deals with a live directory that is not there: removed when everything was written, or else lost.
fn retire_directory(
    run: &Path,
    pointer_path: &Path,
    pointer: &Pointer,
    directory: &Path,
    report: &mut RecoverReport,
) -> Result<()> {
    let mut record = base_record(run, pointer)?;
    if record.state == State::Open && !live::removal_begun(directory) {
        record.processes.extend(record::gone(&pointer.host).map(|entry| entry.process));
        record.state = State::Complete;
        record.write(run)?;
        report.gone.push(directory.to_owned());
    }
    report.messages.extend(live::remove(directory, pointer_path)?);
    Ok(())
}

/// The manifest that the supervisor wrote, or a new one for it.
fn base_record(run: &Path, pointer: &Pointer) -> Result<SupervisorRecord> {
    let record = SupervisorRecord {
        host: pointer.host.clone(),
        pid: pointer.pid,
        start: pointer.start,
        session: pointer.session,
        boot: pointer.boot.clone(),
        started_ns: pointer.started_ns,
        ..SupervisorRecord::default()
    };
    let path = record.path(run);
    if path.exists() { Ok(SupervisorRecord::read(&path)?) } else { Ok(record) }
}
