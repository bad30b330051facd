//! The identity line: the first object of every member, `process_name` metadata that says which process image the
//! member belongs to. Drop-in files for other tracers name a process once, in their first member; their other members begin
//! with the same line as metadata of another name ([`AGAIN`]).
//!
//! Identity is (host, boot, pid namespace, pid, process start, nonce): `exec` keeps the pid and pids repeat in
//! namespaces, the nonce is new for every image. Viewers read the line as the name of the process.

use crate::event::{Event, Phase, Value};
use crate::hash::path_hash;
use crate::line::LineBuf;
use crate::text::{from_bytes, path_bytes};

/// The category of lines that Weftline writes about the trace itself.
pub const CATEGORY: &str = "weft";

/// What viewers take for the name of the process.
const NAME: &str = "process_name";
/// The line's name in later members of a file that tells the process's name once.
pub const AGAIN: &str = "process_identity";

/// Is a line with this phase, name and category an identity line?
pub fn is_identity(phase: Phase, name: &str, category: &str) -> bool {
    phase == Phase::Metadata && category == CATEGORY && (name == NAME || name == AGAIN)
}

/// Which process image a member belongs to. Texts are held as [`crate::text`] tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The process.
    pub pid: u32,
    /// When the image was first seen, ns since the epoch.
    pub at_ns: i64,
    /// What a viewer calls it: the command line, shortened.
    pub name: String,
    /// The host's name.
    pub host: String,
    /// The kernel's boot id.
    pub boot: String,
    /// The inode of its pid namespace.
    pub pidns: u64,
    /// The process's start time in clock ticks since boot, field 22 of `/proc/PID/stat`.
    pub start: u64,
    /// What tells this image from the one before its `exec`.
    pub nonce: String,
    /// The parent process.
    pub ppid: u32,
    /// The executable.
    pub exe: String,
    /// The command line.
    pub cmd: Vec<String>,
    /// The working directory at start.
    pub cwd: String,
    /// The rank within a parallel job.
    pub rank: Option<u32>,
    /// The sequence number of the member within its image.
    pub seq: u64,
}

impl Identity {
    /// Writes the line.
    pub fn write(&self, lines: &mut LineBuf) {
        self.write_as(NAME, lines);
    }

    /// Writes it in a file that has the process's name already.
    pub fn write_again(&self, lines: &mut LineBuf) {
        self.write_as(AGAIN, lines);
    }

    fn write_as(&self, name: &str, lines: &mut LineBuf) {
        lines.metadata_at(name, CATEGORY, self.pid, self.pid, self.at_ns);
        let texts = [("name", &self.name), ("host", &self.host)];
        for (key, text) in texts {
            lines.arg_str(key, &path_bytes(text));
        }
        lines.arg_hash("hhash", path_hash(&path_bytes(&self.host)));
        lines.arg_str("boot", &path_bytes(&self.boot)).arg_u64("pidns", self.pidns).arg_u64("start", self.start);
        lines.arg_str("nonce", &path_bytes(&self.nonce)).arg_u64("ppid", u64::from(self.ppid));
        lines.arg_str("exe", &path_bytes(&self.exe));
        let cmd: Vec<_> = self.cmd.iter().map(|word| path_bytes(word)).collect();
        lines.arg_strs("cmd", cmd.iter().map(AsRef::as_ref));
        lines.arg_str("cwd", &path_bytes(&self.cwd));
        if let Some(rank) = self.rank {
            lines.arg_u64("rank", u64::from(rank));
        }
        lines.arg_u64("seq", self.seq).finish();
    }

    /// Reads it back; nothing when the event is not an identity line. Fields that are missing are empty.
    pub fn from_event(event: &Event) -> Option<Identity> {
        if !is_identity(event.phase, &event.name, &event.cat) {
            return None;
        }
        let text = |key| event.arg(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let number = |key| event.arg(key).and_then(Value::as_u64);
        let small = |key| number(key).and_then(|v| u32::try_from(v).ok());
        let cmd = match event.arg("cmd") {
            Some(Value::Json(list)) => crate::json::string_list(list.as_bytes()),
            _ => Vec::new(),
        };
        Some(Identity {
            pid: u32::try_from(event.pid).ok()?,
            at_ns: event.start_ns.unwrap_or(0),
            name: text("name"),
            host: text("host"),
            boot: text("boot"),
            pidns: number("pidns").unwrap_or(0),
            start: number("start").unwrap_or(0),
            nonce: text("nonce"),
            ppid: small("ppid").unwrap_or(0),
            exe: text("exe"),
            cmd,
            cwd: text("cwd"),
            rank: small("rank"),
            seq: number("seq").unwrap_or(0),
        })
    }
}

/// A text for [`Identity`] from the bytes that the kernel gave.
pub fn held(bytes: &[u8]) -> String {
    from_bytes(bytes).into_owned()
}
