//! From records to events: the call's name, its paths, its bytes, its times.

use std::path::Path;

use weftline_calls::kernel::{self, KernelCall};
use weftline_calls::{Flow, Operation};

use super::anchors::Anchors;
use super::calls::{Table, argument};
use super::devices::Devices;
use super::event::{EXIT, KernelEvent, Request, Source};
use super::files::{Files, SharedPath};
use super::record::{Record, RecordKind};

/// What is known between records.
pub(super) struct Translator {
    calls: Table,
    files: Files,
    devices: Devices,
    clock: Anchors,
    /// Names of io_uring operations, `io_uring_` in front; by number.
    uring: Vec<(String, Flow)>,
}

impl std::fmt::Debug for Translator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Translator").field("files", &self.files).finish_non_exhaustive()
    }
}

type Take<'t> = &'t mut dyn FnMut(&KernelEvent<'_>);

impl Translator {
    pub(super) fn new(proc: &Path, sys: &Path) -> Translator {
        let uring = (0..256).map(|number| {
            let (name, operation) = kernel::uring(number);
            (format!("io_uring_{name}"), operation.flow())
        });
        Translator {
            calls: Table::new(),
            files: Files::new(proc),
            devices: Devices::new(sys),
            clock: Anchors::new(),
            uring: uring.collect(),
        }
    }

    pub(super) fn refresh_clock(&mut self) {
        self.clock.refresh();
    }

    pub(super) fn follow(&mut self, pid: u32) {
        self.files.follow(pid);
    }

    /// Hands the event of a record on; false where it makes none.
    pub(super) fn translate(&mut self, record: &Record<'_>, take: Take<'_>) -> bool {
        match record.kind {
            RecordKind::Call => return self.call(record, take),
            RecordKind::Uring => self.uring(record, take),
            RecordKind::Fault => self.fault(record, take),
            RecordKind::Block => self.block(record, take),
            RecordKind::Fork => {
                self.files.forked(record.tgid, record.result as u32);
                take(&KernelEvent { source: Source::Process, result: record.result, ..self.event(record, "fork") });
            }
            RecordKind::Exec => {
                self.files.executed(record.tgid);
                let path = self.files.resolve(record.path, record.tgid, None);
                let program = self.files.resolve(record.second_path, record.tgid, None);
                take(&KernelEvent {
                    source: Source::Process,
                    path: Some(&path),
                    second_path: (program != path).then_some(&*program),
                    ..self.event(record, "exec")
                });
            }
            RecordKind::Exit => {
                self.files.exited(record.tgid);
                take(&KernelEvent { source: Source::Process, ..self.event(record, EXIT) });
            }
        }
        true
    }

    fn event<'n>(&self, record: &Record<'_>, name: &'n str) -> KernelEvent<'n> {
        KernelEvent {
            start_ns: self.clock.realtime(record.start),
            end_ns: self.clock.realtime(record.end),
            result: record.result,
            missed: record.missed,
            ..KernelEvent::of(Source::Call, name, record.tgid, record.tid)
        }
    }

    fn call(&mut self, record: &Record<'_>, take: Take<'_>) -> bool {
        let Some(call) = self.calls.get(record.number) else { return false };
        let pid = record.tgid;
        let descriptor = |place: u8| argument(place, &record.args).map(|fd| fd as i32).filter(|&fd| fd >= 0);
        let (fd, second_fd) = (descriptor(call.file), descriptor(call.second_file));
        let at_fd = self.files.path(record.first, pid, fd);
        let at_second = if call.returns_file { None } else { self.files.path(record.second, pid, second_fd) };
        let from_root = |path: &[u8], directory: &Option<SharedPath>| {
            (!path.is_empty() || directory.is_some()).then(|| self.files.resolve(path, pid, directory.as_deref()))
        };
        let given = if call.path > 0 { from_root(record.path, &at_fd) } else { at_fd };
        let second = if call.second_path > 0 { from_root(record.second_path, &at_second) } else { at_second };
        if record.result >= 0 {
            self.learn(call, record, given.as_ref());
        }
        let (read, written) = moved(call.info.flow(), record.result);
        let event = KernelEvent {
            path: given.as_deref(),
            second_path: second.as_deref(),
            fd: if call.returns_file { i32::try_from(record.result).ok().filter(|&fd| fd >= 0) } else { fd },
            size: argument(call.size, &record.args),
            offset: argument(call.offset, &record.args).map(|offset| offset as i64),
            read,
            written,
            ..self.event(record, call.info.name)
        };
        take(&event);
        true
    }

    /// Opened files and changed directories.
    fn learn(&mut self, call: &KernelCall, record: &Record<'_>, path: Option<&SharedPath>) {
        let Some(path) = path else { return };
        if call.returns_file
            && let Some(identity) = record.second.known()
        {
            self.files.opened(identity, path.clone());
        }
        if call.info.operation == Operation::ChangeDirectory {
            self.files.changed_directory(record.tgid, path.clone());
        }
    }

    fn uring(&mut self, record: &Record<'_>, take: Take<'_>) {
        let path = self.files.path(record.first, record.tgid, None);
        let (name, flow) = &self.uring[usize::from(record.number.min(255))];
        let (read, written) = moved(*flow, record.result);
        let transfers = *flow != Flow::None;
        take(&KernelEvent {
            source: Source::Uring,
            path: path.as_deref(),
            size: transfers.then_some(record.args[0]),
            offset: transfers.then_some(record.args[1] as i64),
            read,
            written,
            ..self.event(record, name)
        });
    }

    fn fault(&mut self, record: &Record<'_>, take: Take<'_>) {
        let path = self.files.path_of_inode(record.first.inode);
        let bytes = record.result.max(0) as u64;
        // A file that was mapped before its process was followed is named by device and inode.
        let unnamed = path.is_none().then(|| format!("{} inode {}", self.devices.name(record.device), record.args[2]));
        take(&KernelEvent {
            source: Source::Fault,
            path: path.as_deref(),
            device: unnamed.as_deref(),
            offset: Some(record.args[1] as i64),
            missed: bytes,
            ..self.event(record, "page_fault_read")
        });
    }

    fn block(&mut self, record: &Record<'_>, take: Take<'_>) {
        let flags = record.args[2];
        let (name, rwbs) = describe(flags);
        let bytes = record.args[0];
        let failed = record.result != 0;
        let result = if failed { -i64::from(status_errno(record.result)) } else { bytes as i64 };
        let count = |wanted: bool| if wanted && !failed { bytes } else { 0 };
        let comm: Vec<u8> =
            record.args[4..].iter().flat_map(|word| word.to_le_bytes()).take_while(|&byte| byte != 0).collect();
        let event = self.event(record, name);
        take(&KernelEvent {
            source: Source::Block,
            device: Some(self.devices.name(record.device)),
            size: Some(bytes),
            result,
            read: count(operation(flags) == REQUEST_READ),
            written: count(operation(flags) == REQUEST_WRITE),
            request: Some(Request { sector: record.args[1], rwbs: &rwbs, queued_ns: record.args[3], comm: &comm }),
            ..event
        });
    }
}

fn moved(flow: Flow, result: i64) -> (u64, u64) {
    let bytes = result.max(0) as u64;
    (if flow.reads() { bytes } else { 0 }, if flow.writes() { bytes } else { 0 })
}

/// Of `enum req_op`.
const REQUEST_READ: u64 = 0;
const REQUEST_WRITE: u64 = 1;

fn operation(flags: u64) -> u64 {
    flags & 0xff
}

/// What a request is, from its flags (`enum req_op` in the low byte, `enum req_flag_bits` above): a word and blktrace's letters.
fn describe(flags: u64) -> (&'static str, String) {
    let (name, letter) = match operation(flags) {
        REQUEST_READ => ("read", "R"),
        REQUEST_WRITE => ("write", "W"),
        2 => ("flush", "F"),
        3 => ("discard", "D"),
        5 => ("secure_erase", "DE"),
        7 => ("zone_append", "ZA"),
        9 => ("write_zeroes", "WZ"),
        _ => ("other", "N"),
    };
    let bit = |place: u32| flags >> place & 1 == 1;
    let mut letters = String::new();
    for (on, letter) in [(bit(18), "F"), (true, letter), (bit(17), "F"), (bit(19), "A"), (bit(11), "S"), (bit(12), "M")]
    {
        if on {
            letters.push_str(letter);
        }
    }
    (name, letters)
}

/// `errno` of a `blk_status_t`.
fn status_errno(status: i64) -> i32 {
    match status {
        1 => libc::EOPNOTSUPP,
        2 => libc::ETIMEDOUT,
        3 => libc::ENOSPC,
        4 => libc::ENOLINK,
        5 => libc::EREMOTEIO,
        6 => libc::EBADE,
        7 => libc::ENODATA,
        8 => libc::EILSEQ,
        9 => libc::ENOMEM,
        12 => libc::EAGAIN,
        _ => libc::EIO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_described() {
        for (flags, name, letters) in [
            (0, "read", "R"),
            (1 | 1 << 11, "write", "WS"),
            (1 << 19, "read", "RA"),
            (1 | 1 << 18 | 1 << 17 | 1 << 11, "write", "FWFS"),
            (3, "discard", "D"),
            (34, "other", "N"),
        ] {
            assert_eq!(describe(flags), (name, letters.to_owned()));
        }
    }
}
