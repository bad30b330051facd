//! The tables and their columns.

use super::Kind::{self, Integer, Real, Text, Word};
use super::{Column, Table};

const fn always(name: &'static str, kind: Kind, about: &'static str) -> Column {
    Column { name, kind, nullable: false, about }
}

const fn maybe(name: &'static str, kind: Kind, about: &'static str) -> Column {
    Column { name, kind, nullable: true, about }
}

const NAME: Column = always("name", Word, "what happened: the call, the function, the counter");
const CAT: Column = always("cat", Word, "category as it was written (`POSIX`, `STDIO`, or the program's own)");
const HOST: Column = maybe("host", Word, "host of the process; its hash where the trace does not tell the name");
const PID: Column = always("pid", Integer, "process number on its host; unique only together with `process`");
const TID: Column = always("tid", Integer, "thread");
const RANK: Column = maybe("rank", Integer, "rank of the process within a parallel job");
const PATH: Column = maybe("path", Word, "file that it is about; null where there is none or only its hash is known");
const PROCESS: Column = always("process", Integer, "row of `processes`");
const START: Column = always("start_ns", Integer, "start, nanoseconds since 1970");
const END: Column = always("end_ns", Integer, "end; a negative duration counts as none");
const SPAN: Column = always("dur_ns", Integer, "duration in nanoseconds");
const FD: Column = maybe("fd", Integer, "argument: file descriptor");
const SIZE: Column = maybe("size", Integer, "argument: bytes asked for");
const RET: Column = maybe("ret", Integer, "argument: what the call returned");
const OFFSET: Column = maybe("offset", Integer, "argument: position in the file");
const EPOCH: Column = maybe("epoch", Integer, "argument: epoch of a training, also where it was written as text");
const STEP: Column = maybe("step", Integer, "argument: step of a training, likewise");
const LEVEL: Column = maybe("level", Integer, "argument: depth of nesting as DFTracer counts it, likewise");
const ARGS: Column = maybe("args", Text, "all arguments as a JSON object, but for the hashes behind `path` and `host`");
const EVENTS: Column = always("events", Integer, "events that belong to it, metadata not counted");
const FIRST: Column = maybe("first_ns", Integer, "earliest start of its events");
const LAST: Column = maybe("last_ns", Integer, "latest end of its events");
const IO_CALLS: Column = always("io_calls", Integer, "calls in `io`");
const IO_NS: Column = always("io_ns", Integer, "sum of their durations (calls that overlap count twice)");
const READ_BYTES: Column = always("read_bytes", Integer, "bytes read");
const WRITE_BYTES: Column = always("write_bytes", Integer, "bytes written");

const PRUNED: &[&str] = &["ts_ns", "name", "cat", "path", "host", "pid", "rank", "process", "ph"];
const SPANS_PRUNED: &[&str] = &["start_ns", "end_ns", "name", "cat", "path", "host", "pid", "rank", "process"];
const IO_PRUNED: &[&str] = &["start_ns", "end_ns", "name", "cat", "path", "host", "pid", "rank", "process", "op"];
const COUNTERS_PRUNED: &[&str] = &["ts_ns", "name", "cat", "host", "pid", "rank", "process"];

