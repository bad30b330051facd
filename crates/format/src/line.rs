//! The writer of trace lines: one JSON object per event, nothing allocated per event.
//!
//! ```
//! use weftline_format::line::LineBuf;
//! let mut lines = LineBuf::new();
//! lines.open_array();
//! lines.complete("pread64", "POSIX", 22029, 22031, 1_794_764_744_755_824_123, 1_794_764_744_755_831_456);
//! lines.arg_i64("fd", 3).arg_hash("fhash", 0x0d6c_6bbd_b835_9188).arg_i64("ret", 4096).finish();
//! assert_eq!(lines.as_bytes().escape_ascii().to_string(), concat!(
//!     r#"[\n{\"name\":\"pread64\",\"cat\":\"POSIX\",\"ph\":\"X\",\"pid\":22029,\"tid\":22031,"#,
//!     r#"\"ts\":1794764744755824,\"ns\":123456,\"dur\":7,"#,
//!     r#"\"args\":{\"fd\":3,\"fhash\":\"0d6c6bbdb8359188\",\"ret\":4096}}\n"#));
//! ```
//!
//! **Time.** `ts` is the start and `dur` the distance of the ends, each end floored to whole microseconds, because
//! viewers keep no more of an absolute time, and two neighbours floored alike can touch but never overlap. `ns` holds
//! the remainders, `(start % 1000) * 1000 + end % 1000`, and is left out when zero. It is placed
//! after `ts`, since both change from line to line while `dur` often does not: 13.7 bytes per event, and 14.3 if it followed `dur`.
//!
//! **Floats.** JSON has no NaN: the strings `"NaN"`, `"Infinity"` and `"-Infinity"` stand for them, and text that
//! happens to be one of these is written with its first letter escaped, so that both come back as what they were.

mod general;

pub(crate) use general::named_float;

use crate::event::Value;
use crate::hash::hex;
use crate::store::{Cursor, Store};
use crate::text::{escape_odd_str, is_plain};

/// Lines of a trace in the making. Every event is one call that starts a line, `arg_*` calls, and [`LineBuf::finish`].
#[derive(Debug, Default)]
pub struct LineBuf {
    out: Store,
    /// Process and thread of the line before, and the text that says them: the same for most lines.
    thread: Thread,
    /// Where names that need escapes are escaped.
    odd: Vec<u8>,
    /// Whether the line at hand has its `args` open.
    in_args: bool,
}

/// The part of a line that says process and thread, from the quote that ends `ph`.
#[derive(Debug)]
struct Thread {
    pid: u32,
    tid: u32,
    text: [u8; THREAD_ROOM],
    len: usize,
}

/// `","pid":4294967295,"tid":4294967295` and a store that reaches beyond it.
const THREAD_ROOM: usize = 48;
/// The punctuation of a line's head: keys, `ph`, process, thread, three times with the longest digits.
const HEAD_ROOM: usize = 160;
/// The punctuation of an argument and the longest number or hash.
const ARG_ROOM: usize = 48;

impl Default for Thread {
    fn default() -> Self {
        let mut thread = Thread { pid: 0, tid: 0, text: [0; THREAD_ROOM], len: 0 };
        thread.set(0, 0);
        thread
    }
}

impl Thread {
    #[inline(never)]
    fn set(&mut self, pid: u32, tid: u32) {
        (self.pid, self.tid) = (pid, tid);
        let mut out = Cursor::new(&mut self.text);
        out.put(b"\",\"pid\":");
        out.put_u64(u64::from(pid));
        out.put(b",\"tid\":");
        out.put_u64(u64::from(tid));
        self.len = out.len();
    }
}

impl LineBuf {
    /// An empty buffer.
    pub fn new() -> LineBuf {
        LineBuf::default()
    }

    /// An empty buffer that holds that many bytes before it grows.
    pub fn with_capacity(bytes: usize) -> LineBuf {
        LineBuf { out: Store::with_capacity(bytes), ..LineBuf::default() }
    }

    /// The finished lines.
    pub fn as_bytes(&self) -> &[u8] {
        self.out.written()
    }

    /// How many bytes they are.
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// Whether nothing was written.
    pub fn is_empty(&self) -> bool {
        self.out.len() == 0
    }

    /// Forgets the lines and keeps the memory.
    pub fn clear(&mut self) {
        self.out.truncate(0);
        self.in_args = false;
    }

