//! The identity of a process: read once, and again after an exec.

use std::os::fd::{AsFd, OwnedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::ClockId;
use serde::Serialize;

use super::stat::{Stat, tick_ns};
use weftline_format::secrets::Arguments;

use crate::cgroup::{Container, container_of};
use crate::read::{Kept, keyed, lines};
use crate::roots::Roots;
use crate::sample::{Fact, Sink, Subject, Value};

/// Longer command lines are cut here; some programs pass megabytes.
const LONGEST_COMMAND: usize = 32 << 10;

/// Who a process is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Its id.
    pub pid: u32,
    /// Its parent's.
    pub ppid: u32,
    /// When it started, in clock ticks since boot: with the id, this distinguishes it from a later process with the same id.
    pub start_ticks: u64,
    /// When it started, in nanoseconds since the epoch, to the resolution of a clock tick.
    pub start_ns: i64,
    /// Its short name.
    pub comm: String,
    /// Its command line.
    pub command: Vec<String>,
    /// Its program; none where that may not be read.
    pub exe: Option<String>,
    /// Its user, the real one.
    pub uid: u32,
    /// The container that it runs in.
    pub container: Option<Container>,
}

impl Identity {
    pub(super) fn emit(&self, at_ns: i64, sink: &mut dyn Sink) {
        let command = self.command.join(" ");
        let mut values = vec![
            ("ppid", Fact::Number(Value::Unsigned(u64::from(self.ppid)))),
            ("start_ticks", Fact::Number(Value::Unsigned(self.start_ticks))),
            ("start_ns", Fact::Number(Value::Signed(self.start_ns))),
            ("uid", Fact::Number(Value::Unsigned(u64::from(self.uid)))),
            ("comm", Fact::Text(&self.comm)),
            ("command", Fact::Text(&command)),
        ];
        values.extend(self.exe.as_deref().map(|exe| ("exe", Fact::Text(exe))));
        if let Some(container) = &self.container {
            values.push(("runtime", Fact::Text(container.runtime)));
            values.push(("container", Fact::Text(&container.id)));
            values.extend(container.pod.as_deref().map(|pod| ("pod", Fact::Text(pod))));
        }
        sink.metadata(Subject::Process(self.pid), "process", at_ns, &values);
    }
}

pub(super) fn read(roots: &Roots, pid: u32, directory: &OwnedFd, stat: &Stat, arguments: Arguments) -> Identity {
    let exe = rustix::fs::readlinkat(directory, "exe", Vec::new()).ok();
    Identity {
        pid,
        ppid: stat.ppid,
        start_ticks: stat.start_ticks,
        start_ns: start_ns(stat.start_ticks),
        comm: stat.image.comm(),
        command: command(directory, arguments),
        exe: exe.map(|path| path.to_string_lossy().into_owned()),
        uid: user(directory),
        container: container_of(roots, pid),
    }
}

fn command(directory: &OwnedFd, arguments: Arguments) -> Vec<String> {
    let mut buffer = Vec::new();
    let Ok(file) = Kept::open_at(directory.as_fd(), "cmdline") else { return Vec::new() };
    let Ok(text) = file.read(&mut buffer) else { return Vec::new() };
    let text = &text[..text.len().min(LONGEST_COMMAND)];
    let text = text.strip_suffix(b"\0").unwrap_or(text);
    if text.is_empty() {
        return Vec::new();
    }
    arguments.kept(text.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned()))
}

fn user(directory: &OwnedFd) -> u32 {
    let mut buffer = Vec::new();
    let status = Kept::open_at(directory.as_fd(), "status");
    let text = status.as_ref().ok().and_then(|file| file.read_record(&mut buffer).ok()).unwrap_or_default();
    let found = lines(text).filter_map(keyed).find(|(key, _)| *key == b"Uid");
    let real = found.and_then(|(_, user)| u32::try_from(user).ok());
    // The directory's owner is root for processes that may not be dumped.
    real.or_else(|| Some(rustix::fs::fstat(directory).ok()?.st_uid)).unwrap_or(u32::MAX)
}

/// Ticks since boot on the wall clock. `btime` of `/proc/stat` would be wrong by up to a second.
fn start_ns(start_ticks: u64) -> i64 {
    let boot = rustix::time::clock_gettime(ClockId::Boottime);
    let since_boot = i128::from(boot.tv_sec) * 1_000_000_000 + i128::from(boot.tv_nsec);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos() as i128);
    let start = now - since_boot + i128::from(start_ticks) * i128::from(tick_ns());
    i64::try_from(start).unwrap_or(0)
}
