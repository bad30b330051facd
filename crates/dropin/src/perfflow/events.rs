//! The events of a program, read back from its trace file and sorted into the order in which PerfFlowAspect would have written them: a
//! beginning when it begins, everything else when it ends.
//!
//! Events are kept small: names and categories once, what only few events have in a box of their own.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::LazyLock;

use weftline_calls::CALLS;
use weftline_format::event::{Phase, Value};
use weftline_format::members::{self, MemberError};
use weftline_format::view::EventView;

/// One event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FlowEvent {
    pub phase: Phase,
    pub name: u32,
    pub cat: u32,
    pub pid: i64,
    pub tid: i64,
    pub start_ns: i64,
    pub end_ns: i64,
    pub more: Option<Box<More>>,
}

/// What most events do not have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct More {
    /// What joins async spans and flows.
    pub id: u64,
    /// The id as the program gave it, where it gave one: then it called `async_event` itself.
    pub given_id: Option<Value>,
    /// The scope: nothing, or one that may be `null`.
    pub scope: Option<Option<String>>,
    pub used: Option<Used>,
    /// All other arguments.
    pub args: Vec<(String, Value)>,
}

/// What was used between the start of a span and its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Used {
    /// Processor time of the whole process in user mode.
    pub process_user_ns: u64,
    /// Resident bytes at the end.
    pub rss_end: u64,
    /// What the GPUs were asked, where there are any.
    pub gpu: Option<Gpu>,
}

/// The use of GPUs at a span's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gpu {
    pub busy_pct: u64,
    pub memory_bytes: u64,
}

/// Keys of the arguments by which spans tell what they used.
pub(super) const PROCESS_USER: &str = "process_user_ns";
pub(super) const RSS_END: &str = "rss_end";
pub(super) const GPU_BUSY: &str = "gpu_busy_pct";
pub(super) const GPU_MEMORY: &str = "gpu_memory_bytes";
const USAGE_KEYS: [&str; 10] = [
    "cpu_ns",
    "cpu_user_ns",
    "cpu_system_ns",
    "process_cpu_ns",
    PROCESS_USER,
    "process_system_ns",
    "rss_start",
    RSS_END,
    GPU_BUSY,
    GPU_MEMORY,
];

/// All that a file tells.
#[derive(Debug, Default)]
pub(super) struct Events {
    pub events: Vec<FlowEvent>,
    texts: Vec<String>,
    numbers: HashMap<String, u32>,
}

/// Calls and marks of the recorder: not what the program told.
static CALL_NAMES: LazyLock<HashSet<(&str, &str)>> =
    LazyLock::new(|| CALLS.iter().map(|call| (call.category(), call.name)).collect());

impl Events {
    /// Reads a trace file of one process.
    pub(super) fn read(trace: &Path) -> Result<Events, MemberError> {
        let mut all = Events::default();
        members::for_each_event(trace, &mut |event| all.add(event))?;
        all.sort();
        Ok(all)
    }

    pub(super) fn text(&self, number: u32) -> &str {
        self.texts.get(number as usize).map_or("", String::as_str)
    }

    fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    pub(super) fn add(&mut self, event: &EventView<'_>) {
        let Some(start_ns) = event.start_ns.filter(|_| event.phase != Phase::Metadata) else { return };
        if CALL_NAMES.contains(&(&*event.cat, &*event.name)) {
            return;
        }
        let event = FlowEvent {
            phase: event.phase,
            name: self.number(&event.name),
            cat: self.number(&event.cat),
            pid: event.pid,
            tid: event.tid,
            start_ns,
            end_ns: event.end_ns().unwrap_or(start_ns),
            more: more(event).map(Box::new),
        };
        self.events.push(event);
    }

    /// Threads lie one behind the other in a file. The sort is stable: what a thread told at the same time stays in its order.
    pub(super) fn sort(&mut self) {
        self.events.sort_by_key(|event| event.end_ns);
    }
}

fn more(event: &EventView<'_>) -> Option<More> {
    let mut more = More::default();
    let mut used = Used::default();
    let mut any = false;
    if let Some(id) = event.id() {
        let digits = id.strip_prefix("0x").unwrap_or(&id);
        more.id = u64::from_str_radix(digits, 16).unwrap_or_default();
        any = true;
    }
    let is_async = matches!(event.phase, Phase::AsyncBegin | Phase::AsyncInstant | Phase::AsyncEnd);
    for (key, value) in event.args() {
        any = true;
        match &*key {
            "scope" if is_async => {
                more.scope = Some(match value {
                    Value::Str(scope) => Some(scope),
                    _ => None,
                });
            }
            "id" if is_async => more.given_id = Some(value),
            key if USAGE_KEYS.contains(&key) => {
                let number = value.as_u64().unwrap_or_default();
                match key {
                    PROCESS_USER => used.process_user_ns = number,
                    RSS_END => used.rss_end = number,
                    GPU_BUSY => used.gpu.get_or_insert_default().busy_pct = number,
                    GPU_MEMORY => used.gpu.get_or_insert_default().memory_bytes = number,
                    _ => {}
                }
                more.used = Some(used);
            }
            _ => more.args.push((key.into_owned(), value)),
        }
    }
    any.then_some(more)
}