    /// Forgets what was written after the first `len` bytes: a line that turned out not to be wanted.
    pub fn truncate(&mut self, len: usize) {
        self.out.truncate(len);
        self.in_args = false;
    }

    /// The lines, as a vector.
    pub fn into_bytes(self) -> Vec<u8> {
        self.out.into_vec()
    }

    /// The `[` that opens a file; only its first member has it.
    pub fn open_array(&mut self) {
        self.out.put_slice(b"[\n");
    }

    /// Whole lines made elsewhere, their newlines included.
    pub fn lines(&mut self, text: &[u8]) {
        self.out.put_slice(text);
    }

    /// A span.
    #[inline(always)]
    pub fn complete(&mut self, name: &str, cat: &str, pid: u32, tid: u32, start_ns: i64, end_ns: i64) -> &mut LineBuf {
        self.start(name, cat, b'X', pid, tid, None, Time::Span(start_ns, end_ns))
    }

    /// An instant.
    pub fn instant(&mut self, name: &str, cat: &str, pid: u32, tid: u32, at_ns: i64) -> &mut LineBuf {
        self.start(name, cat, b'i', pid, tid, None, Time::At(at_ns))
    }

    /// Values at a point in time: the arguments that follow.
    pub fn counter(&mut self, name: &str, cat: &str, pid: u32, tid: u32, at_ns: i64) -> &mut LineBuf {
        self.start(name, cat, b'C', pid, tid, None, Time::At(at_ns))
    }

    /// Values of a stretch of time. Viewers show them from its start on; `dur` tells readers where it ends.
    pub fn counter_over(
        &mut self,
        name: &str,
        cat: &str,
        pid: u32,
        tid: u32,
        start_ns: i64,
        end_ns: i64,
    ) -> &mut LineBuf {
        self.start(name, cat, b'C', pid, tid, None, Time::Span(start_ns, end_ns))
    }

    /// The start of a span on the thread's stack.
    pub fn begin(&mut self, name: &str, cat: &str, pid: u32, tid: u32, at_ns: i64) -> &mut LineBuf {
        self.start(name, cat, b'B', pid, tid, None, Time::At(at_ns))
    }

    /// The end of the newest open span.
    pub fn end(&mut self, name: &str, cat: &str, pid: u32, tid: u32, at_ns: i64) -> &mut LineBuf {
        self.start(name, cat, b'E', pid, tid, None, Time::At(at_ns))
    }

    /// The start of a span that may overlap others; its end has the same category and id.
    pub fn async_begin(&mut self, name: &str, cat: &str, pid: u32, tid: u32, at_ns: i64, id: u64) -> &mut LineBuf {
        self.start(name, cat, b'b', pid, tid, Some(id), Time::At(at_ns))
    }

    /// Its end.
    pub fn async_end(&mut self, name: &str, cat: &str, pid: u32, tid: u32, at_ns: i64, id: u64) -> &mut LineBuf {
        self.start(name, cat, b'e', pid, tid, Some(id), Time::At(at_ns))
    }

    /// An instant within it.
    pub fn async_instant(&mut self, name: &str, cat: &str, pid: u32, tid: u32, at_ns: i64, id: u64) -> &mut LineBuf {
        self.start(name, cat, b'n', pid, tid, Some(id), Time::At(at_ns))
    }

    /// The start of an arrow, from the span that encloses this time.
    pub fn flow_start(&mut self, name: &str, cat: &str, pid: u32, tid: u32, at_ns: i64, id: u64) -> &mut LineBuf {
        self.start(name, cat, b's', pid, tid, Some(id), Time::At(at_ns))
    }

    /// A step on its way.
    pub fn flow_step(&mut self, name: &str, cat: &str, pid: u32, tid: u32, at_ns: i64, id: u64) -> &mut LineBuf {
        self.start(name, cat, b't', pid, tid, Some(id), Time::At(at_ns))
    }

    /// Its end, in the span that encloses this time (`"bp":"e"`; without it viewers take the next span).
    pub fn flow_end(&mut self, name: &str, cat: &str, pid: u32, tid: u32, at_ns: i64, id: u64) -> &mut LineBuf {
        self.start(name, cat, b'f', pid, tid, Some(id), Time::At(at_ns))
    }

