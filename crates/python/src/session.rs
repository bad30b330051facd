//! Recording without `weft run`: begins and finishes a session of `weftline-session` with the library of this package.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use weftline::locate;
use weftline_dropin::{dftracer, perfflow};
use weftline_session::{self as session, Begun, LIBRARY_VARIABLE, Plan};

pyo3::create_exception!(weftline, Error, PyException, "Recording cannot start; the message says why and what to do.");

/// Where the package is installed.
static HOME: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Sets the directory where the package is installed.
#[pyfunction]
#[pyo3(signature = (directory, /))]
pub(crate) fn set_home(directory: PathBuf) {
    *HOME.lock().unwrap_or_else(PoisonError::into_inner) = Some(directory);
}

fn home() -> PathBuf {
    HOME.lock().unwrap_or_else(PoisonError::into_inner).clone().unwrap_or_default()
}

fn library() -> PathBuf {
    match std::env::var_os(LIBRARY_VARIABLE).filter(|value| !value.is_empty()) {
        Some(given) => PathBuf::from(given),
        None => home().join("lib/weftline/libweft_preload.so"),
    }
}

/// Starts to record: "joined" if something records already, as under `weft run`, else "started".
#[pyfunction]
#[pyo3(signature = (plan, *, directory=None, io=true, log_file=None, data_dir=None, process_id=None))]
pub(crate) fn begin(
    py: Python<'_>,
    plan: &str,
    directory: Option<PathBuf>,
    io: bool,
    log_file: Option<PathBuf>,
    data_dir: Option<OsString>,
    process_id: Option<i64>,
) -> PyResult<&'static str> {
    // DFTracer's rank: the recorder finds the rank itself.
    let _ = process_id;
    let (plan, warnings) = match plan {
        "run" => match directory {
            Some(directory) => (Plan::Run { directory, io }, Vec::new()),
            None => return Err(PyTypeError::new_err("the plan \"run\" needs a directory")),
        },
        "dftracer" => dftracer_plan(log_file, data_dir),
        "perfflow" => perfflow_plan(),
        other => {
            return Err(PyValueError::new_err(format!("there is no plan {other:?}; use run, dftracer or perfflow")));
        }
    };
    let library = library();
    let begun = py.detach(|| {
        let table = locate::load(&library)
            .map_err(|why| format!("{} cannot be loaded: {why}; reinstall weftline", library.display()))?;
        let weft = home().join("bin/weft");
        session::begin(table, plan, weft.is_file().then_some(weft.as_path())).map_err(|why| why.to_string())
    });
    match begun.map_err(Error::new_err)? {
        Begun::Joined => Ok("joined"),
        Begun::Started { messages, .. } => {
            warnings.iter().chain(&messages).for_each(|message| say(py, message));
            crate::events::apply_usage();
            end_when_interrupted(py);
            Ok("started")
        }
    }
}

/// An interpreter that a KeyboardInterrupt ended dies of SIGINT behind its exit handlers, and the C library's never run: then the trace is written by
/// the interpreter's.
fn end_when_interrupted(py: Python<'_>) {
    static ASKED: AtomicBool = AtomicBool::new(false);
    if ASKED.swap(true, Ordering::Relaxed) {
        return;
    }
    // Without it, the next session or `weft recover` writes the trace.
    let _ =
        py.import("atexit").and_then(|atexit| atexit.call_method1("register", (wrap_pyfunction!(interrupted, py)?,)));
}

#[pyfunction]
fn interrupted(py: Python<'_>) {
    let unhandled = py.import("sys").and_then(|sys| sys.getattr("last_type"));
    if unhandled.is_ok_and(|kind| kind.is(py.get_type::<PyKeyboardInterrupt>())) {
        finish(py);
    }
}

/// Ends the recording of `begin` and writes its files. Errors are printed on stderr.
#[pyfunction]
pub(crate) fn finish(py: Python<'_>) {
    match py.detach(session::finish) {
        Ok(published) => published.messages.iter().for_each(|message| say(py, message)),
        Err(error) => say(py, &format!("the trace is not finished: {error}; run `weft recover`")),
    }
}

