//! A command within bounds: of time, of memory, of the files it writes. `programs/bounded.c` keeps the watch.

use std::ffi::OsString;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::compile::{PLAIN, compile};

/// What a command may cost.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Wall time.
    pub time: Duration,
    /// Address space, in bytes. Threads and their allocators reserve much that they never touch.
    pub space: u64,
    /// Resident memory, in bytes.
    pub resident: u64,
    /// The largest file that it may write, in bytes: a disk must not fill up.
    pub file: u64,
}

impl Bounds {
    /// For a verb over a run of some hundred kilobytes. A member may hold 256 MiB of text, and two threads inflate. Recovery maps arenas, 4 MiB each,
    /// of which it touches what is used.
    pub const READING: Bounds =
        Bounds { time: Duration::from_secs(10), space: 16 << 30, resident: 1 << 30, file: 1 << 30 };
    /// For `weft run` with a program that ends within seconds.
    pub const TRACING: Bounds =
        Bounds { time: Duration::from_secs(30), space: 16 << 30, resident: 1 << 30, file: 4 << 30 };
}

/// How a command ended.
#[derive(Clone, Debug, Default)]
pub struct Ended {
    /// Its exit code, if it exited.
    pub code: Option<i32>,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Its time was up.
    pub late: bool,
    /// Peak resident memory in bytes, of the largest of its processes.
    pub resident: u64,
    /// How long it took.
    pub took: Duration,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

impl Ended {
    /// What no input may do, in one line; nothing when all is well.
    pub fn fault(&self, bounds: &Bounds) -> Option<String> {
        let line_with = |word: &str| self.stderr.lines().find(|line| line.contains(word)).map(str::to_owned);
        if self.late {
            return Some(format!("still ran after {:?}", bounds.time));
        }
        if let Some(signal) = self.signal {
            let why = line_with("panicked").or_else(|| line_with("memory allocation")).unwrap_or_default();
            return Some(format!("ended by signal {signal}: {why}"));
        }
        if let Some(panic) = line_with("panicked at") {
            return Some(panic);
        }
        (self.resident > bounds.resident).then(|| format!("took {} MiB of memory", self.resident >> 20))
    }
}

/// Runs a command in a directory, with these variables and no others but `PATH`. What it says is kept in files beside `place` meanwhile: it may remove
/// everything in there.
///
/// # Panics
/// When it cannot be started.
pub fn run(
    command: &[OsString],
    directory: &Path,
    place: &Path,
    environment: &[(&str, PathBuf)],
    bounds: &Bounds,
) -> Ended {
    let beside = |what: &str| place.with_extension(what);
    let (report, out, err) = (beside("report"), beside("stdout"), beside("stderr"));
    let create = |path: &Path| File::create(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut job = Command::new(compile("bounded", PLAIN));
    job.arg(&report).args([bounds.time.as_secs(), bounds.space, bounds.file].map(|number| number.to_string()));
    job.args(command).current_dir(directory).stdin(Stdio::null()).stdout(create(&out)).stderr(create(&err));
    job.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    job.env("LC_ALL", "C");
    // Reserved memory must not depend on the number of processors.
    job.env("MALLOC_ARENA_MAX", "2").env("RAYON_NUM_THREADS", "2").env("RUST_BACKTRACE", "0");
    for (name, value) in environment {
        job.env(name, value);
    }
    let status = job.status().unwrap_or_else(|error| panic!("{:?}: {error}", command[0]));
    let read = |path: &Path| fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let text = |path: &Path| String::from_utf8_lossy(&read(path)).into_owned();
    assert!(status.success(), "{:?} could not be watched: {}", command[0], text(&err));
    let line = text(&report);
    let numbers: Vec<i64> = line.split_ascii_whitespace().map(|word| word.parse().expect("a number")).collect();
    let [code, signal, late, resident, milliseconds] = numbers[..] else { panic!("not a report: {line}") };
    let ended = Ended {
        code: i32::try_from(code).ok().filter(|code| *code >= 0),
        signal: i32::try_from(signal).ok().filter(|signal| *signal > 0),
        late: late != 0,
        resident: resident.unsigned_abs() * 1024,
        took: Duration::from_millis(milliseconds.unsigned_abs()),
        stdout: text(&out),
        stderr: text(&err),
    };
    for file in [report, out, err] {
        fs::remove_file(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
    ended
}