    /// Metadata without a time.
    pub fn metadata(&mut self, name: &str, cat: &str, pid: u32, tid: u32) -> &mut LineBuf {
        self.start(name, cat, b'M', pid, tid, None, Time::None)
    }

    /// Metadata that has a time.
    pub fn metadata_at(&mut self, name: &str, cat: &str, pid: u32, tid: u32, at_ns: i64) -> &mut LineBuf {
        self.start(name, cat, b'M', pid, tid, None, Time::At(at_ns))
    }

    /// The finished line that says which path a hash means (`FH`).
    pub fn define_path(&mut self, pid: u32, tid: u32, hash: u64, path: &[u8]) {
        self.define("FH", pid, tid, hash, path);
    }

    /// The finished line that says which string a hash means (`SH`).
    pub fn define_string(&mut self, pid: u32, tid: u32, hash: u64, text: &[u8]) {
        self.define("SH", pid, tid, hash, text);
    }

    /// The finished line that says which host a hash means (`HH`).
    pub fn define_host(&mut self, pid: u32, tid: u32, hash: u64, host: &[u8]) {
        self.define("HH", pid, tid, hash, host);
    }

    fn define(&mut self, kind: &str, pid: u32, tid: u32, hash: u64, name: &[u8]) {
        self.metadata(kind, "dftracer", pid, tid).arg_str("name", name).arg_hash("value", hash).finish();
    }

    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "the fields of a line's head, each of them once")]
    fn start(
        &mut self,
        name: &str,
        cat: &str,
        letter: u8,
        pid: u32,
        tid: u32,
        id: Option<u64>,
        time: Time,
    ) -> &mut LineBuf {
        debug_assert!(!self.in_args, "the line before was not finished");
        if self.thread.pid != pid || self.thread.tid != tid {
            self.thread.set(pid, tid);
        }
        if is_plain(name.as_bytes()) & is_plain(cat.as_bytes()) {
            self.put_head(name.as_bytes(), cat.as_bytes(), letter, id, time);
        } else {
            self.put_odd_head(name, cat, letter, id, time);
        }
        self
    }

    #[inline(always)]
    fn put_head(&mut self, name: &[u8], cat: &[u8], letter: u8, id: Option<u64>, time: Time) {
        let mut out = self.out.cursor(name.len() + cat.len() + HEAD_ROOM);
        out.put(b"{\"name\":\"");
        out.put_slice(name);
        out.put(b"\",\"cat\":\"");
        out.put_slice(cat);
        out.put(&[b'"', b',', b'"', b'p', b'h', b'"', b':', b'"', letter]);
        out.put_part(&self.thread.text, self.thread.len);
        if let Some(id) = id {
            put_id(&mut out, id);
            if letter == b'f' {
                out.put(b",\"bp\":\"e\"");
            }
        }
        time.put(&mut out);
        let len = out.len();
        self.out.commit(len);
    }

    #[cold]
    fn put_odd_head(&mut self, name: &str, cat: &str, letter: u8, id: Option<u64>, time: Time) {
        let mut both = std::mem::take(&mut self.odd);
        both.clear();
        escape_odd_str(&mut both, name);
        let name_len = both.len();
        escape_odd_str(&mut both, cat);
        self.put_head(&both[..name_len], &both[name_len..], letter, id, time);
        self.odd = both;
    }

    /// An argument. Inlined all the way, so that a key that is a literal costs neither a look nor a loop.
    #[inline(always)]
    fn arg(&mut self, key: &str, value: Short) -> &mut LineBuf {
        if is_plain(key.as_bytes()) {
            self.put_arg(key.as_bytes(), value);
        } else {
            self.put_odd_arg(key, value);
        }
        self
    }

    #[inline(always)]
    fn put_arg(&mut self, key: &[u8], value: Short) {
        let in_args = std::mem::replace(&mut self.in_args, true);
        let mut out = self.out.cursor(key.len() + ARG_ROOM);
        if in_args {
            out.put(b",\"");
        } else {
            out.put(b",\"args\":{\"");
        }
        out.put_slice(key);
        out.put(b"\":");
        match value {
            Short::Later => {}
            Short::Int(v) => out.put_i64(v),
            Short::UInt(v) => out.put_u64(v),
            Short::Hash(v) => {
                out.put(b"\"");
                out.put(&hex(v));
                out.put(b"\"");
            }
        }
        let len = out.len();
        self.out.commit(len);
    }

    #[cold]
    fn put_odd_arg(&mut self, key: &str, value: Short) {
        let mut escaped = std::mem::take(&mut self.odd);
        escaped.clear();
        escape_odd_str(&mut escaped, key);
        self.put_arg(&escaped, value);
        self.odd = escaped;
    }

    /// An integer.
    #[inline(always)]
    pub fn arg_i64(&mut self, key: &str, v: i64) -> &mut LineBuf {
        self.arg(key, Short::Int(v))
    }

    /// An integer without sign.
    #[inline(always)]
    pub fn arg_u64(&mut self, key: &str, v: u64) -> &mut LineBuf {
        self.arg(key, Short::UInt(v))
    }

    /// A float; it comes back with the same bits, except that all NaNs are one.
    pub fn arg_f64(&mut self, key: &str, v: f64) -> &mut LineBuf {
        self.arg(key, Short::Later);
        general::push_f64(&mut self.out, v);
        self
    }

    /// `true` or `false`.
    pub fn arg_bool(&mut self, key: &str, v: bool) -> &mut LineBuf {
        self.arg(key, Short::Later);
        self.out.put_slice(if v { b"true" } else { b"false" });
        self
    }

    /// Text or a path, as bytes of any kind.
    pub fn arg_str(&mut self, key: &str, v: &[u8]) -> &mut LineBuf {
        self.arg(key, Short::Later);
        general::push_bytes(&mut self.out, v);
        self
    }

    /// A list of texts, such as a command line.
    pub fn arg_strs<'s>(&mut self, key: &str, list: impl IntoIterator<Item = &'s [u8]>) -> &mut LineBuf {
        self.arg(key, Short::Later);
        self.out.put_slice(b"[");
        for (place, v) in list.into_iter().enumerate() {
            self.out.put_slice(if place > 0 { b",\"" } else { b"\"" });
            self.out.put_escaped(v);
            self.out.put_slice(b"\"");
        }
        self.out.put_slice(b"]");
        self
    }

    /// The hash of a path or string.
    #[inline(always)]
    pub fn arg_hash(&mut self, key: &str, hash: u64) -> &mut LineBuf {
        self.arg(key, Short::Hash(hash))
    }

    /// A value of any kind. The text of [`Value::Json`] must be JSON; newlines in it become spaces.
    pub fn arg_value(&mut self, key: &str, v: &Value) -> &mut LineBuf {
        self.arg(key, Short::Later);
        general::push_value(&mut self.out, v);
        self
    }

    /// Ends the line.
    #[inline(always)]
    pub fn finish(&mut self) {
        let in_args = std::mem::take(&mut self.in_args);
        let mut out = self.out.cursor(3);
        if in_args {
            out.put(b"}}\n");
        } else {
            out.put(b"}\n");
        }
        let len = out.len();
        self.out.commit(len);
    }
}

