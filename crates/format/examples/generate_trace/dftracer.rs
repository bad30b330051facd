//! The job as DFTracer's text: one object per line, letters for `ph`, 16 hexadecimal digits for hashes.
//!
//! That is the one dialect which every analyzer of the benchmark reads: `dftracer-utils` 0.0.12 knows no other, and the newer ones still take
//! it. There is no `[` at the start, as in files of DFTracer 2.2, because Polars refuses it.

use weftline_format::hash::{hex, path_hash};

use super::workload::{self, Call, Detail, Extra, FILES, HOSTS, NOTE, OPTIMIZER, PROCESSES};

const COMMAND: &str = "python train.py --data \"/p/lustre/job/data\"";

/// A path and its hash, ready for a line.
struct Named {
    json: String,
    hash: [u8; 16],
}

impl Named {
    fn new(text: &str) -> Named {
        Named { json: serde_json::Value::from(text).to_string(), hash: hex(path_hash(text.as_bytes())) }
    }
}

/// Calls to lines.
pub(crate) struct Lines {
    text: Vec<u8>,
    files: Vec<Named>,
    hosts: Vec<Named>,
    command: Named,
    note: String,
    /// Events so far by process: their ids.
    ids: Vec<u64>,
    /// Which process already said what a file's hash means.
    defined: Vec<bool>,
    /// Lines that define something.
    pub(crate) definitions: u64,
}

impl Lines {
    pub(crate) fn new() -> Lines {
        Lines {
            text: Vec::new(),
            files: (0..FILES).map(|file| Named::new(&workload::path(file))).collect(),
            hosts: (0..HOSTS).map(|host| Named::new(&workload::host(host * PROCESSES / HOSTS))).collect(),
            command: Named::new(COMMAND),
            note: serde_json::Value::from(NOTE).to_string(),
            ids: vec![0; PROCESSES],
            defined: vec![false; PROCESSES * FILES],
            definitions: 0,
        }
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    pub(crate) fn clear(&mut self) {
        self.text.clear();
    }

    pub(crate) fn call(&mut self, call: &Call) {
        let host = self.hosts[workload::host_of(call.process)].hash;
        if let Detail::Start = call.detail {
            self.definitions += 2;
            let (named, out) = (&self.hosts[workload::host_of(call.process)], &mut self.text);
            define(out, "HH", call, &host, named);
            define(out, "SH", call, &host, &self.command);
        }
        if let Some(file) = call.file {
            let defined = &mut self.defined[call.process * FILES + file];
            if !std::mem::replace(defined, true) {
                self.definitions += 1;
                define(&mut self.text, "FH", call, &host, &self.files[file]);
            }
        }
        let out = &mut self.text;
        out.extend_from_slice(b"{\"id\":");
        put(out, self.ids[call.process] as i64);
        self.ids[call.process] += 1;
        text(out, b",\"name\":\"", call.name.as_bytes());
        text(out, b"\",\"cat\":\"", call.cat.as_bytes());
        number(out, b"\",\"pid\":", i64::from(workload::pid(call.process)));
        number(out, b",\"tid\":", i64::from(workload::tid(call.process, call.thread)));
        let (start, end) = (call.start_ns / 1_000, call.end_ns / 1_000);
        number(out, b",\"ts\":", start);
        number(out, b",\"dur\":", end - start);
        text(out, b",\"ph\":\"X\",\"args\":{\"hhash\":\"", &host);
        if let Some(file) = call.file {
            text(out, b"\",\"fhash\":\"", &self.files[file].hash);
        }
        out.extend_from_slice(b"\"");
        match &call.detail {
            Detail::Start => {
                text(out, b",\"cmd_hash\":\"", &self.command.hash);
                out.extend_from_slice(b"\",\"version\":100008,\"date\":\"Mon Sep 21 14:13:20 2026\",\"ppid\":");
                put(out, 1);
            }
            Detail::Open { fd, flags } => {
                number(out, b",\"ret\":", *fd);
                number(out, b",\"flags\":", *flags);
            }
            Detail::Handle { fd } => {
                number(out, b",\"fd\":", *fd);
                number(out, b",\"ret\":", 0);
            }
            Detail::Seek { fd, offset } => {
                number(out, b",\"fd\":", *fd);
                number(out, b",\"offset\":", *offset);
                number(out, b",\"whence\":", 0);
            }
            Detail::Data { fd, count, ret, offset } => {
                number(out, b",\"fd\":", *fd);
                number(out, b",\"ret\":", *ret);
                number(out, b",\"count\":", *count);
                if let Some(offset) = offset {
                    number(out, b",\"offset\":", *offset);
                }
            }
            Detail::Span { level, epoch, step, image, extra } => {
                number(out, b",\"level\":", *level);
                number(out, b",\"epoch\":", *epoch);
                number(out, b",\"step\":", *step);
                if let Some((index, size)) = image {
                    number(out, b",\"image_idx\":", *index);
                    number(out, b",\"image_size\":", *size);
                }
                match extra {
                    Extra::None => {}
                    Extra::Note => text(out, b",\"note\":", self.note.as_bytes()),
                    Extra::Loss(thousandths) => {
                        out.extend_from_slice(
                            format!(",\"loss\":{}.{:03}", thousandths / 1_000, thousandths % 1_000).as_bytes(),
                        );
                    }
                    Extra::Optimizer => text(out, b",\"optimizer\":", OPTIMIZER.as_bytes()),
                }
            }
        }
        out.extend_from_slice(b"}}\n");
    }
}

fn define(out: &mut Vec<u8>, kind: &str, call: &Call, host: &[u8], named: &Named) {
    text(out, b"{\"name\":\"", kind.as_bytes());
    number(out, b"\",\"cat\":\"dftracer\",\"pid\":", i64::from(workload::pid(call.process)));
    number(out, b",\"tid\":", i64::from(workload::tid(call.process, call.thread)));
    text(out, b",\"ph\":\"M\",\"args\":{\"hhash\":\"", host);
    text(out, b"\",\"name\":", named.json.as_bytes());
    text(out, b",\"value\":\"", &named.hash);
    out.extend_from_slice(b"\"}}\n");
}

fn text(out: &mut Vec<u8>, before: &[u8], value: &[u8]) {
    out.extend_from_slice(before);
    out.extend_from_slice(value);
}

fn number(out: &mut Vec<u8>, before: &[u8], value: i64) {
    out.extend_from_slice(before);
    put(out, value);
}

/// Decimal digits; `write!` took a third of the generator's time.
fn put(out: &mut Vec<u8>, value: i64) {
    let (mut digits, mut at, mut rest) = ([0; 20], 20, value.unsigned_abs());
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}
