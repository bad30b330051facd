//! Which process an event belongs to.
//!
//! Our own members say it once, in their identity line; DFTracer's events each name their host by its hash; others have a pid alone.

use rustc_hash::FxHashMap;
use weftline_format::quick::{Record, members};
use weftline_format::{Value, identity};

use crate::dictionary::Process;

/// The processes that a collector has met.
#[derive(Default)]
pub(crate) struct People {
    pub processes: Vec<Process>,
    by_key: FxHashMap<String, u32>,
    /// Pids that an identity line of this file spoke of.
    identified: FxHashMap<i64, u32>,
    /// Facts came after a process was handed on: it must be handed on again.
    pub changed: Vec<u32>,
    last: Option<Last>,
}

/// The event before: the next one is most likely of the same process.
struct Last {
    pid: i64,
    hhash: Option<String>,
    id: u32,
}

impl People {
    pub(super) fn begin_file(&mut self) {
        self.identified.clear();
        self.last = None;
    }

    /// The process of an event.
    #[inline]
    pub(super) fn of(&mut self, record: &Record<'_>) -> u32 {
        if let Some(last) = &self.last
            && last.pid == record.pid
            && last.hhash.as_deref() == record.hhash
            && !is_identity(record)
        {
            return last.id;
        }
        self.find(record)
    }

    #[cold]
    fn find(&mut self, record: &Record<'_>) -> u32 {
        let id = if is_identity(record) {
            let id = self.intern(identified(record));
            self.identified.insert(record.pid, id);
            id
        } else if let (Some(id), None) = (self.identified.get(&record.pid), record.hhash) {
            *id
        } else {
            let hhash = record.hhash.unwrap_or_default().to_owned();
            self.intern(Process { pid: record.pid, hhash, ..Process::default() })
        };
        // An identity line carries its host's hash, the events after it do not.
        let hhash = record.hhash.filter(|_| !is_identity(record)).map(str::to_owned);
        self.last = Some(Last { pid: record.pid, hhash, id });
        id
    }

    fn intern(&mut self, process: Process) -> u32 {
        let key = process.key();
        if let Some(id) = self.by_key.get(&key).copied() {
            // A program may give itself another name; the latest counts.
            let known = &mut self.processes[id as usize];
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

    /// Takes up what a metadata event tells of its process.
    pub(super) fn learn(&mut self, id: u32, record: &Record<'_>) {
        let process = &mut self.processes[id as usize];
        let argument = |key: &str| members(record.rest).find(|(found, _)| found == key).map(|(_, value)| value);
        match record.name {
            // DFTracer: `name` is the fact, `value` what it is; the other way round for `process_name`.
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

fn is_identity(record: &Record<'_>) -> bool {
    identity::is_identity(record.phase, record.name, record.cat)
}

/// The process that an identity line speaks of.
fn identified(record: &Record<'_>) -> Process {
    let mut process = Process { pid: record.pid, ..Process::default() };
    process.hhash = record.hhash.unwrap_or_default().to_owned();
    for (key, value) in members(record.rest) {
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
            ("cmd", Value::Json(list)) => process.command = serde_json::from_str(&list).unwrap_or_default(),
            _ => {}
        }
    }
    process
}
