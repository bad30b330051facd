//! Every variable of DFTracer, its key in the YAML file, and its effect in Weftline.

/// What a variable sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    Enable,
    Init,
    LogFile,
    DataDirs,
    Metadata,
    Compression,
    Io,
    Posix,
    Stdio,
    Tids,
    BindSignals,
    LogLevel,
    TimeMetric,
    WriteBufferSize,
    /// Accepted and not looked at.
    None,
}

/// One variable.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Keys in the YAML file, the first one found counts.
    pub yaml: &'static [&'static str],
    /// What holds without it.
    pub default: &'static str,
    /// What Weftline does with it.
    pub effect: &'static str,
    pub(crate) setting: Setting,
    /// The variable switches off what its YAML key switches on.
    pub(crate) negated: bool,
}

/// Names the YAML file.
pub(crate) const CONFIGURATION: &str = "DFTRACER_CONFIGURATION";

const fn row(
    name: &'static str,
    yaml: &'static [&'static str],
    default: &'static str,
    setting: Setting,
    effect: &'static str,
) -> Variable {
    Variable { name, yaml, default, effect, setting, negated: false }
}

const fn off_switch(
    name: &'static str,
    yaml: &'static [&'static str],
    setting: Setting,
    effect: &'static str,
) -> Variable {
    Variable { name, yaml, default: "0", effect, setting, negated: true }
}

/// All variables. Switches take 1, true, yes, on and 0, false, no, off. DFTracer's documentation writes the YAML file's first key as `profiler`
/// and its code reads `tracer`: both are taken.
pub const VARIABLES: &[Variable] = &[
    row("DFTRACER_ENABLE", &["enable"], "0", Setting::Enable, "1 turns recording on."),
    row(
        "DFTRACER_INIT",
        &["tracer.init", "profiler.init"],
        "FUNCTION",
        Setting::Init,
        "What starts recording: FUNCTION a call of the program, PRELOAD the preloaded library, HYBRID both.",
    ),
    row(
        "DFTRACER_LOG_FILE",
        &["tracer.log_file", "profiler.log_file"],
        "./trace",
        Setting::LogFile,
        "Prefix of file names: `<value>-<APP_NAME>-<PID>.pfw.gz`.",
    ),
    row(
        "DFTRACER_DATA_DIR",
        &["tracer.data_dirs", "profiler.data_dirs"],
        "all",
        Setting::DataDirs,
        "Colon-separated directories; calls on paths elsewhere are left out. `all`, or unset: all files.",
    ),
    row(CONFIGURATION, &[], "", Setting::None, "A YAML file with any of these settings; variables override it."),
    row(
        "DFTRACER_TRACE_COMPRESSION",
        &["tracer.compression", "profiler.compression"],
        "1",
        Setting::Compression,
        "0 writes plain-text `.pfw` files.",
    ),
    off_switch("DFTRACER_DISABLE_IO", &["features.io.enable"], Setting::Io, "Records no calls of the C library."),
    off_switch("DFTRACER_DISABLE_POSIX", &["features.io.posix"], Setting::Posix, "Leaves out the category POSIX."),
    off_switch("DFTRACER_DISABLE_STDIO", &["features.io.stdio"], Setting::Stdio, "Leaves out the category STDIO."),
    row(
        "DFTRACER_INC_METADATA",
        &["features.metadata"],
        "0",
        Setting::Metadata,
        "No effect: events always have their arguments.",
    ),
    off_switch(
        "DFTRACER_DISABLE_TIDS",
        &["features.tid"],
        Setting::Tids,
        "No effect: events always have their thread, since spans of two threads would mix without it.",
    ),
    row(
        "DFTRACER_BIND_SIGNALS",
        &["internal.bind_signals"],
        "0",
        Setting::BindSignals,
        "No effect: records survive every signal, SIGKILL included, and after SIGINT, SIGTERM and SIGHUP the file is complete at once.",
    ),
    row(
        "DFTRACER_TIME_METRIC",
        &["tracer.time_metric", "profiler.time_metric"],
        "US",
        Setting::TimeMetric,
        "No effect: `ts` and `dur` are microseconds, and `ns` has the nanoseconds.",
    ),
    row(
        "DFTRACER_WRITE_BUFFER_SIZE",
        &["internal.write_buffer_size"],
        "16777216",
        Setting::WriteBufferSize,
        "No effect: no buffer can be lost.",
    ),
    row(
        "DFTRACER_LOG_LEVEL",
        &["tracer.log_level", "profiler.log_level"],
        "ERROR",
        Setting::LogLevel,
        "No effect: Weftline reports only what keeps it from recording, on stderr.",
    ),
    row(
        "DFTRACER_ERROR",
        &["internal.throw_error"],
        "0",
        Setting::None,
        "No effect: Weftline throws no exceptions in a program.",
    ),
    row(
        "DFTRACER_ENABLE_AGGREGATION",
        &["features.aggregation.enable"],
        "0",
        Setting::None,
        "No effect: every call is recorded; reports aggregate.",
    ),
    row("DFTRACER_AGGREGATION_TYPE", &["features.aggregation.type"], "FULL", Setting::None, "No effect."),
    row("DFTRACER_AGGREGATION_FILE", &["features.aggregation.file"], "", Setting::None, "No effect."),
    row("DFTRACER_TRACE_INTERVAL_MS", &["features.interval"], "1000", Setting::None, "No effect."),
    row(
        "DFTRACER_SET_CORE_AFFINITY",
        &["features.core_affinity"],
        "0",
        Setting::None,
        "No effect: the recorder has no thread that could be pinned.",
    ),
    row(
        "DFTRACER_GOTCHA_PRIORITY",
        &["gotcha.priority"],
        "1",
        Setting::None,
        "No effect: Weftline does not use GOTCHA.",
    ),
    row(
        "DFTRACER_LIBUV_THREADS",
        &["tracer.libuv_threads", "profiler.libuv_threads"],
        "1",
        Setting::None,
        "No effect: the recorder has no threads.",
    ),
    row("DFTRACER_ENABLE_PAPI_TRACING", &["features.papi.enable"], "0", Setting::None, "No effect."),
    row("DFTRACER_PAPI_EVENTS", &["features.papi.events"], "", Setting::None, "No effect."),
    row("DFTRACER_PAPI_MULTIPLEX", &["features.papi.multiplex"], "0", Setting::None, "No effect."),
    row("DFTRACER_PAPI_SAMPLE_INTERVAL_MS", &["features.papi.interval"], "", Setting::None, "No effect."),
    row("DFTRACER_DISABLE_VARIORUM_POWER", &["features.variorum.enable"], "0", Setting::None, "No effect."),
    row(
        "DFTRACER_DEBUG_REGION_TRACK",
        &[],
        "0",
        Setting::None,
        "No effect: a region that is not ended is shown as such.",
    ),
];
