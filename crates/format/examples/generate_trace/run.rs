//! The job as `weft run` writes it: a run directory with one file per process and members that stand alone.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

use weftline_format::Value;
use weftline_format::hash::path_hash;
use weftline_format::identity::Identity;
use weftline_format::line::LineBuf;
use weftline_format::manifest::RunManifest;
use weftline_format::member::{Deflater, seal};

use super::workload::{self, Call, Detail, Extra, FILES, NOTE, OPTIMIZER, ORIGIN_NS, PROCESSES};

/// Text of a member, as the drain closes it.
const MEMBER_TEXT: usize = 1 << 20;

struct Process {
    identity: Identity,
    file: File,
    lines: LineBuf,
    events: u32,
    /// The member that defines a file's hash, by file.
    defined_in: Vec<Option<u64>>,
}

/// Calls to the files of a run.
pub(crate) struct Run {
    processes: Vec<Process>,
    paths: Vec<(String, u64)>,
    deflater: Deflater,
    sealed: Vec<u8>,
    /// What the files hold so far.
    pub(crate) bytes: u64,
}

impl Run {
    /// Makes the directory, which must not hold a run yet.
    pub(crate) fn create(directory: &Path) -> io::Result<Run> {
        fs::create_dir_all(directory)?;
        let manifest = RunManifest {
            id: "generated".into(),
            name: "generated".into(),
            command: vec!["python".into(), "train.py".into()],
            created_ns: ORIGIN_NS,
            host: workload::host(0),
            node: workload::host(0),
            tool_version: "generate_trace".into(),
            ..RunManifest::default()
        };
        manifest.create(directory).map_err(io::Error::other)?;
        let processes = (0..PROCESSES).map(|process| Process::create(directory, process)).collect::<io::Result<_>>()?;
        let named = |file| {
            let path = workload::path(file);
            let hash = path_hash(path.as_bytes());
            (path, hash)
        };
        let paths = (0..FILES).map(named).collect();
        Ok(Run { processes, paths, deflater: Deflater::new(), sealed: Vec::new(), bytes: 0 })
    }

    pub(crate) fn call(&mut self, call: &Call) -> io::Result<()> {
        let process = &mut self.processes[call.process];
        let (pid, tid) = (workload::pid(call.process), workload::tid(call.process, call.thread));
        let lines = &mut process.lines;
        if let Some(file) = call.file
            && process.defined_in[file] != Some(process.identity.seq)
        {
            process.defined_in[file] = Some(process.identity.seq);
            let (path, hash) = &self.paths[file];
            lines.define_path(pid, tid, *hash, path.as_bytes());
        }
        process.events += 1;
        if let Detail::Start = call.detail {
            lines.instant(call.name, call.cat, pid, tid, call.start_ns).finish();
            return Ok(());
        }
        lines.complete(call.name, call.cat, pid, tid, call.start_ns, call.end_ns);
        let hash = call.file.map(|file| self.paths[file].1);
        put_arguments(lines, &call.detail, hash);
        lines.finish();
        if lines.len() >= MEMBER_TEXT { self.seal(call.process) } else { Ok(()) }
    }

    fn seal(&mut self, process: usize) -> io::Result<()> {
        let process = &mut self.processes[process];
        self.sealed.clear();
        seal(process.lines.as_bytes(), process.events, process.identity.seq, &mut self.sealed, &mut self.deflater);
        process.file.write_all(&self.sealed)?;
        self.bytes += self.sealed.len() as u64;
        process.lines.clear();
        process.events = 0;
        process.identity.seq += 1;
        process.identity.write(&mut process.lines);
        Ok(())
    }

    /// Writes what is left.
    pub(crate) fn finish(mut self) -> io::Result<u64> {
        for process in 0..PROCESSES {
            if self.processes[process].events > 0 {
                self.seal(process)?;
            }
        }
        Ok(self.bytes)
    }
}

impl Process {
    fn create(directory: &Path, process: usize) -> io::Result<Process> {
        let (host, pid, nonce) = (workload::host(process), workload::pid(process), format!("{:016x}", process + 1));
        let file = File::create(directory.join(format!("{host}-{pid}-{nonce}.pfw.gz")))?;
        let identity = Identity {
            pid,
            at_ns: ORIGIN_NS,
            name: "python train.py".into(),
            boot: format!("boot of {host}"),
            host,
            pidns: 4_026_531_836,
            start: 1_000 + process as u64,
            nonce,
            ppid: 1,
            exe: "/usr/bin/python3".into(),
            cmd: vec!["python".into(), "train.py".into()],
            cwd: "/p/lustre/job".into(),
            rank: u32::try_from(process).ok(),
            seq: 0,
        };
        let mut lines = LineBuf::with_capacity(MEMBER_TEXT + 4_096);
        lines.open_array();
        identity.write(&mut lines);
        Ok(Process { identity, file, lines, events: 0, defined_in: vec![None; FILES] })
    }
}

fn put_arguments(lines: &mut LineBuf, detail: &Detail, hash: Option<u64>) {
    let descriptor = match detail {
        Detail::Handle { fd } | Detail::Seek { fd, .. } | Detail::Data { fd, .. } => Some(*fd),
        Detail::Start | Detail::Open { .. } | Detail::Span { .. } => None,
    };
    if let Some(fd) = descriptor {
        lines.arg_i64("fd", fd);
    }
    if let Some(hash) = hash {
        lines.arg_hash("fhash", hash);
    }
    match detail {
        Detail::Start => {}
        Detail::Open { fd, flags } => {
            lines.arg_i64("ret", *fd).arg_i64("flags", *flags);
        }
        Detail::Handle { .. } => {
            lines.arg_i64("ret", 0);
        }
        Detail::Seek { offset, .. } => {
            lines.arg_i64("ret", *offset).arg_i64("offset", *offset).arg_i64("whence", 0);
        }
        Detail::Data { count, ret, offset, .. } => {
            lines.arg_i64("size", *count).arg_i64("ret", *ret);
            if let Some(offset) = offset {
                lines.arg_i64("offset", *offset);
            }
        }
        Detail::Span { level, epoch, step, image, extra } => {
            lines.arg_i64("level", *level).arg_i64("epoch", *epoch).arg_i64("step", *step);
            if let Some((index, size)) = image {
                lines.arg_i64("image_idx", *index).arg_i64("image_size", *size);
            }
            match extra {
                Extra::None => {}
                Extra::Note => {
                    lines.arg_str("note", NOTE.as_bytes());
                }
                Extra::Loss(thousandths) => {
                    lines.arg_f64("loss", *thousandths as f64 / 1_000.0);
                }
                Extra::Optimizer => {
                    lines.arg_value("optimizer", &Value::Json(OPTIMIZER.into()));
                }
            }
        }
    }
}
