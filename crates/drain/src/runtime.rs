//! Detects programs with a language runtime that bypasses the C library and our hooks: Go, also if it is linked to the C library.
//!
//! Go's linker leaves sections that survive stripping. This module looks for them after the run has ended, once in each program, and only if the kernel
//! counted more bytes than the trace holds.

use std::fs::File;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

use weftline_recorder::elf::{u16_at, u32_at, u64_at};

/// Sections that Go's linker makes.
const GO_SECTIONS: [&[u8]; 2] = [b".note.go.buildid", b".go.buildinfo"];
/// Sections that are looked at, and bytes of their names: programs have a few dozen.
const MOST_SECTIONS: u16 = 1024;
const MOST_NAMES: u64 = 1 << 20;

/// Whether the program at a path was linked by Go. False where it cannot be read any more.
pub(crate) fn is_go(path: &Path) -> bool {
    // The path comes from the program itself: it may be a pipe by now.
    let file = std::fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC).open(path);
    file.ok()
        .filter(|file| file.metadata().is_ok_and(|data| data.is_file()))
        .and_then(|file| has_sections(&file))
        .unwrap_or(false)
}

fn has_sections(file: &File) -> Option<bool> {
    let mut head = [0; 64];
    file.read_exact_at(&mut head, 0).ok()?;
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, size) = (u64_at(&head, 40)?, u16_at(&head, 58)?);
    let (count, names) = (u16_at(&head, 60)?, u16_at(&head, 62)?);
    let section = |index: u16| {
        let mut entry = [0; 64];
        let at = table.checked_add(u64::from(index) * u64::from(size))?;
        file.read_exact_at(&mut entry, at).ok()?;
        Some(entry)
    };
    let names = section(names)?;
    let mut text = vec![0; u64_at(&names, 32)?.min(MOST_NAMES) as usize];
    file.read_exact_at(&mut text, u64_at(&names, 24)?).ok()?;
    for index in 0..count.min(MOST_SECTIONS) {
        let name = u32_at(&section(index)?, 0)? as usize;
        let name = text.get(name..)?.split(|byte| *byte == 0).next()?;
        if GO_SECTIONS.contains(&name) {
            return Some(true);
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ELF file with one section of this name besides that of the names.
    fn elf(section: &[u8]) -> Vec<u8> {
        let names = [b"\0", section, b"\0.shstrtab\0"].concat();
        let mut out = vec![0; 64];
        out[..6].copy_from_slice(b"\x7fELF\x02\x01");
        out[40..48].copy_from_slice(&64u64.to_le_bytes());
        for (at, value) in [(58, 64u16), (60, 2), (62, 1)] {
            out[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        for (name, offset, size) in [(1, 0u64, 0u64), (2 + section.len() as u32, 64 + 128, names.len() as u64)] {
            let mut entry = [0; 64];
            entry[..4].copy_from_slice(&name.to_le_bytes());
            entry[24..32].copy_from_slice(&offset.to_le_bytes());
            entry[32..40].copy_from_slice(&size.to_le_bytes());
            out.extend_from_slice(&entry);
        }
        out.extend_from_slice(&names);
        out
    }

    #[test]
    fn go_programs_are_recognised() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("program");
        let check = |content: &[u8], expected: bool| {
            std::fs::write(&path, content).expect("own directory");
            assert_eq!(is_go(&path), expected, "{}", String::from_utf8_lossy(content));
        };
        check(&elf(b".go.buildinfo"), true);
        check(&elf(b".note.go.buildid"), true);
        check(&elf(b".text"), false);
        check(b"#!/bin/sh\n", false);
        check(b"", false);
        // Tables that lead nowhere.
        let whole = elf(b".go.buildinfo");
        for at in [40, 58, 60, 62, 64, 128 + 24, 128 + 32] {
            let mut broken = whole.clone();
            broken[at..at + 2].fill(0xff);
            std::fs::write(&path, &broken).expect("own directory");
            let _either = is_go(&path);
        }
        for length in 0..whole.len() {
            check(&whole[..length], false);
        }
        assert!(!is_go(directory.path()));
        assert!(!is_go(&directory.path().join("nowhere")));
    }
}
