//! Finds the process of an event.
//!
//! Our own members state it once, in their identity line; DFTracer's events each name their host, by its hash or in full; others have only a pid. An event that does
//! not name its host is on the one host that its file names: between vfork and exec a child writes into its parent's file. If a file names no host,
//! the file itself identifies its processes. The kernel reports the requests of every process to block devices; a process that did nothing else is marked,
//! and is not a process of the run ([`Dictionary::identities`](crate::Dictionary::identities)).

use rustc_hash::{FxHashMap, FxHashSet};
use weftline_calls::kernel::BLOCK;
use weftline_format::Phase;
use weftline_format::quick::{Record, fields};
use weftline_format::{Value, identity};

use crate::dictionary::Process;

/// The processes that a collector has met.
#[derive(Default)]
pub(crate) struct ProcessTable {
    pub processes: Vec<Process>,
    by_key: FxHashMap<String, u32>,
    /// Pids that an identity line of this file spoke of.
    identified: FxHashMap<i64, u32>,
    /// Metadata came after a process was handed on: it must be handed on again.
    pub changed: Vec<u32>,
    /// Facts that files state about all their processes, as far as not passed on yet.
    pub files: Vec<(String, OfFile)>,
    last: Option<Last>,
    file: String,
    /// The process that the file's last identity line spoke of.
    owner: Option<Process>,
    hosts: FxHashSet<String>,
}

/// Facts that a file states about all its processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OfFile {
    /// A host, by its name.
    Host(String),
    /// A host, by its hash.
    HostHash(String),
    /// Their rank.
    Rank(i64),
}

/// How the argument begins by which old DFTracer traces name their host.
const HOSTNAME: &str = "\"hostname\":\"";

/// The event before: the next one is most likely of the same process.
struct Last {
    pid: i64,
    hhash: Option<String>,
    id: u32,
    /// Nothing but requests of devices is known of it yet.
    only_requests: bool,
}

impl ProcessTable {
    pub(super) fn begin_file(&mut self, name: &str) {
        self.identified.clear();
        self.hosts.clear();
        (self.last, self.owner) = (None, None);
        name.clone_into(&mut self.file);
    }

    /// Kineto's facts about the job of the file's process.
    pub(super) fn rank_of_file(&mut self, info: &Value) {
        let Value::Json(text) = info else { return };
        let rank = serde_json::from_str::<serde_json::Value>(text).ok().and_then(|info| info.get("rank")?.as_i64());
        self.files.extend(rank.map(|rank| (self.file.clone(), OfFile::Rank(rank))));
    }

    /// The process of an event.
    #[inline]
    pub(super) fn of(&mut self, record: &Record<'_>) -> u32 {
        if let Some(last) = &self.last
            && last.pid == record.pid
            && last.hhash.as_deref() == record.hhash
            && !is_identity(record)
            && (!last.only_requests || is_request(record))
            && (record.hhash.is_some() || !record.rest.contains(HOSTNAME))
        {
            return last.id;
        }
        self.find(record)
    }

    #[cold]
    fn find(&mut self, record: &Record<'_>) -> u32 {
        let mut hostname = None;
        let id = if is_identity(record) {
            let process = identified(record);
            self.names_host(OfFile::Host(process.host.clone()));
            self.owner = Some(process.clone());
            let id = self.intern(process);
            self.identified.insert(record.pid, id);
            id
        } else if let Some(hhash) = record.hhash {
            self.names_host(OfFile::HostHash(hhash.to_owned()));
            self.intern(Process { pid: record.pid, hhash: hhash.to_owned(), ..Process::default() })
        } else if let Some(id) = self.identified.get(&record.pid) {
            *id
        } else if let Some(owner) = &self.owner {
            let (host, boot, pidns) = (owner.host.clone(), owner.boot.clone(), owner.pidns);
            // Metadata make no process.
            let only_requests = is_request(record) || record.phase == Phase::Metadata;
            self.intern(Process { pid: record.pid, host, boot, pidns, only_requests, ..Process::default() })
        } else {
            hostname = argument(record, "hostname").and_then(|host| host.as_str().map(str::to_owned));
            let host = hostname.clone().unwrap_or_default();
            let file = if host.is_empty() { self.file.clone() } else { String::new() };
            if !host.is_empty() {
                self.names_host(OfFile::Host(host.clone()));
            }
            self.intern(Process { pid: record.pid, host, file, ..Process::default() })
        };
        // An identity line carries its host's hash, the events after it do not. A host named in full is looked at each time.
        let hhash = record.hhash.filter(|_| !is_identity(record)).map(str::to_owned);
        let only_requests = self.processes[id as usize].only_requests;
        self.last = hostname.is_none().then_some(Last { pid: record.pid, hhash, id, only_requests });
        id
    }

