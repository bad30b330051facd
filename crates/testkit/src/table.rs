//! A trace reduced to counts per call, file and result, to be compared with what a program is known to do.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use weftline_format::reader::Trace;
use weftline_format::{Event, Phase, Value};

/// What a group of events has in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The call, without the decorations of its symbol: see [`plain`].
    pub call: String,
    /// The file: relative to the working directory when inside, else as the trace names it; `stdout` and `stderr`;
    /// `pipe:`, `socket:` and `#unnamed` (O_TMPFILE) without their numbers; `name:` before what is no path, such as a
    /// program to be found in `PATH`; empty when the event has none.
    pub on: String,
    /// The errno with which the calls failed; 0 when they did not.
    pub errno: i64,
}

/// How often, and how many bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Calls. An event that stands for many counts as many.
    pub calls: u64,
    /// Bytes that the calls moved: the sum of their results, for calls that read or write.
    pub bytes: u64,
}

/// Groups of events.
pub type Table = BTreeMap<Key, Count>;

/// The name of a call without what only tells which symbol of libc it came through: `open64`, `__open_2` and
/// `__open64_2` are `open`; `__isoc99_fscanf` is `fscanf`; `__read_chk` is `read`.
pub fn plain(call: &str) -> &str {
    let call = call.strip_prefix("__isoc99_").or_else(|| call.strip_prefix("__isoc23_")).unwrap_or(call);
    let call = match call.strip_prefix("__") {
        Some(rest) => rest.strip_suffix("_chk").or_else(|| rest.strip_suffix("_2")).unwrap_or(rest),
        None => call,
    };
    match call {
        "preadv64v2" => "preadv2",
        "pwritev64v2" => "pwritev2",
        _ => call.strip_suffix("64").unwrap_or(call),
    }
}

/// Which way a call moves bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// From a file.
    Read,
    /// To a file.
    Write,
    /// From one to another; the event names the one written to.
    Copy,
    /// Nowhere.
    None,
}

/// Which way the call of this plain name moves bytes. Written down here once more instead of asking the product: a
/// mistake there must not hide itself. The scanf family reads too, but nobody can say how much.
pub fn flow(call: &str) -> Flow {
    match call.strip_suffix("_unlocked").unwrap_or(call) {
        "read" | "pread" | "readv" | "preadv" | "preadv2" | "fread" | "fgets" | "getline" | "getdelim" | "getc"
        | "fgetc" | "getchar" | "uflow" => Flow::Read,
        "write" | "pwrite" | "writev" | "pwritev" | "pwritev2" | "fwrite" | "fputs" | "puts" | "putc" | "fputc"
        | "putchar" | "overflow" | "fprintf" | "vfprintf" | "printf" | "vprintf" | "dprintf" | "vdprintf" => {
            Flow::Write
        }
        "sendfile" | "copy_file_range" | "splice" | "tee" => Flow::Copy,
        _ => Flow::None,
    }
}

/// The names a table uses instead of paths.
#[derive(Clone, Debug)]
pub struct Places {
    /// The working directory.
    pub work: PathBuf,
    /// The file that took standard output.
    pub stdout: PathBuf,
    /// The file that took standard error.
    pub stderr: PathBuf,
}

impl Places {
    /// The short name of a path in the trace.
    pub fn name(&self, path: &str) -> String {
        for numbered in ["pipe:", "socket:"] {
            if path.starts_with(numbered) {
                return numbered.to_owned();
            }
        }
        if !path.starts_with('/') && !path.contains(':') && !path.is_empty() {
            return format!("name:{path}");
        }
        let path = Path::new(path);
        if path == self.stdout {
            return "stdout".to_owned();
        }
        if path == self.stderr {
            return "stderr".to_owned();
        }
        match path.strip_prefix(&self.work) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            Ok(inside) if inside.as_os_str().as_encoded_bytes().starts_with(b"#") => "#unnamed".to_owned(),
            Ok(inside) => inside.to_string_lossy().into_owned(),
            Err(_) => path.to_string_lossy().into_owned(),
        }
    }
}

/// A whole-number argument of an event.
pub fn number(event: &Event, argument: &str) -> Option<i64> {
    event.arg(argument).and_then(Value::as_i64)
}

/// What one event adds to its group.
pub fn weigh(event: &Event) -> Count {
    let result = number(event, "ret").unwrap_or(0);
    let moves = flow(plain(&event.name)) != Flow::None && result > 0;
    let calls = number(event, "calls").map_or(1, |calls| calls.unsigned_abs());
    Count { calls, bytes: if moves { result.unsigned_abs() } else { 0 } }
}

