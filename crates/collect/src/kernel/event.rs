//! One kernel event, and its line in a trace.

use weftline_calls::kernel::{BLOCK, KERNEL};
use weftline_format::hash::path_hash;
use weftline_format::line::LineBuf;

use super::lanes::Lane;

/// The name of the event that a process has ended.
pub(super) const EXIT: &str = "exit";

/// By which tracepoints an event was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// A system call, from entry to exit.
    Call,
    /// An io_uring request, from submission to completion.
    Uring,
    /// A page fault that brought pages of a file into the page cache.
    Fault,
    /// A request of a block device, from issue to completion.
    Block,
    /// A followed process forked, executed a program or ended.
    Process,
}

impl Source {
    /// The category of its lines.
    pub fn category(self) -> &'static str {
        if self == Source::Block { BLOCK } else { KERNEL }
    }
}

/// What only requests of devices have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// Where on the device, in units of 512 bytes.
    pub sector: u64,
    /// What it was, in the letters that blktrace uses: `R`, `W`, `D`, `F`, then `S`ync, `M`etadata, `A`head, …
    pub rwbs: &'a str,
    /// How long it waited between being made and being issued, where the kernel keeps that.
    pub queued_ns: u64,
    /// The thread that issued it: often not the one that caused it.
    pub comm: &'a [u8],
}

/// One event. Times are nanoseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelEvent<'a> {
    /// How it was seen.
    pub source: Source,
    /// The call's name; `io_uring_read` and the like; `page_fault_read`; `read`, `write`, `discard`, `flush` of devices.
    pub name: &'a str,
    /// The process; of devices the one that issued the request.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// When it began.
    pub start_ns: i64,
    /// When it was over.
    pub end_ns: i64,
    /// The file, from the root where that is known.
    pub path: Option<&'a [u8]>,
    /// The other file of calls with two: the new name, the target of a copy.
    pub second_path: Option<&'a [u8]>,
    /// The device.
    pub device: Option<&'a str>,
    /// The descriptor.
    pub fd: Option<i32>,
    /// Bytes that were asked for.
    pub size: Option<u64>,
    /// Where in the file.
    pub offset: Option<i64>,
    /// What the call returned; negative numbers are errors.
    pub result: i64,
    /// Bytes that were read.
    pub read: u64,
    /// Bytes that were written.
    pub written: u64,
    /// Bytes that the page cache did not hold and took in meanwhile.
    pub missed: u64,
    /// Of requests of devices.
    pub request: Option<Request<'a>>,
}

