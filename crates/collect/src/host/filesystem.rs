//! File systems: size and free space. Local ones only: a network file system with a dead server would block the collector for ever.
//!
//! Space changes slowly and mounts change rarely, so both are read every five seconds, not at every tick.

use std::path::PathBuf;

use crate::read::{Kept, lines, percent, within, words};
use crate::sample::{Interval, Sink, Subject, Value};

const PERIOD_NS: i64 = 5_000_000_000;

/// Kinds that hold files of users and never wait for another machine.
const LOCAL: [&[u8]; 17] = [
    b"ext2",
    b"ext3",
    b"ext4",
    b"xfs",
    b"btrfs",
    b"zfs",
    b"f2fs",
    b"bcachefs",
    b"jfs",
    b"reiserfs",
    b"vfat",
    b"exfat",
    b"ntfs3",
    b"overlay",
    b"tmpfs",
    b"ramfs",
    b"nilfs2",
];

#[derive(Debug)]
pub(super) struct FileSystems {
    mounts: Kept,
    last_ns: Option<i64>,
}

impl FileSystems {
    pub(super) fn new(mounts: Kept) -> FileSystems {
        FileSystems { mounts, last_ns: None }
    }

    pub(super) fn sample(&mut self, at: Interval, buffer: &mut Vec<u8>, sink: &mut dyn Sink) {
        if self.last_ns.is_some_and(|last| within(last, at.end_ns, PERIOD_NS)) {
            return;
        }
        self.last_ns = Some(at.end_ns);
        let Ok(text) = self.mounts.read(buffer) else { return };
        // Bind mounts show one file system at many places; only the first is sampled.
        let mut devices: Vec<&[u8]> = Vec::new();
        for (device, point) in lines(text).filter_map(mount) {
            if devices.contains(&device) {
                continue;
            }
            devices.push(device);
            let path = PathBuf::from(point);
            let Ok(space) = rustix::fs::statvfs(&path) else { continue };
            let total = space.f_blocks.saturating_mul(space.f_frsize);
            if total == 0 {
                continue;
            }
            let free = space.f_bfree.saturating_mul(space.f_frsize);
            let available = space.f_bavail.saturating_mul(space.f_frsize);
            let used = total.saturating_sub(free);
            let values = [
                ("total_bytes", Value::Unsigned(total)),
                ("used_bytes", Value::Unsigned(used)),
                ("available_bytes", Value::Unsigned(available)),
                // As `df` has it: of what users may use.
                ("used_pct", Value::Float(percent(used, used.saturating_add(available)))),
                ("files", Value::Unsigned(space.f_files)),
                ("files_free", Value::Unsigned(space.f_ffree)),
            ];
            sink.counter(Subject::Host, "fs", &path.to_string_lossy(), at, &values);
        }
    }
}

/// Device and mount point of a line of `mountinfo`, when its file system is a local one.
fn mount(line: &[u8]) -> Option<(&[u8], std::ffi::OsString)> {
    let mut words = words(line);
    let device = words.nth(2)?;
    let point = words.nth(1)?;
    // Any number of optional fields, then a dash, then the kind.
    words.find(|word| *word == b"-")?;
    LOCAL.contains(&words.next()?).then(|| (device, unescape(point)))
}

/// Blanks and backslashes are written as three octal digits.
fn unescape(word: &[u8]) -> std::ffi::OsString {
    use std::os::unix::ffi::OsStringExt;
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word;
    while let Some((&byte, behind)) = rest.split_first() {
        let octal = |digit: u8| (b'0'..=b'7').contains(&digit).then(|| u32::from(digit - b'0'));
        let escape = match behind {
            [a, b, c, ..] if byte == b'\\' => {
                octal(*a).zip(octal(*b)).zip(octal(*c)).map(|((a, b), c)| a * 64 + b * 8 + c)
            }
            _ => None,
        };
        match escape.and_then(|value| u8::try_from(value).ok()) {
            Some(value) => {
                bytes.push(value);
                rest = &behind[3..];
            }
            None => {
                bytes.push(byte);
                rest = behind;
            }
        }
    }
    std::ffi::OsString::from_vec(bytes)
}