    fn names_host(&mut self, host: OfFile) {
        let (OfFile::Host(text) | OfFile::HostHash(text)) = &host else { return };
        if self.hosts.insert(text.clone()) {
            self.files.push((self.file.clone(), host));
        }
    }

    fn intern(&mut self, process: Process) -> u32 {
        let key = process.key();
        if let Some(id) = self.by_key.get(&key).copied() {
            // A program may give itself another name; the latest counts.
            let known = &mut self.processes[id as usize];
            if known.is_only_sampled() && known.command != process.command {
                known.complete(&process);
                self.changed.push(id);
            }
            if known.only_requests && !process.only_requests {
                known.only_requests = false;
                self.changed.push(id);
            }
            if !process.name.is_empty() && known.name != process.name {
                known.name = process.name;
                self.changed.push(id);
            }
            return id;
        }
        let id = self.processes.len() as u32;
        self.processes.push(process);
        self.by_key.insert(key, id);
        id
    }

    /// Adds the facts of a metadata event to its process.
    pub(super) fn learn(&mut self, id: u32, record: &Record<'_>) {
        let process = &mut self.processes[id as usize];
        let argument = |key: &str| argument(record, key);
        match record.name {
            // DFTracer: `name` is the key, `value` what it is; the other way round for `process_name`.
            "PR" if argument("name") == Some(Value::Str("rank".to_owned())) => {
                process.rank = argument("value").and_then(|value| match value {
                    Value::Int(rank) => Some(rank),
                    Value::Str(rank) => rank.parse().ok(),
                    _ => None,
                });
            }
            "process_name" if record.cat != identity::CATEGORY => {
                if let Some(Value::Str(name)) = argument("name") {
                    let rank = name.strip_prefix("Rank ").and_then(|rank| rank.trim().parse().ok());
                    process.rank = process.rank.or(rank);
                    process.name = name;
                }
            }
            _ => return,
        }
        self.changed.push(id);
    }
}

fn argument(record: &Record<'_>, key: &str) -> Option<Value> {
    fields(record.rest).find(|(found, _)| found == key).map(|(_, value)| value)
}

fn is_identity(record: &Record<'_>) -> bool {
    identity::is_identity(record.phase, record.name, record.cat)
}

/// Whether it is a request of a block device, which the kernel told.
fn is_request(record: &Record<'_>) -> bool {
    record.cat == BLOCK && record.phase == Phase::Complete
}

/// The process that an identity line speaks of.
fn identified(record: &Record<'_>) -> Process {
    let mut process = Process { pid: record.pid, ..Process::default() };
    process.hhash = record.hhash.unwrap_or_default().to_owned();
    for (key, value) in fields(record.rest) {
        match (&*key, value) {
            ("name", Value::Str(text)) => process.name = text,
            ("host", Value::Str(text)) => process.host = text,
            ("boot", Value::Str(text)) => process.boot = text,
            ("nonce", Value::Str(text)) => process.nonce = text,
            ("exe", Value::Str(text)) => process.exe = text,
            ("cwd", Value::Str(text)) => process.cwd = text,
            ("ppid", Value::Int(number)) => process.ppid = Some(number),
            ("rank", Value::Int(number)) => process.rank = Some(number),
            ("start", value) => process.start = value.as_u64(),
            // Collectors do not look for it, and write 0.
            ("pidns", value) => process.pidns = value.as_u64().filter(|namespace| *namespace != 0),
            ("cmd", Value::Json(list)) => process.command = serde_json::from_str(&list).unwrap_or_default(),
            _ => {}
        }
    }
    process
}