/// All tables.
pub(crate) const TABLES: &[Table] = &[
    Table {
        name: "events",
        about: "Every event of the run as it was recorded, metadata lines included.",
        columns: &[
            maybe(
                "ts_ns",
                Integer,
                "start, or the moment it happened, nanoseconds since 1970; null where the line has no time",
            ),
            maybe("dur_ns", Integer, "duration in nanoseconds; a `B` has the one that its `E` gives it"),
            NAME,
            CAT,
            always(
                "ph",
                Word,
                "phase, one letter: `X` span, `B`/`E` its two ends, `C` counter, `A` many calls in one record, `i` moment, `M` metadata …",
            ),
            HOST,
            PID,
            TID,
            RANK,
            PATH,
            FD,
            SIZE,
            RET,
            OFFSET,
            EPOCH,
            STEP,
            LEVEL,
            maybe("flags", Integer, "argument: flags of an open"),
            maybe("mode", Integer, "argument: access mode"),
            maybe("whence", Integer, "argument: what a seek is relative to"),
            maybe("image_idx", Integer, "argument: number of a sample, also where it was written as text"),
            maybe("image_size", Integer, "argument: bytes of a sample, likewise"),
            maybe("id", Integer, "the line's `id`, where it is an integer"),
            PROCESS,
            ARGS,
            maybe("extra", Text, "fields of the line beside `args` that have no column, as a JSON object"),
        ],
        pruned_by: PRUNED,
        example: "SELECT cat, name, count(*) AS n, sum(dur_ns) AS ns FROM events WHERE ph = 'X' GROUP BY cat, name ORDER BY ns DESC",
    },
    Table {
        name: "spans",
        about: "Events that took time: `X`, and `B` whose `E` was found. Spans that never ended are in `events` (`ph = 'B' AND dur_ns IS NULL`).",
        columns: &[
            START, END, SPAN, NAME, CAT, HOST, PID, TID, RANK, PATH, FD, SIZE, RET, OFFSET, EPOCH, STEP, LEVEL,
            PROCESS, ARGS,
        ],
        pruned_by: SPANS_PRUNED,
        example: "SELECT name, human_time(span_union(start_ns, end_ns)) AS wall FROM spans GROUP BY name ORDER BY name",
    },
    Table {
        name: "io",
        about: "Spans of the categories POSIX and STDIO (in any case): calls of the program to the system.",
        columns: &[
            START,
            END,
            SPAN,
            NAME,
            CAT,
            always(
                "op",
                Word,
                "`read`, `write`, `metadata`, `sync`, `process`, `ipc` or `other`, by the name of the call",
            ),
            maybe("bytes", Integer, "bytes that a read or write moved: its positive return value"),
            HOST,
            PID,
            TID,
            RANK,
            PATH,
            FD,
            SIZE,
            RET,
            OFFSET,
            EPOCH,
            STEP,
            PROCESS,
            ARGS,
        ],
        pruned_by: IO_PRUNED,
        example: "SELECT op, count(*) AS calls, human_size(sum(bytes)) AS moved, human_time(sum(dur_ns)) AS time FROM io GROUP BY op ORDER BY calls DESC",
    },
    Table {
        name: "files",
        about: "Paths that events are about, with what was done to them.",
        columns: &[
            always("path", Text, "the path; where the trace tells only its hash, that"),
            maybe("directory", Text, "its directory; null where the path has none"),
            EVENTS,
            IO_CALLS,
            always("opens", Integer, "calls that open it"),
            always("reads", Integer, "reads"),
            always("writes", Integer, "writes"),
            always("metadata_calls", Integer, "calls of the operation `metadata`, opens included"),
            always("syncs", Integer, "calls that wait until bytes are safe"),
            READ_BYTES,
            WRITE_BYTES,
            always("read_ns", Integer, "sum of the durations of reads"),
            always("write_ns", Integer, "sum of the durations of writes"),
            always("metadata_ns", Integer, "sum of the durations of metadata calls"),
            IO_NS,
            always("processes", Integer, "processes that used it"),
            FIRST,
            LAST,
        ],
        pruned_by: &[],
        example: "SELECT directory, count(*) AS files, sum(read_bytes) AS bytes FROM files GROUP BY directory ORDER BY bytes DESC, directory",
    },
    Table {
        name: "processes",
        about: "Processes: one row per program between exec and exec. `process` in other tables is `id` here.",
        columns: &[
            always("id", Integer, "number of the process within this query"),
            PID,
            HOST,
            maybe("host_hash", Text, "hash by which its events name the host"),
            RANK,
            maybe("parent_pid", Integer, "process number of its parent"),
            maybe("name", Text, "what viewers call it"),
            maybe("exe", Text, "its executable"),
            maybe("command", Text, "its command line, words separated by blanks"),
            maybe("cwd", Text, "its working directory at the start"),
            maybe("nonce", Text, "what tells it from others with the same pid"),
            maybe("boot", Text, "boot id of the kernel"),
            maybe("start_ticks", Integer, "its start, clock ticks since boot"),
            always("threads", Integer, "its threads that have events"),
            EVENTS,
            IO_CALLS,
            IO_NS,
            READ_BYTES,
            WRITE_BYTES,
            FIRST,
            LAST,
        ],
        pruned_by: &[],
        example: "SELECT host, pid, name, events, human_size(read_bytes) AS read FROM processes ORDER BY events DESC, pid",
    },
    Table {
        name: "threads",
        about: "Threads that have events.",
        columns: &[
            PROCESS,
            PID,
            TID,
            HOST,
            RANK,
            maybe("name", Text, "its name, where a metadata line tells it"),
            EVENTS,
            IO_CALLS,
            IO_NS,
            READ_BYTES,
            WRITE_BYTES,
            FIRST,
            LAST,
        ],
        pruned_by: &[],
        example: "SELECT pid, tid, io_calls, human_time(io_ns) AS io FROM threads ORDER BY io_calls DESC, pid, tid",
    },
    Table {
        name: "hosts",
        about: "Hosts that processes ran on.",
        columns: &[
            maybe(
                "host",
                Text,
                "its name; the hash where the trace does not tell the name, null where it tells neither",
            ),
            maybe("host_hash", Text, "the hash"),
            always("processes", Integer, "processes that ran there"),
            always("threads", Integer, "their threads that have events"),
            EVENTS,
            IO_CALLS,
            IO_NS,
            READ_BYTES,
            WRITE_BYTES,
            FIRST,
            LAST,
        ],
        pruned_by: &[],
        example: "SELECT host, processes, events, human_size(read_bytes + write_bytes) AS moved FROM hosts ORDER BY host",
    },
    Table {
        name: "counters",
        about: "Values of counter events (`ph` = `C`): one row per value.",
        columns: &[
            maybe("ts_ns", Integer, "when, nanoseconds since 1970"),
            NAME,
            CAT,
            HOST,
            PID,
            TID,
            RANK,
            PROCESS,
            always("key", Word, "which value of the counter"),
            maybe("value", Real, "the value; null where it is not a number"),
            maybe("text", Text, "the value as it was written"),
        ],
        pruned_by: COUNTERS_PRUNED,
        example: "SELECT name, key, count(*) AS n, avg(value) AS mean FROM counters GROUP BY name, key ORDER BY name, key",
    },
    Table {
        name: "system",
        about: "Samples of hosts: counters of the categories `sys`, `io` and `net` that belong to no process (pid 0).",
        columns: &[
            maybe("ts_ns", Integer, "when, nanoseconds since 1970"),
            HOST,
            always("kind", Word, "`cpu` (all processors), `core`, `memory`, `disk`, `network`, or else the category"),
            always("device", Word, "which core, disk or interface; else the counter's name"),
            NAME,
            CAT,
            always("metric", Word, "which value, such as `iowait_pct` or `bytes_read`"),
            maybe("value", Real, "the value; null where it is not a number"),
        ],
        pruned_by: &["ts_ns", "name", "cat", "host"],
        example: "SELECT time_bucket(ts_ns, '1s') AS second, avg(value) AS iowait FROM system WHERE kind = 'cpu' AND metric = 'iowait_pct' GROUP BY second ORDER BY second",
    },
    Table {
        name: "metadata",
        about: "What the trace says of itself: metadata events (`ph` = `M`), and the texts behind hashes of strings.",
        columns: &[
            always("kind", Text, "`event`, or `text` for what a hash of a string means"),
            maybe("name", Text, "name of the event, or the hash"),
            maybe("text", Text, "what the hash means; for events the argument `name`, where they have one"),
            maybe("ts_ns", Integer, "when, where the line has a time"),
            maybe("host", Text, "host of the process"),
            maybe("pid", Integer, "process number"),
            maybe("tid", Integer, "thread"),
            maybe("process", Integer, "row of `processes`"),
            maybe("args", Text, "all arguments as a JSON object"),
        ],
        pruned_by: &[],
        example: "SELECT kind, name, count(*) AS n FROM metadata WHERE kind = 'event' GROUP BY kind, name ORDER BY name",
    },
    Table {
        name: "damage",
        about: "What was wrong with the trace files. An empty table: nothing.",
        columns: &[
            always("file", Text, "the trace file"),
            always("dialect", Text, "who wrote it"),
            maybe("place", Text, "where in the file"),
            always("what", Text, "what was wrong"),
            always("count", Integer, "how often: 1, but for the last row of a file with many flaws"),
            always("lost_bytes", Integer, "bytes that could not be used"),
            maybe("note", Text, "why, in words"),
        ],
        pruned_by: &[],
        example: "SELECT file, what, sum(count) AS flaws, sum(lost_bytes) AS lost FROM damage GROUP BY file, what ORDER BY file, what",
    },
];