/// A sentence for the user. Python's own stderr: the program may have put something else in its place.
fn say(py: Python<'_>, sentence: &str) {
    let stderr = py.import("sys").and_then(|sys| sys.getattr("stderr"));
    // If stderr does not work, there is no other place for the message.
    let _ = stderr.and_then(|stderr| stderr.call_method1("write", (format!("weftline: {sentence}\n"),)));
}

fn dftracer_plan(log_file: Option<PathBuf>, data_dir: Option<OsString>) -> (Plan, Vec<String>) {
    let (mut options, warnings) = dftracer::Options::from_environment();
    if let Some(log_file) = log_file {
        options.set_log_file(&log_file);
    }
    if let Some(data_dir) = data_dir {
        let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
        options.set_data_dirs(&data_dir, &here);
    }
    (Plan::Dftracer(options), warnings)
}

fn perfflow_plan() -> (Plan, Vec<String>) {
    let (options, warnings) = perfflow_from_environment();
    let instance_path = perfflow::instance_path(&|name| std::env::var(name).ok());
    (Plan::Perfflow { options, flavour: perfflow::Flavour::Python, instance_path }, warnings)
}

fn perfflow_from_environment() -> (perfflow::Options, Vec<String>) {
    perfflow::Options::parse(&std::env::var(perfflow::OPTIONS_VARIABLE).unwrap_or_default())
}

/// The settings of `DFTRACER_*`, parsed; `warnings` are for the user.
#[pyfunction]
pub(crate) fn dftracer_options(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let (options, warnings) = dftracer::Options::from_environment();
    let dict = PyDict::new(py);
    for (name, is_on) in [
        ("enable", options.enable),
        ("compression", options.compression),
        ("io", options.io),
        ("posix", options.posix),
        ("stdio", options.stdio),
        ("metadata", options.metadata),
        ("tids", options.tids),
        ("bind_signals", options.bind_signals),
    ] {
        dict.set_item(name, is_on)?;
    }
    dict.set_item("init", format!("{:?}", options.init).to_uppercase())?;
    dict.set_item("log_file", options.log_file)?;
    dict.set_item("data_dirs", options.data_dirs)?;
    dict.set_item("log_level", options.log_level)?;
    dict.set_item("time_metric", options.time_metric)?;
    dict.set_item("write_buffer_size", options.write_buffer_size)?;
    dict.set_item("warnings", warnings)?;
    Ok(dict)
}

/// The settings of `PERFFLOW_OPTIONS`, parsed; `warnings` are for the user.
#[pyfunction]
pub(crate) fn perfflow_options(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let (options, warnings) = perfflow_from_environment();
    let parts = options.log_filename_include.iter().map(|part| match part {
        perfflow::NamePart::Name => "name",
        perfflow::NamePart::InstancePath => "instance-path",
        perfflow::NamePart::Hostname => "hostname",
        perfflow::NamePart::Pid => "pid",
    });
    let dict = PyDict::new(py);
    dict.set_item("log_filename_include", PyList::new(py, parts.collect::<Vec<_>>())?)?;
    dict.set_item("name", &options.name)?;
    dict.set_item("log_dir", &options.log_dir)?;
    dict.set_item("log_enable", options.log_enable)?;
    dict.set_item("cpu_mem_usage", options.cpu_mem_usage)?;
    dict.set_item("gpu_usage", options.gpu_usage)?;
    dict.set_item("log_close", options.log_close)?;
    dict.set_item("log_event", format!("{:?}", options.log_event))?;
    dict.set_item("log_format", format!("{:?}", options.log_format))?;
    dict.set_item("instance_path", perfflow::instance_path(&|name| std::env::var(name).ok()))?;
    dict.set_item("warnings", warnings)?;
    Ok(dict)
}
