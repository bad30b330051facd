//! The tables and their columns.

use weftline_index::schema::ColumnKind::{self, Integer, Real, Text, Word};
use weftline_index::schema::{EVENTS as EVENT_COLUMNS, EventColumn, Unit, column};

use super::{Column, Table};

const fn always(name: &'static str, kind: ColumnKind, about: &'static str) -> Column {
    Column { name, kind, unit: Unit::Number, nullable: false, about, source: None }
}

const fn maybe(name: &'static str, kind: ColumnKind, about: &'static str) -> Column {
    Column { name, kind, unit: Unit::Number, nullable: true, about, source: None }
}

const fn measured(unit: Unit, column: Column) -> Column {
    Column { unit, ..column }
}

const fn count(name: &'static str, about: &'static str) -> Column {
    measured(Unit::Count, always(name, Integer, about))
}

const fn bytes(name: &'static str, about: &'static str) -> Column {
    measured(Unit::Bytes, always(name, Integer, about))
}

const fn time(name: &'static str, about: &'static str) -> Column {
    measured(Unit::Nanoseconds, always(name, Integer, about))
}

/// A column of events. A name that the schema does not have does not compile.
const fn of(column: EventColumn) -> Column {
    let EventColumn { name, kind, unit, nullable, about, source } = column;
    Column { name, kind, unit, nullable, about, source: Some(source) }
}

const NAME: Column = of(column("name"));
const CAT: Column = of(column("cat"));
const HOST: Column = of(column("host"));
const PID: Column = of(column("pid"));
const TID: Column = of(column("tid"));
const RANK: Column = of(column("rank"));
const PATH: Column = of(column("path"));
const PROCESS: Column = of(column("process"));
const PARENT_PID: Column = measured(Unit::Id, maybe("parent_pid", Integer, "process number of its parent"));
const PROCESS_NAME: Column = maybe("name", Text, "its name in viewers");
const EXE: Column = maybe("exe", Text, "its executable");
const COMMAND: Column = maybe("command", Text, "its command line, words separated by spaces");
const CWD: Column = maybe("cwd", Text, "its working directory at the start");
const NONCE: Column = maybe("nonce", Text, "identifies an exec among those of the same pid");
const BOOT: Column = maybe("boot", Text, "boot id of the kernel");
const START_TICKS: Column = maybe("start_ticks", Integer, "start of the process, clock ticks since boot");
const START: Column = of(column("start_ns"));
const END: Column = of(column("end_ns"));
const SPAN: Column = of(column("dur_ns").always("duration in nanoseconds"));
const OP: Column = of(column("op"));
const MOVED: Column = of(column("bytes"));
const FD: Column = of(column("fd"));
const SIZE: Column = of(column("size"));
const RET: Column = of(column("ret"));
const OFFSET: Column = of(column("offset"));
const EPOCH: Column = of(column("epoch"));
const STEP: Column = of(column("step"));
const LEVEL: Column = of(column("level"));
const ARGS: Column = of(column("args"));
const WHEN: Column = Column { about: "time, nanoseconds since 1970", ..of(column("ts_ns")) };
const INTERVAL: Column =
    Column { about: "the interval that a sample covers, from `ts_ns` on; null if unknown", ..of(column("dur_ns")) };
const UNIT: Column =
    maybe("unit", Word, "unit of the value, such as `percent`, `bytes`, `KiB`, `ns`, `W`; null if unknown");
const TYPE: Column = maybe(
    "type",
    Word,
    "`gauge`: value at the end of the interval; `mean`: average of the interval; `delta`: growth in the interval, so value / dur_ns is a rate; `total`: recorded once at the end",
);
const EVENTS: Column = count("events", "its events, without metadata");
const FIRST: Column = Column { nullable: true, ..time("first_ns", "earliest start of its events") };
const LAST: Column = Column { nullable: true, ..time("last_ns", "latest end of its events") };
const IO_CALLS: Column = count("io_calls", "calls in `io`");
const IO_NS: Column = time("io_ns", "sum of their durations (calls that overlap count twice)");
const READ_BYTES: Column = bytes("read_bytes", "bytes read");
const WRITE_BYTES: Column = bytes("write_bytes", "bytes written");

/// Columns, and behind them what was done by whom they are about.
macro_rules! with_usage {
    ($($own:expr),* $(,)?) => {
        &[$($own,)* EVENTS, IO_CALLS, IO_NS, READ_BYTES, WRITE_BYTES, FIRST, LAST]
    };
}

