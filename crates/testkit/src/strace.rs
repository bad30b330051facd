//! The kernel's view of a program, through `strace`: bytes read from and written to each file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;

use weftline_format::reader::Trace;
use weftline_format::{Phase, Value};

use crate::run::{Job, Outcome};
use crate::table::{Flow, flow, number, plain};

/// Bytes that were read from and written to a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// From the file.
    pub read: u64,
    /// To the file.
    pub written: u64,
}

/// Bytes per path.
pub type PerFile = BTreeMap<String, Bytes>;

const READS: &[&str] = &["read", "pread64", "readv", "preadv", "preadv2"];
const WRITES: &[&str] = &["write", "pwrite64", "writev", "pwritev", "pwritev2"];
/// Source and target descriptor by argument position.
const COPIES: &[(&str, usize, usize)] = &[("copy_file_range", 0, 2), ("sendfile", 1, 0), ("splice", 0, 2)];

/// Runs a job under `strace -ff -y` and sums what it saw.
///
/// # Panics
/// When strace cannot be started or leaves no log.
pub fn strace(job: &Job, logs: &Path) -> (Outcome, PerFile) {
    let calls: Vec<&str> = READS.iter().chain(WRITES).copied().chain(COPIES.iter().map(|copy| copy.0)).collect();
    let mut command: Vec<OsString> = ["strace", "-ff", "-y", "-qq", "-s", "0", "-e"].map(Into::into).to_vec();
    command.extend([format!("trace={}", calls.join(",")).into(), "-e".into(), "signal=none".into(), "-o".into()]);
    command.extend([logs.join("log").into_os_string(), "--".into()]);
    command.extend(job.command.iter().cloned());
    let outcome = Job { command, ..job.clone() }.run();
    let mut sums = PerFile::new();
    let mut found = 0;
    for entry in fs::read_dir(logs).unwrap_or_else(|error| panic!("{}: {error}", logs.display())) {
        let path = entry.unwrap_or_else(|error| panic!("{}: {error}", logs.display())).path();
        let log = fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        String::from_utf8_lossy(&log).lines().for_each(|line| add(line, &mut sums));
        found += 1;
    }
    assert!(found > 0, "strace left no log in {}; is it installed, and may it trace here?", logs.display());
    (outcome, sums)
}

/// Adds one line of a log: `read(3</path>, ""..., 4096) = 4096`.
fn add(line: &str, sums: &mut PerFile) {
    let Some((call, rest)) = line.split_once('(') else { return };
    let Some(bytes) = line.rsplit_once(" = ").and_then(|(_, result)| result.split(' ').next()?.parse::<u64>().ok())
    else {
        return; // failed, or never finished
    };
    let mut count = |position: usize, read: u64, written: u64| {
        let path = rest.split(", ").nth(position).and_then(|argument| argument.split_once('<'));
        let path = path.and_then(|(_, path)| path.rfind('>').map(|end| &path[..end])).unwrap_or("");
        let sum = sums.entry(path.to_owned()).or_default();
        sum.read += read;
        sum.written += written;
    };
    if READS.contains(&call) {
        count(0, bytes, 0);
    } else if WRITES.contains(&call) {
        count(0, 0, bytes);
    } else if let Some((_, from, to)) = COPIES.iter().find(|copy| copy.0 == call) {
        count(*from, bytes, 0);
        count(*to, 0, bytes);
    }
}

/// The sum of one file, or of all files below a path that ends in `/`.
pub fn sum(sums: &PerFile, path: &str) -> Bytes {
    let chosen = sums.iter().filter(|(name, _)| *name == path || path.ends_with('/') && name.starts_with(path));
    chosen.fold(Bytes::default(), |sum, (_, more)| Bytes {
        read: sum.read + more.read,
        written: sum.written + more.written,
    })
}

/// The same sums from a trace.
pub fn traced(trace: &Trace) -> PerFile {
    let mut sums = PerFile::new();
    for event in trace.events.iter().filter(|event| event.phase == Phase::Complete) {
        let bytes = number(event, "ret").unwrap_or(0).max(0).unsigned_abs();
        let path = trace.path_of(event).unwrap_or("").to_owned();
        match flow(plain(&event.name)) {
            Flow::Read => sums.entry(path).or_default().read += bytes,
            Flow::Write => sums.entry(path).or_default().written += bytes,
            Flow::Copy => {
                sums.entry(path).or_default().written += bytes;
                let from = event
                    .arg("fhash2")
                    .and_then(Value::as_str)
                    .and_then(|hash| trace.names.path(hash))
                    .unwrap_or("")
                    .to_owned();
                sums.entry(from).or_default().read += bytes;
            }
            Flow::None => {}
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_summed() {
        let mut sums = PerFile::new();
        for line in [
            r#"read(3</a/b>, ""..., 4096) = 100"#,
            r#"pread64(3</a/b>, ""..., 10, 0) = 10"#,
            r#"write(1</out>, ""..., 7) = 7"#,
            r#"writev(4</out>, [{iov_base=""..., iov_len=3}], 1) = 3"#,
            r#"read(3</a/b>, 0x7ff, 4096) = -1 EAGAIN (Resource temporarily unavailable)"#,
            r#"read(0</dev/null>,  <unfinished ...>"#,
            r#"sendfile(5</to>, 3</a/b>, [0] => [50], 100) = 50"#,
            r#"copy_file_range(3</a/b>, NULL, 5</to>, NULL, 9, 0) = 9"#,
        ] {
            add(line, &mut sums);
        }
        assert_eq!(sums["/a/b"], Bytes { read: 169, written: 0 });
        assert_eq!(sums["/out"], Bytes { read: 0, written: 10 });
        assert_eq!(sums["/to"], Bytes { read: 0, written: 59 });
    }
}
