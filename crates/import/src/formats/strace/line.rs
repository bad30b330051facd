//! One line of strace's text: who, when, and what is behind it.

use crate::formats::time;

/// Linux gives no larger process id; longer numbers at a line's beginning are times.
const MOST_PID: i64 = 1 << 22;

/// When a line was written, as `-t`, `-tt`, `-ttt` and `-r` tell it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stamp {
    /// Nothing tells it.
    None,
    /// Nanoseconds of a day (`-t`, `-tt`).
    OfDay(i64),
    /// Nanoseconds since the epoch (`-ttt`).
    Epoch(i64),
    /// Nanoseconds since the line before (`-r`).
    Step(i64),
}

/// What a line begins with.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Prefix<'a> {
    /// The thread, where lines name it (`-f`).
    pub tid: Option<u32>,
    /// When.
    pub stamp: Stamp,
    /// What is behind it.
    pub body: &'a [u8],
}

/// Takes the beginning off a line.
pub(super) fn prefix(line: &[u8]) -> Prefix<'_> {
    let mut rest = line.trim_ascii_start();
    let tid = take_pid(&mut rest);
    let stamp = take_stamp(&mut rest);
    // `-r` beside another time, `-n` and `-i`.
    if rest.starts_with(b"(+")
        && let Some(end) = memchr::memchr(b')', rest)
    {
        rest = rest[end + 1..].trim_ascii_start();
    }
    for _ in 0..2 {
        let number = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b' ' | b'?');
        match memchr::memchr(b']', rest) {
            Some(end) if rest[0] == b'[' && end < 24 && rest[1..end].iter().all(number) => {
                rest = rest[end + 1..].trim_ascii_start();
            }
            _ => break,
        }
    }
    Prefix { tid, stamp, body: rest }
}

/// `[pid 12] `, `12 ` and, with names of processes (`-Y`), `12<sh> `.
fn take_pid(rest: &mut &[u8]) -> Option<u32> {
    let (mut text, bracket) = match rest.strip_prefix(b"[pid") {
        Some(text) => (text.trim_ascii_start(), true),
        None => (*rest, false),
    };
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let pid = time::number(&text[..digits]).filter(|pid| (1..=MOST_PID).contains(pid))?;
    text = &text[digits..];
    if text.first() == Some(&b'<') {
        text = &text[memchr::memmem::find(text, if bracket { b">]" } else { b"> " })? + 1..];
    }
    text = text.strip_prefix(if bracket { b"]" } else { b" " })?;
    *rest = text.trim_ascii_start();
    u32::try_from(pid).ok()
}

fn take_stamp(rest: &mut &[u8]) -> Stamp {
    let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
    let word = &rest[..end];
    let (whole, fraction) = match memchr::memchr(b'.', word) {
        Some(point) => (&word[..point], Some(&word[point + 1..])),
        None => (word, None),
    };
    let Some(part_ns) = time::fraction_ns(fraction.unwrap_or(b"")) else { return Stamp::None };
    let stamp = match (whole, fraction) {
        ([h1, h2, b':', m1, m2, b':', s1, s2], _) => {
            let part = |tens, ones| time::number(&[tens, ones]);
            let (Some(hour), Some(minute), Some(second)) = (part(*h1, *h2), part(*m1, *m2), part(*s1, *s2)) else {
                return Stamp::None;
            };
            time::of_day(hour, minute, second, fraction.unwrap_or(b"")).map(Stamp::OfDay)
        }
        (whole, fraction) => time::number(whole).and_then(|seconds| {
            let ns = seconds.checked_mul(1_000_000_000)?.checked_add(part_ns)?;
            match seconds {
                100_000_000.. => Some(Stamp::Epoch(ns)),
                _ => fraction.map(|_| Stamp::Step(ns)),
            }
        }),
    };
    let Some(stamp) = stamp else { return Stamp::None };
    *rest = rest[end..].trim_ascii_start();
    stamp
}

/// What a line tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body<'a> {
    /// A call; its arguments, the `)` and its result are in `rest`.
    Call {
        /// Its name.
        name: &'a str,
        /// What is behind the `(`.
        rest: &'a [u8],
    },
    /// The first half of a call.
    Unfinished {
        /// Its name.
        name: &'a str,
        /// The arguments that are known by then.
        args: &'a [u8],
    },
    /// The second half of a call.
    Resumed {
        /// Its name.
        name: &'a str,
        /// The other arguments, the `)` and its result.
        rest: &'a [u8],
    },
    /// A signal.
    Signal {
        /// Its name.
        name: &'a str,
        /// What came with it.
        info: &'a [u8],
    },
    /// The thread ended by itself.
    Exited(i64),
    /// A signal of this name ended the thread.
    Killed(&'a str),
    /// What strace says of itself, stack frames (`-k`) and dumps of data (`-e read=`).
    Remark,
}

