//! A session: the time in which a process records without `weft run`.
//!
//! [`begin`] makes a directory to record into and starts the recorder; [`finish`] stops it, writes the files and gives
//! them the names that the user expects. Calling `finish` is optional: it runs at `exit`, also in forked
//! children, which record into the same shared memory and publish their own files. A process that ends by `_exit`, or by SIGINT, SIGTERM or
//! SIGHUP where nobody else has taken them, lets `weft recover` do it, if the path of `weft` is known. What a killed process leaves is published by its parent's `finish`, by
//! the next `begin` at the same place, or by `weft recover`.
//!
//! A process has one session at most. If something records already, as under `weft run`, `begin` joins it and does nothing else.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::time::{Duration, Instant};

use weftline_drain::{RecoverOptions, Unsupervised, WhyOpen, open_unsupervised};
use weftline_dropin::dftracer;
use weftline_dropin::perfflow::{self, Flavour};
use weftline_format::identity::held;
use weftline_recorder::process::LIVE_VARIABLE;
use weftline_recorder::sys;
use weftline_recorder::table::{Table, binding, on, wants};

use crate::error::{Result, SessionError};
use crate::host::Owner;
use crate::publish::{self, How, Publication, Published, Style};
use crate::{app, leftovers, raw, run};

/// What is to come of a session.
#[derive(Clone, Debug)]
pub enum Plan {
    /// A run directory, as `weft run` makes it.
    Run {
        /// Where; made when it is not there.
        directory: PathBuf,
        /// Record calls of the C library as well.
        io: bool,
    },
    /// Files as DFTracer's users expect them.
    Dftracer(dftracer::Options),
    /// Files as PerfFlowAspect's users expect them.
    Perfflow {
        /// The options.
        options: perfflow::Options,
        /// Whose files they look like.
        flavour: Flavour,
        /// See [`perfflow::instance_path`].
        instance_path: String,
    },
}

/// What [`begin`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Something records already; nothing was done.
    Joined,
    /// The process records now.
    Started {
        /// The run directory; one that is hidden, unless the plan was a run.
        directory: PathBuf,
        /// What the user should hear.
        messages: Vec<String>,
    },
}

/// How long a finish waits for another process that finishes at the same place.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a thread waits for another one that begins or finishes: as long as finishing a large trace may take.
const BUSY_PATIENCE: Duration = Duration::from_secs(600);
/// The status of a process that has not ended.
const NO_STATUS: i32 = -1;

struct Session {
    table: &'static Table,
    place: Place,
    /// Where its shared memory is.
    live: PathBuf,
    hooks: bool,
    /// Bits of [`wants`].
    usage: u32,
}

enum Place {
    Run(PathBuf),
    Hidden(PathBuf),
}

impl Place {
    fn directory(&self) -> &Path {
        match self {
            Place::Run(directory) | Place::Hidden(directory) => directory,
        }
    }
}

static SESSION: Mutex<Option<Session>> = Mutex::new(None);
/// The thread that may look at [`SESSION`]; 0 for none. A word and not the mutex is what threads wait for: whoever forks in the middle
/// of anything leaves a word in the child that says whose it is.
static HOLDER: AtomicU32 = AtomicU32::new(0);

/// The right to look at the session.
struct SessionLock;

