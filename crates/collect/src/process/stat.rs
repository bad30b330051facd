//! `/proc/PID/stat`.

use std::sync::LazyLock;

use crate::read::{number, words};

static TICK_NS: LazyLock<u64> = LazyLock::new(|| 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1));
static PAGE: LazyLock<u64> = LazyLock::new(|| rustix::param::page_size() as u64);

/// Length of a clock tick, the unit of times in `stat`.
pub(super) fn tick_ns() -> u64 {
    *TICK_NS
}

/// What an exec changes: the short name, and where the arguments begin and end (zero for those who may not know). The kernel sets the end last,
/// after it has loaded the program: until then the command line reads as empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Image {
    comm: [u8; 16],
    arguments: [u64; 2],
}

impl Image {
    pub(super) fn comm(&self) -> String {
        let length = self.comm.iter().position(|byte| *byte == 0).unwrap_or(self.comm.len());
        String::from_utf8_lossy(&self.comm[..length]).into_owned()
    }
}

/// What the process was doing; of its main thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// On a processor or waiting for one.
    Running,
    /// In a sleep that no signal ends, as for storage.
    Blocked,
    /// By a signal or a debugger.
    Stopped,
    /// It sleeps, or has ended.
    Other,
}

/// The fields that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) image: Image,
    pub(super) state: State,
    pub(super) ppid: u32,
    pub(super) minor_faults: u64,
    pub(super) major_faults: u64,
    pub(super) user_ns: u64,
    pub(super) system_ns: u64,
    pub(super) threads: u64,
    pub(super) start_ticks: u64,
    pub(super) virtual_bytes: u64,
    pub(super) rss_bytes: u64,
}

impl Stat {
    /// Whether the process has ended: its memory is gone, and with it whatever tells one program from another.
    pub(super) fn has_ended(&self) -> bool {
        self.virtual_bytes == 0
    }
}

/// Reads the line. The name may hold anything, parentheses and line ends too, so fields are counted behind the last `)`.
pub(super) fn parse(text: &[u8]) -> Option<Stat> {
    let open = memchr::memchr(b'(', text)?;
    let close = memchr::memrchr(b')', text)?;
    let name = text.get(open + 1..close)?;
    let mut comm = [0; 16];
    let length = name.len().min(comm.len());
    comm[..length].copy_from_slice(&name[..length]);
    // Field 3 of the manual is the first behind the name.
    let mut fields = [0u64; 53];
    let mut rest = words(&text[close + 1..]);
    let state = rest.next()?;
    let mut known = 4;
    for (field, word) in fields.iter_mut().skip(4).zip(rest) {
        // Some fields may be negative; none of those that are used.
        *field = number(word).unwrap_or(0);
        known += 1;
    }
    if known <= 24 {
        return None;
    }
    let tick = tick_ns();
    Some(Stat {
        image: Image { comm, arguments: [fields[48], fields[49]] },
        state: match state {
            b"R" => State::Running,
            b"D" => State::Blocked,
            b"T" | b"t" => State::Stopped,
            _ => State::Other,
        },
        ppid: u32::try_from(fields[4]).unwrap_or(0),
        minor_faults: fields[10],
        major_faults: fields[12],
        user_ns: fields[14].saturating_mul(tick),
        system_ns: fields[15].saturating_mul(tick),
        threads: fields[20],
        start_ticks: fields[22],
        virtual_bytes: fields[23],
        rss_bytes: fields[24].saturating_mul(*PAGE),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEHIND: &str = "S 7 1 1 0 -1 4194560 11 22 33 44 5 6 0 0 20 0 3 0 777 4096000 250 18446744073709551615";

    #[test]
    fn names_may_hold_anything() {
        for name in ["cat", "a b", "((x) ", ") S 1 (", "two\nlines", ""] {
            let text = format!("12 ({name}) {BEHIND}\n");
            let stat = parse(text.as_bytes()).unwrap_or_else(|| panic!("{name:?} is a name"));
            assert_eq!(stat.image.comm(), name);
            assert_eq!(
                (stat.ppid, stat.minor_faults, stat.major_faults, stat.threads, stat.start_ticks),
                (7, 11, 33, 3, 777)
            );
            assert_eq!((stat.user_ns, stat.system_ns), (5 * tick_ns(), 6 * tick_ns()));
            assert_eq!((stat.virtual_bytes, stat.rss_bytes), (4_096_000, 250 * 4096));
        }
    }

    #[test]
    fn what_is_cut_short_is_nothing() {
        let whole = format!("12 (cat) {BEHIND}\n");
        let enough = whole.find(" 18446744073709551615").expect("the last field");
        for length in 0..whole.len() {
            let parsed = parse(&whole.as_bytes()[..length]);
            // A cut within the last needed field leaves a shorter number; the kernel never cuts there.
            assert_eq!(parsed.is_some(), length > enough - 3, "{length} bytes");
        }
    }
}
