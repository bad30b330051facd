//! The call of the drop-in libraries into `libweft`: one function, looked up when recording without `weft run` begins.
#![allow(unsafe_code, reason = "the dynamic loader's functions")]

use std::ffi::{CStr, CString, c_char, c_int};
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::OnceLock;

use super::place::own_path;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Ask {
    /// Begin for a program annotated for DFTracer whose environment wants that before `main`. 1 if it did.
    DftracerLoaded = 1,
    /// Begin for such a program, which said so itself: with a log file and data directories, or NULL. 1 if it did.
    DftracerBegin = 2,
    /// The same without calls of the C library.
    DftracerBeginWithoutIo = 3,
    /// Say what `PERFFLOW_OPTIONS` wants (see [`perfflow`]), and hand the instance path on to children.
    PerfflowOptions = 4,
    /// Begin for a program woven for PerfFlowAspect. 1 if it did.
    PerfflowBegin = 5,
    /// End what was begun.
    Finish = 6,
}

impl Ask {
    /// All that can be asked.
    pub const ALL: [Ask; 6] = [
        Ask::DftracerLoaded,
        Ask::DftracerBegin,
        Ask::DftracerBeginWithoutIo,
        Ask::PerfflowOptions,
        Ask::PerfflowBegin,
        Ask::Finish,
    ];
}

/// Bits of the answer to [`Ask::PerfflowOptions`].
pub mod perfflow {
    /// Record at all.
    pub const ENABLED: i32 = 1;
    /// Spans as one event.
    pub const COMPACT: i32 = 2;
    /// Spans tell what they used.
    pub const USAGE: i32 = 4;
    /// And how GPUs are used.
    pub const GPU: i32 = 8;
}

/// The function's name. Part of no header: the libraries that use it are installed together.
pub const SYMBOL: &CStr = c"weft_session_v1";
/// The function.
pub type Answer = unsafe extern "C" fn(what: c_int, log_file: *const c_char, data_dirs: *const c_char) -> c_int;

/// Set by `weft run` for the programs that it traces.
const LIVE_VARIABLE: &str = "WEFT_LIVE";

/// Where `libweft` lies, seen from a drop-in library: beside it (a build tree, a wheel), or as installed,
/// `lib/weftline/compat/lib/libdftracer_core.so` and `lib/libweft.so.0`.
const PLACES: [&str; 3] = ["libweft.so.0", "libweft.so", "../../../libweft.so.0"];

/// Is the preload library in this process for a run of `weft run`? It may be that its constructor has yet to run.
pub fn is_supervised() -> bool {
    // SAFETY: asks the loader for a library that is there already, by its name.
    std::env::var_os(LIVE_VARIABLE).is_some_and(|live| !live.is_empty())
        && unsafe { !libc::dlopen(c"libweft_preload.so".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD).is_null() }
}

/// Asks `libweft`; 0 where it is not there, which the user hears.
pub fn ask(what: Ask, log_file: Option<&CStr>, data_dirs: Option<&CStr>) -> i32 {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    static FOUND: OnceLock<Option<Answer>> = OnceLock::new();
    match FOUND.get_or_init(look) {
        // SAFETY: `look` found the function by its name; the texts are C strings or NULL.
        Some(answer) => unsafe { answer(what as c_int, pointer(log_file), pointer(data_dirs)) },
        None => 0,
    }
}

fn look() -> Option<Answer> {
    let own = own_path();
    let directory = own.parent().unwrap_or(Path::new("/"));
    let beside = PLACES.iter().find_map(|place| directory.join(place).canonicalize().ok());
    let path = match beside {
        Some(path) => CString::new(path.as_os_str().as_bytes()).ok()?,
        // Wherever the loader looks for libraries.
        None => c"libweft.so.0".to_owned(),
    };
    // SAFETY: loads a library of ours and looks a function up in it; it stays loaded.
    let found = unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if library.is_null() { std::ptr::null_mut() } else { libc::dlsym(library, SYMBOL.as_ptr()) }
    };
    if found.is_null() {
        say([format!("nothing is recorded: libweft.so is not beside {}", own.display())]);
        return None;
    }
    // SAFETY: a symbol of this name is such a function.
    Some(unsafe { std::mem::transmute::<*mut libc::c_void, Answer>(found) })
}

/// Prints a message on stderr, the only way for the libraries to reach the user.
pub fn say(lines: impl IntoIterator<Item = String>) {
    for line in lines {
        // A closed standard error is no reason to disturb the program.
        let _ = writeln!(std::io::stderr(), "weftline: {line}");
    }
}
