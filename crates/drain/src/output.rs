//! Members to trace files.
//!
//! A file begins with a small *head* member: `[` and the identity line, so that any other member can be dropped later.
//! Members are appended with one write; a failed write leaves the file unchanged.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use weftline_format::files;
use weftline_format::line::LineBuf;
use weftline_format::member::{self, Deflater, HEADER_LEN};

use crate::Result;
use crate::encode::MemberStats;
use crate::error::DrainError;
use crate::stop::{self, Stop};

/// Number of the head member.
pub(crate) const HEAD: u64 = 0;

/// A data member of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemberNote {
    pub sequence: u64,
    pub size: u64,
    pub stats: MemberStats,
}

/// Members that were dropped to keep within the size limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dropped {
    pub members: u64,
    pub events: u64,
    /// Time from the first of their events to the last, ns since the epoch.
    pub from_ns: i64,
    pub to_ns: i64,
}

impl Dropped {
    pub(crate) fn add(&mut self, members: u64, events: u64, from_ns: i64, to_ns: i64) {
        if members == 0 {
            return;
        }
        self.from_ns = if self.members == 0 { from_ns } else { self.from_ns.min(from_ns) };
        self.to_ns = self.to_ns.max(to_ns);
        self.members += members;
        self.events += events;
    }

    pub(crate) fn merge(&mut self, other: &Dropped) {
        self.add(other.members, other.events, other.from_ns, other.to_ns);
    }
}

/// One trace file that this drain alone writes.
#[derive(Debug)]
pub(crate) struct TraceFile {
    pub name: String,
    /// The identity line that its head holds; empty while the file does not exist.
    pub identity_line: Vec<u8>,
    pub pid: u32,
    /// Bytes of whole members.
    pub length: u64,
    /// Data members that may be dropped: their segments are freed.
    pub members: Vec<MemberNote>,
    pub dropped: Dropped,
}

impl TraceFile {
    pub(crate) fn new(name: String) -> TraceFile {
        TraceFile {
            name,
            identity_line: Vec::new(),
            pid: 0,
            length: 0,
            members: Vec::new(),
            dropped: Dropped::default(),
        }
    }

    pub(crate) fn exists(&self) -> bool {
        self.length > 0
    }

    /// The head member, with what was dropped so far.
    pub(crate) fn head(&self, deflater: &mut Deflater) -> Vec<u8> {
        let mut lines = LineBuf::new();
        lines.open_array();
        lines.lines(&self.identity_line);
        if self.dropped.members > 0 {
            let dropped = &self.dropped;
            lines.metadata("dropped", weftline_format::identity::CATEGORY, self.pid, self.pid);
            lines.arg_u64("members", dropped.members).arg_u64("events", dropped.events);
            lines.arg_i64("from_ns", dropped.from_ns).arg_i64("to_ns", dropped.to_ns).finish();
        }
        let mut head = Vec::new();
        member::seal(lines.as_bytes(), 0, HEAD, &mut head, deflater);
        head
    }

    /// Appends a sealed member; bytes written. The first member brings the head with it: `first_line` is its identity line.
    pub(crate) fn append(
        &mut self,
        run: &Path,
        sealed: &[u8],
        first_line: &[u8],
        pid: u32,
        deflater: &mut Deflater,
    ) -> Result<u64> {
        let path = run.join(&self.name);
        let fail = |error| DrainError::io(&path, error);
        let mut bytes = sealed;
        let whole;
        if !self.exists() {
            self.identity_line = first_line.to_vec();
            self.pid = pid;
            whole = [&self.head(deflater)[..], sealed].concat();
            bytes = &whole;
        }
        let mut file = files::append(&path).map_err(fail)?;
        if stop::reached(Stop::HalfWritten).is_err() {
            file.write_all(&bytes[..bytes.len() / 2]).map_err(fail)?;
            return Err(DrainError::Stopped);
        }
        if let Err(error) = file.write_all(bytes) {
            self.cut_back(&file);
            return Err(fail(error));
        }
        self.length += bytes.len() as u64;
        Ok(bytes.len() as u64)
    }

    fn cut_back(&self, file: &File) {
        // If even this fails, the torn tail is cut by the next recovery, and readers lose one member.
        let _ = file.set_len(self.length);
    }

    /// Rewrites the file without the members in `unwanted`; bytes saved.
    pub(crate) fn drop_members(&mut self, run: &Path, unwanted: &[u64], deflater: &mut Deflater) -> Result<u64> {
        let path = run.join(&self.name);
        // Its name is fixed: one that a killed drain left is removed by the next recovery.
        let beside = run.join(format!(".{}.tmp", self.name));
        let _ = std::fs::remove_file(&beside);
        let dropped_before = self.dropped;
        for note in self.members.iter().filter(|note| unwanted.contains(&note.sequence)) {
            self.dropped.add(1, u64::from(note.stats.events), note.stats.from_ns, note.stats.to_ns);
        }
        let rewritten = self.copy_without(&path, &beside, unwanted, deflater);
        let length = rewritten.inspect_err(|_| {
            self.dropped = dropped_before;
            // A full disk leaves a part of it.
            let _ = std::fs::remove_file(&beside);
        })?;
        stop::reached(Stop::Trimmed)?;
        std::fs::rename(&beside, &path).map_err(|error| DrainError::io(&path, error))?;
        self.members.retain(|note| !unwanted.contains(&note.sequence));
        let saved = self.length.saturating_sub(length);
        self.length = length;
        Ok(saved)
    }

    /// Copies the file member by member; the length of the copy.
    fn copy_without(&self, path: &Path, beside: &Path, unwanted: &[u64], deflater: &mut Deflater) -> Result<u64> {
        let fail = |error| DrainError::io(path, error);
        let fail_beside = |error| DrainError::io(beside, error);
        let from = files::open_in_place(path).map_err(fail)?;
        let mut to = BufWriter::with_capacity(1 << 20, files::create(beside).map_err(fail_beside)?);
        let head = self.head(deflater);
        to.write_all(&head).map_err(fail_beside)?;
        let mut length = head.len() as u64;
        let (mut at, mut header, mut member) = (0, [0; HEADER_LEN], Vec::new());
        while at < self.length {
            from.read_exact_at(&mut header, at).map_err(fail)?;
            let Ok(header) = member::parse_header(&header) else { break };
            if header.size > self.length - at {
                break;
            }
            if header.seq != HEAD && !unwanted.contains(&header.seq) {
                member.resize(header.size as usize, 0);
                from.read_exact_at(&mut member, at).map_err(fail)?;
                to.write_all(&member).map_err(fail_beside)?;
                length += header.size;
            }
            at += header.size;
        }
        to.into_inner().map_err(|error| fail_beside(error.into_error()))?;
        Ok(length)
    }
}