fn put_id(out: &mut Cursor<'_>, id: u64) {
    out.put(b",\"id\":\"0x");
    let zeros = (id.leading_zeros() as usize / 4).min(15);
    out.put_slice(&hex(id)[zeros..]);
    out.put(b"\"");
}

/// A value that fits the room of an argument.
#[derive(Clone, Copy)]
enum Short {
    /// What follows is put by the caller.
    Later,
    Int(i64),
    UInt(u64),
    Hash(u64),
}

/// When an event was.
#[derive(Clone, Copy)]
enum Time {
    None,
    At(i64),
    Span(i64, i64),
}

impl Time {
    #[inline(always)]
    fn put(self, out: &mut Cursor<'_>) {
        let (start, end) = match self {
            Time::None => return,
            Time::At(at) => (at, None),
            Time::Span(start, end) => (start, Some(end)),
        };
        let (ts, end_ts) = (start.div_euclid(1000), end.map(|end| end.div_euclid(1000)));
        let remainders = start.rem_euclid(1000) * 1000 + end.map_or(0, |end| end.rem_euclid(1000));
        out.put(b",\"ts\":");
        out.put_i64(ts);
        if remainders != 0 {
            out.put(b",\"ns\":");
            out.put_i64(remainders);
        }
        if let Some(end_ts) = end_ts {
            out.put(b",\"dur\":");
            out.put_i64(end_ts - ts);
        }
    }
}

#[cfg(test)]
mod tests;