/// Counts the calls in a trace.
pub fn table(trace: &Trace, places: &Places) -> Table {
    let mut groups = Table::new();
    for event in trace.events.iter().filter(|event| event.phase == Phase::Complete) {
        let on = trace.path_of(event).map_or_else(String::new, |path| places.name(path));
        let errno = number(event, "ret").filter(|ret| *ret < 0).map_or(0, |ret| -ret);
        let group = groups.entry(Key { call: plain(&event.name).to_owned(), on, errno }).or_default();
        let weight = weigh(event);
        group.calls += weight.calls;
        group.bytes += weight.bytes;
    }
    groups
}

/// Compares a table with what is expected: one line per difference.
///
/// Everything on a file inside the working directory must be expected. Elsewhere (libraries, pipes, standard streams,
/// calls without a file, the directory itself, which every shell looks at) only what is expected is looked at, call by call.
pub fn compare(expected: &Table, seen: &Table) -> Vec<String> {
    let counts = |key: &Key| {
        let inside = !key.on.is_empty() && !key.on.starts_with('/') && !key.on.contains(':');
        let inside = inside && !["stdout", "stderr", "."].contains(&key.on.as_str());
        inside || expected.keys().any(|wanted| wanted.call == key.call && wanted.on == key.on)
    };
    let mut differences = Vec::new();
    for (key, wanted) in expected {
        let got = seen.get(key).copied().unwrap_or_default();
        if got != *wanted {
            differences.push(format!("{}: expected {}, in the trace {}", show(key), sum(wanted), sum(&got)));
        }
    }
    for (key, got) in seen.iter().filter(|(key, _)| counts(key) && !expected.contains_key(*key)) {
        differences.push(format!("{}: not expected, in the trace {}", show(key), sum(got)));
    }
    differences
}

fn show(key: &Key) -> String {
    let failure = if key.errno == 0 { String::new() } else { format!(" failing with errno {}", key.errno) };
    format!("{} on {:?}{failure}", key.call, key.on)
}

fn sum(count: &Count) -> String {
    format!("{} calls, {} bytes", count.calls, count.bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols_become_calls() {
        for (symbol, call) in [
            ("open", "open"),
            ("open64", "open"),
            ("__open_2", "open"),
            ("__open64_2", "open"),
            ("__openat64_2", "openat"),
            ("__read_chk", "read"),
            ("__pread64_chk", "pread"),
            ("__fgets_unlocked_chk", "fgets_unlocked"),
            ("__isoc99_vfscanf", "vfscanf"),
            ("preadv64v2", "preadv2"),
            ("dup2", "dup2"),
            ("wait4", "wait4"),
        ] {
            assert_eq!(plain(symbol), call, "{symbol}");
        }
    }

    #[test]
    fn places_have_short_names() {
        let places =
            Places { work: "/s/work".into(), stdout: "/s/work.stdout".into(), stderr: "/s/work.stderr".into() };
        for (path, name) in [
            ("/s/work/a/b.bin", "a/b.bin"),
            ("/s/work", "."),
            ("/s/work.stdout", "stdout"),
            ("/s/work2/x", "/s/work2/x"),
            ("/s/work/#4711 (deleted)", "#unnamed"),
            ("pipe:[4711]", "pipe:"),
            ("bash", "name:bash"),
        ] {
            assert_eq!(places.name(path), name);
        }
    }

    #[test]
    fn differences_are_found() {
        let key = |call: &str, on: &str| Key { call: call.into(), on: on.into(), errno: 0 };
        let count = |calls, bytes| Count { calls, bytes };
        let expected: Table = [(key("read", "a"), count(2, 20)), (key("fork", ""), count(1, 0))].into();
        let cases: [(Table, usize); 5] = [
            (expected.clone(), 0),
            ([(key("read", "a"), count(2, 19)), (key("fork", ""), count(1, 0))].into(), 1),
            ([(key("read", "a"), count(2, 20))].into(), 1),
            // Surplus inside the working directory counts, elsewhere only for expected calls.
            (
                [(key("read", "a"), count(2, 20)), (key("fork", ""), count(1, 0)), (key("read", "b"), count(1, 0))]
                    .into(),
                1,
            ),
            (
                [
                    (key("read", "a"), count(2, 20)),
                    (key("fork", ""), count(1, 0)),
                    (key("read", "/etc/x"), count(1, 0)),
                ]
                .into(),
                0,
            ),
        ];
        for (seen, differences) in cases {
            assert_eq!(compare(&expected, &seen).len(), differences, "{seen:?}");
        }
    }
}