/// Reads what is behind the beginning.
pub(super) fn body(text: &[u8]) -> Option<Body<'_>> {
    if let Some(text) = text.strip_prefix(b"<... ") {
        let end = memchr::memmem::find(text, b" resumed>")?;
        return Some(Body::Resumed { name: word(&text[..end])?, rest: &text[end + 9..] });
    }
    if let Some(text) = text.strip_prefix(b"--- ").and_then(|text| text.strip_suffix(b" ---")) {
        let (name, info) = split_at(text, b' ');
        return Some(match word(name) {
            Some(name) if name.starts_with("SIG") => Body::Signal { name, info },
            _ => Body::Remark,
        });
    }
    if let Some(text) = text.strip_prefix(b"+++ ").and_then(|text| text.strip_suffix(b" +++")) {
        if let Some(code) = text.strip_prefix(b"exited with ") {
            return time::number(code).map(Body::Exited);
        }
        return Some(match text.strip_prefix(b"killed by ").and_then(|text| word(split_at(text, b' ').0)) {
            Some(signal) => Body::Killed(signal),
            None => Body::Remark,
        });
    }
    let remarks: [&[u8]; 6] = [b"strace: ", b"> ", b"| ", b"Process ", b"[ Process ", b"<detached ...>"];
    if remarks.iter().any(|start| text.starts_with(start)) {
        return Some(Body::Remark);
    }
    let open = memchr::memchr(b'(', text)?;
    let name = word(&text[..open])?;
    let rest = &text[open + 1..];
    Some(match rest.strip_suffix(b"<unfinished ...>") {
        Some(args) => Body::Unfinished { name, args: args.trim_ascii_end() },
        None => Body::Call { name, rest },
    })
}

fn word(text: &[u8]) -> Option<&str> {
    let good = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'?');
    let word = !text.is_empty() && text.len() <= 64 && text.iter().all(good);
    if word { std::str::from_utf8(text).ok() } else { None }
}

fn split_at(text: &[u8], byte: u8) -> (&[u8], &[u8]) {
    match memchr::memchr(byte, text) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, b""),
    }
}

/// The result of a call.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome<'a> {
    /// The number; none for `?`.
    pub value: Option<i128>,
    /// The name of the error.
    pub error: Option<&'a str>,
    /// The file of a descriptor (`-y`), as strace wrote it.
    pub file: Option<&'a [u8]>,
    /// What is in brackets behind it, unless that is the error in words.
    pub note: Option<&'a [u8]>,
    /// How long it took (`-T`).
    pub took_ns: Option<i64>,
}

/// Reads what is behind the `)` of a call.
pub(super) fn outcome(text: &[u8]) -> Option<Outcome<'_>> {
    let mut rest = text.trim_ascii_start().strip_prefix(b"= ")?.trim_ascii();
    let mut outcome = Outcome::default();
    // The time is last, in brackets of its own.
    if let Some(inner) = rest.strip_suffix(b">")
        && let Some(at) = memchr::memrchr(b'<', inner)
        && (at == 0 || inner[at - 1] == b' ')
        && let Some(took_ns) = seconds(&inner[at + 1..])
    {
        outcome.took_ns = Some(took_ns);
        rest = inner[..at].trim_ascii_end();
    }
    if let Some(behind) = rest.strip_prefix(b"?") {
        rest = behind;
    } else {
        let end = rest.iter().skip(1).position(|byte| !byte.is_ascii_alphanumeric()).map_or(rest.len(), |at| at + 1);
        outcome.value = Some(super::args::number(&rest[..end])?);
        rest = &rest[end..];
        if let Some(end) = super::args::annotation_end(rest, 0) {
            outcome.file = Some(&rest[1..end]);
            rest = rest[end + 1..].strip_prefix(b"(deleted)").unwrap_or(&rest[end + 1..]);
        }
    }
    rest = rest.trim_ascii_start();
    if rest.first() == Some(&b'E') {
        let (error, behind) = split_at(rest, b' ');
        outcome.error = word(error);
        rest = behind;
    }
    if outcome.error.is_none() && rest.first() == Some(&b'(') {
        outcome.note = Some(rest.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")")).unwrap_or(rest));
    }
    Some(outcome)
}

/// `0.000123`, in nanoseconds.
fn seconds(text: &[u8]) -> Option<i64> {
    let (whole, fraction) = split_at(text, b'.');
    time::number(whole)?.checked_mul(1_000_000_000)?.checked_add(time::fraction_ns(fraction)?)
}