impl SessionLock {
    /// Waits for another thread of this process, but not for the calling one, nor for one that a fork left behind in the parent:
    /// neither will ever let go.
    fn take() -> Result<SessionLock> {
        let deadline = Instant::now() + BUSY_PATIENCE;
        let own = sys::gettid();
        loop {
            let Err(holder) = HOLDER.compare_exchange(0, own, Ordering::AcqRel, Ordering::Acquire) else {
                return Ok(SessionLock);
            };
            let other_thread = holder != own && Path::new(&format!("/proc/self/task/{holder}")).exists();
            // One that let go and ended since is gone as well.
            let let_go = HOLDER.load(Ordering::Acquire) != holder;
            if !(other_thread || let_go) || Instant::now() >= deadline {
                return Err(SessionError::Busy);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The session. Nobody else has a lock, so the mutex is free.
    fn session(&self) -> Result<MutexGuard<'_, Option<Session>>> {
        match SESSION.try_lock() {
            Ok(guard) => Ok(guard),
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(SessionError::Busy),
        }
    }
}

impl Drop for SessionLock {
    fn drop(&mut self) {
        HOLDER.store(0, Ordering::Release);
    }
}

/// Begins to record with this recorder. `weft` is the command that finishes the trace where this process cannot do so itself.
pub fn begin(table: &'static Table, plan: Plan, weft: Option<&Path>) -> Result<Begun> {
    let lock = SessionLock::take()?;
    let mut current = lock.session()?;
    if table.on.load(Ordering::Acquire) == on::ON {
        return Ok(Begun::Joined);
    }
    // Of an earlier session in a parent; its own end was reported there.
    *current = None;
    let prepared = Prepared::new(plan)?;
    let opened = open_unsupervised(prepared.place.directory(), &prepared.unsupervised).map_err(SessionError::from);
    let started = opened.and_then(|live| match raw::start(table, &live) {
        true => Ok(live),
        false => Err(SessionError::NotStarted { live }),
    });
    let live = match started {
        Ok(live) => live,
        Err(error) => {
            drop(prepared.lock);
            // Nothing was recorded, so this only removes what was made; the first error says more than a second one would.
            let _ = wrap_up(&prepared.place, None);
            return Err(error);
        }
    };
    if prepared.usage != 0 {
        table.wants_usage.store(prepared.usage, Ordering::Relaxed);
    }
    let hooks = (table.bind)(prepared.binding) >= 0;
    if !hooks {
        raw::call_at_exit(exit_handler);
    }
    (table.at_end)(Some(process_ends));
    if let Some(weft) = weft {
        let words = ["recover".into(), "--quiet".into(), "--ended".into(), prepared.place.directory().into()];
        let untraced =
            |(name, _): &(OsString, OsString)| !["LD_PRELOAD", "LD_AUDIT", LIVE_VARIABLE].iter().any(|n| name == n);
        raw::prepare(table, weft, &words, std::env::vars_os().filter(untraced));
        // The next command that reads a run finishes it.
        if matches!(prepared.place, Place::Hidden(_)) {
            raw::take_interrupts();
        }
    }
    let directory = prepared.place.directory().to_owned();
    *current = Some(Session { table, place: prepared.place, live, hooks, usage: prepared.usage });
    Ok(Begun::Started { directory, messages: prepared.messages })
}

/// A place to record into, made for a plan.
struct Prepared {
    place: Place,
    unsupervised: Unsupervised,
    binding: u32,
    usage: u32,
    messages: Vec<String>,
    /// Keeps others from finishing what has not begun.
    lock: Option<publish::Lock>,
}

impl Prepared {
    fn new(plan: Plan) -> Result<Prepared> {
        let owner = Owner::here();
        let command = app::command_of("self");
        let exe = std::fs::read_link("/proc/self/exe").map(|exe| held(exe.as_os_str().as_bytes())).unwrap_or_default();
        let app = app::own_name(&command, &exe);
        let run_id = format!("{app}-{}-{}", owner.pid, owner.start);
        let bound = |io: bool| if io { binding::ALL } else { binding::LIFE };
        match plan {
            Plan::Run { directory, io } => Ok(Prepared {
                place: Place::Run(run::create(&directory, &app, &command, &owner)?),
                unsupervised: Unsupervised { run_id, no_io: !io, ..Unsupervised::default() },
                binding: bound(io),
                usage: 0,
                messages: Vec::new(),
                lock: None,
            }),
            Plan::Dftracer(options) => {
                let io = options.io && (options.posix || options.stdio);
                let (directory, base) = options.place();
                let style = Style::Dftracer { base: held(base.as_bytes()), compression: options.compression };
                let include = options.patterns();
                let (hidden, lock, messages) = hide(directory, base, &Publication { owner, command, app, style })?;
                Ok(Prepared {
                    place: Place::Hidden(hidden),
                    unsupervised: Unsupervised {
                        run_id,
                        no_io: !io,
                        include,
                        without: options.unwanted_categories(),
                        separate_files: true,
                        ..Unsupervised::default()
                    },
                    binding: bound(io),
                    usage: 0,
                    messages,
                    lock,
                })
            }
            Plan::Perfflow { options, flavour, instance_path } => {
                let directory = PathBuf::from(&options.log_dir);
                let asked = |on: bool, bit: u32| if on { bit } else { 0 };
                let usage = asked(options.cpu_mem_usage, wants::PROCESSOR) | asked(options.gpu_usage, wants::GPU);
                let style = Style::Perfflow { options, instance_path, flavour };
                let (hidden, lock, messages) =
                    hide(&directory, OsStr::new("perfflow"), &Publication { owner, command, app, style })?;
                Ok(Prepared {
                    place: Place::Hidden(hidden),
                    unsupervised: Unsupervised { run_id, no_io: true, separate_files: true, ..Unsupervised::default() },
                    binding: binding::LIFE,
                    usage,
                    messages,
                    lock,
                })
            }
        }
    }
}

/// Makes a hidden run directory, after what dead processes left at the same place was published.
fn hide(
    directory: &Path,
    base: &OsStr,
    publication: &Publication,
) -> Result<(PathBuf, Option<publish::Lock>, Vec<String>)> {
    std::fs::create_dir_all(directory).map_err(SessionError::io(directory))?;
    // The program may change its working directory.
    let directory = directory.canonicalize().map_err(SessionError::io(directory))?;
    let messages = leftovers::sweep(&directory, base);
    for number in 1.. {
        let mut name = OsString::from(".");
        name.push(base);
        name.push(format!("-{}-{}", publication.app, publication.owner.pid));
        if number > 1 {
            name.push(format!("-{number}"));
        }
        name.push(publish::HIDDEN_END);
        let hidden = directory.join(name);
        match std::fs::create_dir(&hidden) {
            Ok(()) => {
                let lock = publish::lock(&hidden, PATIENCE)?;
                publication.write(&hidden)?;
                return Ok((hidden, lock, messages));
            }
            // A leftover of another host, or of this process's first session whose children still record.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(SessionError::io(&hidden)(error)),
        }
    }
    Err(SessionError::Busy)
}

/// Stops recording and makes the files. Does nothing where no session of this process is under way. The process may [`begin`] again.
pub fn finish() -> Result<Published> {
    let lock = SessionLock::take()?;
    let Some(session) = lock.session()?.take() else { return Ok(Published::default()) };
    raw::unprepare();
    raw::leave_interrupts();
    (session.table.at_end)(None);
    (session.table.stop)(NO_STATUS);
    if session.hooks {
        (session.table.bind)(binding::NONE);
    }
    if session.usage != 0 {
        session.table.wants_usage.store(0, Ordering::Relaxed);
    }
    wrap_up(&session.place, Some(session.live))
}

fn wrap_up(place: &Place, live: Option<PathBuf>) -> Result<Published> {
    match place {
        Place::Hidden(hidden) => {
            let mut published = publish::finish_directory(hidden, How { believe_ended: true, patience: PATIENCE })?;
            // Workers that were started anew and killed, as those of a pool whose block is left, cannot do this themselves.
            published.messages.extend(leftovers::sweep_beside(hidden));
            Ok(published)
        }
        Place::Run(run) => {
            // Others may record into the same run; theirs is theirs to finish.
            let options = RecoverOptions {
                believe_ended: true,
                wait_for_lock: Some(PATIENCE),
                only: live,
                ..RecoverOptions::default()
            };
            let report = weftline_drain::recover(run, &options)?;
            let open = report.open.into_iter().next().map(|open| open.why);
            Ok(Published { events: report.events, open, messages: report.messages, ..Published::default() })
        }
    }
}

/// At `exit`, where the recorder's hooks do not see it.
extern "C" fn exit_handler() {
    process_ends(0);
}

/// The process announces its end.
extern "C" fn process_ends(sudden: i32) {
    if sudden != 0 {
        raw::run_prepared(NO_STATUS);
        return;
    }
    let outcome = SessionLock::take().and_then(|lock| {
        let Some(session) = lock.session()?.take() else { return Ok(Published::default()) };
        // A signal handler from here on must not wait for this thread's work.
        raw::leave_interrupts();
        // Hooks stay: taking them out would only cost the program time.
        (session.table.stop)(NO_STATUS);
        wrap_up(&session.place, Some(session.live))
    });
    let lines = match outcome {
        Ok(Published { open: Some(WhyOpen::Locked), .. }) => {
            vec![
                "the trace of this process is not finished: another process is working on it; run `weft recover`"
                    .to_owned(),
            ]
        }
        Ok(published) => published.messages,
        // A thread of the parent was beginning or finishing when this process was forked: nothing was recorded here.
        Err(SessionError::Busy) => Vec::new(),
        Err(error) => vec![format!("the trace of this process is not finished: {error}; run `weft recover`")],
    };
    lines.iter().for_each(|line| raw::say(line));
}