const ALL_EVENT_COLUMNS: [Column; EVENT_COLUMNS.len()] = {
    let mut all = [NAME; EVENT_COLUMNS.len()];
    let mut place = 0;
    while place < all.len() {
        all[place] = of(EVENT_COLUMNS[place]);
        place += 1;
    }
    all
};

const PRUNED: &[&str] = &["ts_ns", "name", "cat", "path", "host", "pid", "rank", "process", "ph"];
const SPANS_PRUNED: &[&str] = &["start_ns", "end_ns", "name", "cat", "path", "host", "pid", "rank", "process"];
const IO_PRUNED: &[&str] = &["start_ns", "end_ns", "name", "cat", "path", "host", "pid", "rank", "process", "op"];
const COUNTERS_PRUNED: &[&str] = &["ts_ns", "name", "cat", "host", "pid", "rank", "process"];

/// All tables.
pub(crate) const TABLES: &[Table] = &[
    Table {
        name: "events",
        about: "Every event of the run as recorded, metadata included.",
        columns: &ALL_EVENT_COLUMNS,
        pruned_by: PRUNED,
        example: "SELECT cat, name, count(*) AS n, sum(dur_ns) AS ns FROM events WHERE ph = 'X' GROUP BY cat, name ORDER BY ns DESC",
    },
    Table {
        name: "spans",
        about: "Events with a duration: `X`, and `B` with a matching `E`. Spans that never ended are in `events` (`ph = 'B' AND dur_ns IS NULL`).",
        columns: &[
            START, END, SPAN, NAME, CAT, HOST, PID, TID, RANK, PATH, FD, SIZE, RET, OFFSET, EPOCH, STEP, LEVEL,
            PROCESS, ARGS,
        ],
        pruned_by: SPANS_PRUNED,
        example: "SELECT name, human_time(span_union(start_ns, end_ns)) AS wall FROM spans GROUP BY name ORDER BY name",
    },
    Table {
        name: "io",
        about: "Spans of the categories POSIX and STDIO (ignoring case): the program's I/O and system calls.",
        columns: &[
            START, END, SPAN, NAME, CAT, OP, MOVED, HOST, PID, TID, RANK, PATH, FD, SIZE, RET, OFFSET, EPOCH, STEP,
            PROCESS, ARGS,
        ],
        pruned_by: IO_PRUNED,
        example: "SELECT op, count(*) AS calls, human_size(sum(bytes)) AS moved, human_time(sum(dur_ns)) AS time FROM io GROUP BY op ORDER BY calls DESC",
    },
    Table {
        name: "files",
        about: "Paths that events name, with the calls on them.",
        columns: &[
            always("path", Text, "the path, or its hash if the trace does not have the path"),
            maybe("directory", Text, "its directory; null if the path has none"),
            EVENTS,
            IO_CALLS,
            count("opens", "calls that open it"),
            count("reads", "reads"),
            count("writes", "writes"),
            count("metadata_calls", "calls of the operation `metadata`, opens included"),
            count("syncs", "calls that wait until bytes are on disk"),
            READ_BYTES,
            WRITE_BYTES,
            time("read_ns", "sum of the durations of reads"),
            time("write_ns", "sum of the durations of writes"),
            time("metadata_ns", "sum of the durations of metadata calls"),
            IO_NS,
            count("processes", "processes that used it"),
            FIRST,
            LAST,
        ],
        pruned_by: &[],
        example: "SELECT directory, count(*) AS files, sum(read_bytes) AS bytes FROM files GROUP BY directory ORDER BY bytes DESC, directory",
    },
    Table {
        name: "processes",
        about: "One row per process, with all programs that it executed. `process` in other tables is `id` here. The host itself (samples with pid 0) and devices are not processes.",
        columns: with_usage![
            measured(Unit::Id, always("id", Integer, "number of the process within this query")),
            PID,
            HOST,
            maybe("host_hash", Text, "hash of the host in its events"),
            always(
                "label",
                Text,
                "its name in reports: host and pid, with the trace file or the pid namespace if several processes share both",
            ),
            RANK,
            PARENT_PID,
            PROCESS_NAME,
            EXE,
            COMMAND,
            CWD,
            NONCE,
            BOOT,
            START_TICKS,
            count(
                "execs",
                "traced programs that it executed; `exe`, `command` and the columns beside them describe the last one",
            ),
            count("threads", "its threads that have events"),
        ],
        pruned_by: &[],
        example: "SELECT host, pid, name, events, human_size(read_bytes) AS read FROM processes ORDER BY events DESC, pid",
    },
    Table {
        name: "execs",
        about: "Programs that processes executed, one row each, if the trace has them (Weftline's does).",
        columns: with_usage![PROCESS, PID, HOST, PARENT_PID, PROCESS_NAME, EXE, COMMAND, CWD, NONCE, BOOT, START_TICKS,],
        pruned_by: &[],
        example: "SELECT pid, exe, command, events FROM execs ORDER BY first_ns, pid",
    },
    Table {
        name: "threads",
        about: "Threads that have events.",
        columns: with_usage![PROCESS, PID, TID, HOST, RANK, maybe("name", Text, "its name, if the metadata has it"),],
        pruned_by: &[],
        example: "SELECT pid, tid, io_calls, human_time(io_ns) AS io FROM threads ORDER BY io_calls DESC, pid, tid",
    },
    Table {
        name: "hosts",
        about: "Hosts that processes ran on.",
        columns: with_usage![
            maybe("host", Text, "its name, or its hash if the trace does not have the name; null if it has neither",),
            maybe("host_hash", Text, "the hash"),
            count("processes", "processes that ran there"),
            count("threads", "their threads that have events"),
        ],
        pruned_by: &[],
        example: "SELECT host, processes, events, human_size(read_bytes + write_bytes) AS moved FROM hosts ORDER BY host",
    },
    Table {
        name: "counters",
        about: "Values of counter events (`ph` = `C`): one row per value.",
        columns: &[
            WHEN,
            NAME,
            CAT,
            HOST,
            PID,
            TID,
            RANK,
            PROCESS,
            always("key", Word, "which value of the counter"),
            maybe("value", Real, "the value; null if it is not a number"),
            maybe("text", Text, "the value as it was written"),
            INTERVAL,
            UNIT,
            TYPE,
        ],
        pruned_by: COUNTERS_PRUNED,
        example: "SELECT name, key, count(*) AS n, avg(value) AS mean FROM counters GROUP BY name, key ORDER BY name, key",
    },
    Table {
        name: "system",
        about: "Samples of hosts: counters of the categories `sys`, `io` and `net` that belong to no process (pid 0).",
        columns: &[
            WHEN,
            HOST,
            always("kind", Word, "`cpu` (all processors), `core`, `memory`, `disk`, `network`, or else the category"),
            always("device", Word, "which core, disk or interface; else the counter's name"),
            NAME,
            CAT,
            always("metric", Word, "which value, such as `iowait_pct` or `bytes_read`"),
            maybe("value", Real, "the value; null if it is not a number"),
            INTERVAL,
            UNIT,
            TYPE,
        ],
        pruned_by: &["ts_ns", "name", "cat", "host"],
        example: "SELECT time_bucket(ts_ns, '1s') AS second, avg(value) AS iowait FROM system WHERE kind = 'cpu' AND metric = 'iowait_pct' GROUP BY second ORDER BY second",
    },
    Table {
        name: "metadata",
        about: "Metadata of the trace: metadata events (`ph` = `M`), and the strings that hashes stand for.",
        columns: &[
            always("kind", Text, "`event`, or `text` for the string of a hash"),
            maybe("name", Text, "name of the event, or the hash"),
            maybe("text", Text, "the string of the hash; for events the argument `name`, if any"),
            measured(Unit::Nanoseconds, maybe("ts_ns", Integer, "time, if the line has one")),
            maybe("host", Text, "host of the process"),
            measured(Unit::Id, maybe("pid", Integer, "process number")),
            measured(Unit::Id, maybe("tid", Integer, "thread")),
            measured(Unit::Id, maybe("process", Integer, "row of `processes`")),
            maybe("args", Text, "all arguments as a JSON object"),
        ],
        pruned_by: &[],
        example: "SELECT kind, name, count(*) AS n FROM metadata WHERE kind = 'event' GROUP BY kind, name ORDER BY name",
    },
    Table {
        name: "damage",
        about: "Damage of the trace files. Empty if they are intact.",
        columns: &[
            always("file", Text, "the trace file"),
            always("dialect", Text, "the tool that wrote it"),
            maybe("place", Text, "where in the file"),
            always("what", Text, "what was wrong"),
            count("count", "how often: 1, except in the last row of a file with many flaws"),
            bytes("lost_bytes", "bytes that could not be used"),
            maybe("note", Text, "why, in words"),
        ],
        pruned_by: &[],
        example: "SELECT file, what, sum(count) AS flaws, sum(lost_bytes) AS lost FROM damage GROUP BY file, what ORDER BY file, what",
    },
];
