//! `weft_start` and `weft_stop`: recording without `weft run`.
//!
//! It loads the installation's preload library, whose recorder and hooks then serve the whole process, and begins a session of
//! `weftline-session`. Without that library it uses the recorder inside this one, which records annotations but
//! no calls of the C library.

use std::cell::RefCell;
use std::ffi::{CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use weftline::front::c::session::{is_supervised, say};
use weftline::front::c::text;
use weftline::locate;
use weftline_format::manifest::utc;
use weftline_session::{self as session, Begun, Plan};

use crate::installation;

/// Directory of runs without a name of their own: the same as for `weft run`.
const RUNS: &str = "weft-runs";

/// Begins a session unless something records already, and returns whether it did. An error is one sentence for the user.
pub(crate) fn begin(plan: Plan) -> Result<bool, String> {
    // The second case: a library's constructor that runs before the preload library's own.
    if weftline::is_on() || is_supervised() {
        return Ok(false);
    }
    let wants_io = match &plan {
        Plan::Run { io, .. } => *io,
        Plan::Dftracer(options) => options.io,
        Plan::Perfflow { .. } => false,
    };
    let found = installation::find();
    let (table, missing) = match found.preload.as_deref().map(locate::load) {
        Some(Ok(table)) => (table, None),
        Some(Err(why)) => (locate::find(), Some(why)),
        None => (locate::find(), Some(format!("{} is not beside {}", installation::PRELOAD, found.own.display()))),
    };
    match session::begin(table, plan, found.weft.as_deref()).map_err(|error| error.to_string())? {
        Begun::Joined => Ok(false),
        Begun::Started { messages, .. } => {
            say(messages);
            say(missing.filter(|_| wants_io).map(|why| format!("calls of the C library are not recorded: {why}")));
            Ok(true)
        }
    }
}

/// Ends the session and writes its files.
pub(crate) fn finish() {
    say(match session::finish() {
        Ok(published) => published.messages,
        Err(error) => vec![format!("the trace of this process is not finished: {error}; run `weft recover`")],
    });
}

thread_local! {
    /// What `weft_start` returned last, kept for the thread that reads it.
    static REASON: RefCell<CString> = RefCell::default();
}

/// Records this process and the children that it forks into a run directory: annotations and I/O calls. NULL
/// chooses a directory below `weft-runs`. Does nothing if something records already, as under `weft run`. Returns NULL if
/// the process is recorded now, else a sentence with the reason, which is valid until the thread's next call.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_start(directory: *const c_char) -> *const c_char {
    // SAFETY: the caller passes NULL or a C string.
    let directory = match unsafe { text::bytes(directory) } {
        Some(given) => PathBuf::from(OsStr::from_bytes(given)),
        None => Path::new(RUNS).join(run_name()),
    };
    let Err(why) = begin(Plan::Run { directory, io: true }) else { return std::ptr::null() };
    let why = CString::new(why.replace('\0', " ")).unwrap_or_default();
    let kept = REASON.try_with(|reason| {
        let mut reason = reason.try_borrow_mut().ok()?;
        *reason = why;
        Some(reason.as_ptr())
    });
    kept.ok().flatten().unwrap_or(c"the process cannot be recorded".as_ptr())
}

fn run_name() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64);
    let program = std::env::current_exe().ok().and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
    format!("{}-{}-{}", utc::compact(now), program.unwrap_or_else(|| "run".to_owned()), std::process::id())
}

/// Stops the recording of `weft_start` and writes the trace. Calling it is optional: the end of the process does the same.
#[unsafe(no_mangle)]
extern "C" fn weft_stop() {
    finish();
}
