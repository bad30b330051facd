//! Begins and ends recording for `libdftracer_core` and `libperfflow_runtime`.
//!
//! Not part of the header: the three are installed together (`weftline::front::c::session`).

use std::ffi::{OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use weftline::front::c::session::{Ask, perfflow as answer, say};
use weftline::front::c::text;
use weftline_dropin::dftracer::{self, Init};
use weftline_dropin::perfflow::{self, Flavour, INSTANCE_VARIABLE, LogEvent, OPTIONS_VARIABLE};
use weftline_session::Plan;

use crate::session;

/// Answers a drop-in library; see [`Ask`].
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_session_v1(what: c_int, log_file: *const c_char, data_dirs: *const c_char) -> c_int {
    // SAFETY: the caller passes NULL or C strings.
    let given = unsafe { (text::bytes(log_file), text::bytes(data_dirs)) };
    match Ask::ALL.into_iter().find(|ask| *ask as c_int == what) {
        Some(Ask::DftracerLoaded) => c_int::from(begin_dftracer((None, None), true, |init| init != Init::Function)),
        Some(Ask::DftracerBegin) => c_int::from(begin_dftracer(given, true, |_| true)),
        Some(Ask::DftracerBeginWithoutIo) => c_int::from(begin_dftracer(given, false, |_| true)),
        Some(Ask::PerfflowOptions) => perfflow_answer(),
        Some(Ask::PerfflowBegin) => c_int::from(begin_perfflow()),
        Some(Ask::Finish) => {
            session::finish();
            1
        }
        None => 0,
    }
}

fn begin(plan: Plan) -> bool {
    session::begin(plan).unwrap_or_else(|why| {
        say([format!("nothing is recorded: {why}")]);
        false
    })
}

/// A log file and data directories, as a program gives them in its call.
type Given<'a> = (Option<&'a [u8]>, Option<&'a [u8]>);

/// Begins if the environment allows it and `wanted` agrees to who is to begin.
fn begin_dftracer((log_file, data_dirs): Given<'_>, io: bool, wanted: fn(Init) -> bool) -> bool {
    let (mut options, warnings) = dftracer::Options::from_environment();
    if !options.enable || !wanted(options.init) {
        return false;
    }
    if let Some(path) = log_file.filter(|path| !path.is_empty()) {
        options.set_log_file(Path::new(OsStr::from_bytes(path)));
    }
    if let Some(directories) = data_dirs.filter(|text| !text.is_empty()) {
        let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        options.set_data_dirs(OsStr::from_bytes(directories), &here);
    }
    options.io &= io;
    say(warnings);
    begin(Plan::Dftracer(options))
}

struct Perfflow {
    options: perfflow::Options,
    instance_path: String,
}

/// Read once: children find the instance path that this process hands on to them.
fn perfflow() -> &'static Perfflow {
    static GIVEN: OnceLock<Perfflow> = OnceLock::new();
    GIVEN.get_or_init(|| {
        let (options, warnings) = perfflow::Options::parse(&std::env::var(OPTIONS_VARIABLE).unwrap_or_default());
        say(warnings);
        let instance_path = perfflow::instance_path(&|name| std::env::var(name).ok());
        // SAFETY: the drop-in library asks when it is loaded, which is before the program has threads; where that is done later
        // it sets a variable as any library may, and the C library locks its own changes of the environment.
        unsafe { std::env::set_var(INSTANCE_VARIABLE, &instance_path) };
        Perfflow { options, instance_path }
    })
}

fn perfflow_answer() -> c_int {
    let options = &perfflow().options;
    let bit = |on: bool, bit: c_int| if on { bit } else { 0 };
    bit(options.log_enable, answer::ENABLED)
        | bit(options.log_event == LogEvent::Compact, answer::COMPACT)
        | bit(options.cpu_mem_usage, answer::USAGE)
        | bit(options.gpu_usage, answer::GPU)
}

fn begin_perfflow() -> bool {
    let Perfflow { options, instance_path } = perfflow();
    let (options, instance_path) = (options.clone(), instance_path.clone());
    options.log_enable && begin(Plan::Perfflow { options, flavour: Flavour::C, instance_path })
}