impl<'a> KernelEvent<'a> {
    /// An event without further facts.
    pub fn of(source: Source, name: &'a str, pid: u32, tid: u32) -> KernelEvent<'a> {
        KernelEvent {
            source,
            name,
            pid,
            tid,
            start_ns: 0,
            end_ns: 0,
            path: None,
            second_path: None,
            device: None,
            fd: None,
            size: None,
            offset: None,
            result: 0,
            read: 0,
            written: 0,
            missed: 0,
            request: None,
        }
    }

    /// The error, where it failed.
    pub fn errno(&self) -> Option<i32> {
        (-4095..0).contains(&self.result).then_some(-self.result as i32)
    }

    /// Writes the event's line, in its lane where it has one. `define` is asked for each path, and for each lane of a process: whether this
    /// member of the file lacks the line that says what a number means.
    pub fn encode(&self, lines: &mut LineBuf, lane: Option<Lane>, define: &mut dyn FnMut(u64) -> bool) {
        let tid = lane.map_or(self.tid, |lane| lane.tid);
        if let Some(lane) = lane
            && define(u64::from(self.pid) << 32 | u64::from(lane.tid))
        {
            let what = self.device.unwrap_or("io_uring");
            let name = format!("{what}, request {}", lane.number + 1);
            lines.metadata("thread_name", "PROCESS", self.pid, tid).arg_str("name", name.as_bytes()).finish();
        }
        let mut hash = |path: &[u8], lines: &mut LineBuf| {
            let hash = path_hash(path);
            if define(hash) {
                lines.define_path(self.pid, self.tid, hash, path);
            }
            hash
        };
        let path = self.path.map(|path| hash(path, lines));
        let second = self.second_path.map(|path| hash(path, lines));
        let category = self.source.category();
        if self.source == Source::Process {
            lines.instant(self.name, category, self.pid, self.tid, self.start_ns);
        } else {
            lines.complete(self.name, category, self.pid, tid, self.start_ns, self.end_ns.max(self.start_ns));
        }
        if lane.is_some() {
            lines.arg_u64("issued_by", u64::from(self.tid));
        }
        if let Some(device) = self.device {
            lines.arg_str("device", device.as_bytes());
        }
        if let Some(fd) = self.fd {
            lines.arg_i64("fd", i64::from(fd));
        }
        if let Some(hash) = path {
            lines.arg_hash("fhash", hash);
        }
        if let Some(hash) = second {
            lines.arg_hash("fhash2", hash);
        }
        if let Some(size) = self.size {
            lines.arg_u64("size", size);
        }
        lines.arg_i64("ret", self.result);
        if let Some(errno) = self.errno() {
            lines.arg_i64("errno", i64::from(errno));
        }
        if let Some(offset) = self.offset {
            lines.arg_i64("offset", offset);
        }
        if self.missed > 0 && self.source == Source::Call {
            lines.arg_u64("missed", self.missed);
        }
        if let Some(request) = &self.request {
            lines.arg_u64("sector", request.sector).arg_str("rwbs", request.rwbs.as_bytes());
            lines.arg_u64("queued_ns", request.queued_ns).arg_str("comm", request.comm);
        }
        match self.source {
            Source::Uring => drop(lines.arg_str("via", b"io_uring")),
            Source::Fault => drop(lines.arg_str("via", b"page fault")),
            Source::Call | Source::Block | Source::Process => {}
        }
        lines.finish();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn lines_say_what_happened() {
        let call = KernelEvent {
            start_ns: 1_000_000,
            end_ns: 3_000_000,
            path: Some(b"/data/a"),
            fd: Some(3),
            size: Some(4096),
            offset: Some(8192),
            result: -5,
            missed: 4096,
            ..KernelEvent::of(Source::Call, "pread64", 7, 8)
        };
        let block = KernelEvent {
            source: Source::Block,
            name: "read",
            path: None,
            fd: None,
            offset: None,
            device: Some("vda"),
            result: 4096,
            request: Some(Request { sector: 16, rwbs: "RA", queued_ns: 9, comm: b"cat" }),
            ..call.clone()
        };
        let mut lines = LineBuf::new();
        let mut defined = HashSet::new();
        let lane = Some(Lane { tid: 1 << 30, number: 2 });
        for (event, lane) in [(&call, None), (&call, None), (&block, lane), (&block, lane)] {
            event.encode(&mut lines, lane, &mut |hash| defined.insert(hash));
        }
        let text = String::from_utf8(lines.into_bytes()).expect("plain");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 6, "the path and the lane are defined once: {text}");
        let hash = format!("{:016x}", path_hash(b"/data/a"));
        assert!(lines[0].contains("\"/data/a\"") && lines[0].contains(&hash), "{}", lines[0]);
        assert_eq!(
            lines[1],
            format!(
                r#"{{"name":"pread64","cat":"kernel","ph":"X","pid":7,"tid":8,"ts":1000,"dur":2000,"args":{{"fd":3,"fhash":"{hash}","size":4096,"ret":-5,"errno":5,"offset":8192,"missed":4096}}}}"#
            )
        );
        assert_eq!(
            lines[3],
            r#"{"name":"thread_name","cat":"PROCESS","ph":"M","pid":7,"tid":1073741824,"args":{"name":"vda, request 3"}}"#
        );
        assert!(
            lines[4].contains(
                r#""tid":1073741824,"ts":1000,"dur":2000,"args":{"issued_by":8,"device":"vda","size":4096,"ret":4096,"sector":16,"rwbs":"RA","queued_ns":9,"comm":"cat"}"#
            ),
            "{}",
            lines[4]
        );
    }
}
