//! Random changes to a run directory that fit the kinds of its files.
//!
//! The first check would reject most randomly flipped bytes. So a change depends on the kind of file: a number in JSON
//! becomes an impossible count, a path in a pointer leads to a file of the user, a word of shared memory is changed where a field
//! is, a gzip member, a catalog, a page or the strings of an index are sealed again around another content. Besides, files become what they are not: links, pipes, directories, a terabyte.

mod columns;
mod json;
mod members;
mod plant;
pub mod words;

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::sandbox::Sandbox;
use crate::random::Random;

/// Opening a pipe that an earlier change made must not wait for its writer.
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits() as i32 | rustix::fs::OFlags::NOFOLLOW.bits() as i32;

/// What a file of a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Role {
    /// `run.json`, `run.d/*.json`.
    Manifest,
    /// `run.d/*.live`.
    Pointer,
    /// `ctl`.
    Control,
    /// `a<N>`, `a<N>.<K>`.
    Arena,
    /// `journal`, `settings`: JSON in lines.
    Lines,
    /// `clock`: words.
    Clock,
    /// `*.pfw.gz`.
    Trace,
    /// `index.json`.
    Catalog,
    /// `*.rows`.
    Rows,
    /// `*.strings`.
    Strings,
    /// `verdict.json`.
    Verdict,
    /// Anything else: locks, tails.
    Other,
}

fn role(path: &Path) -> Role {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let in_records = path.parent().is_some_and(|parent| parent.ends_with("run.d"));
    let is_arena = name.strip_prefix('a').is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()));
    match &*name {
        "ctl" => Role::Control,
        "journal" | "settings" => Role::Lines,
        "clock" => Role::Clock,
        "index.json" => Role::Catalog,
        "verdict.json" => Role::Verdict,
        "run.json" => Role::Manifest,
        _ if in_records && name.ends_with(".json") => Role::Manifest,
        _ if in_records && name.ends_with(".live") => Role::Pointer,
        _ if name.ends_with(".pfw.gz") => Role::Trace,
        _ if name.ends_with(".rows") => Role::Rows,
        _ if name.ends_with(".strings") => Role::Strings,
        _ if is_arena => Role::Arena,
        _ => Role::Other,
    }
}

/// Files of the run, its own live directory included, sorted by what they are.
fn files(sandbox: &Sandbox) -> Vec<(Role, PathBuf)> {
    let mut found = Vec::new();
    let mut pending = vec![sandbox.run(), sandbox.own_live()];
    while let Some(directory) = pending.pop() {
        for path in fs::read_dir(&directory).into_iter().flatten().flatten().map(|entry| entry.path()) {
            match fs::symlink_metadata(&path) {
                Ok(data) if data.is_dir() => pending.push(path),
                Ok(data) if data.is_file() => found.push((role(&path), path)),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// Changes something; what, in words.
pub fn mutate(random: &mut Random, sandbox: &Sandbox) -> String {
    let files = files(sandbox);
    let mut roles: Vec<Role> = files.iter().map(|(role, _)| *role).collect();
    roles.dedup();
    if roles.is_empty() || random.percent(20) {
        return plant::plant(random, sandbox, &files);
    }
    let role = *random.one_of(&roles);
    let of_role: Vec<&PathBuf> = files.iter().filter(|(found, _)| *found == role).map(|(_, path)| path).collect();
    let path = random.one_of(&of_role).as_path();
    let shown = path.strip_prefix(sandbox.path("")).unwrap_or(path).display().to_string();
    if random.percent(20) {
        return format!("{shown}: {}", bytes(random, path, &files));
    }
    let what = match role {
        Role::Manifest | Role::Verdict => json::change(random, sandbox, path, false),
        Role::Pointer => json::change(random, sandbox, path, true),
        Role::Catalog => columns::catalog(random, sandbox, path),
        Role::Rows => columns::rows(random, sandbox, path),
        Role::Strings => columns::strings(random, path),
        Role::Lines => json::change_line(random, sandbox, path),
        Role::Control => words::control(random, path),
        Role::Arena => words::arena(random, path),
        Role::Clock => words::anywhere(random, path),
        Role::Trace => members::change(random, sandbox, path),
        Role::Other => None,
    };
    format!("{shown}: {}", what.unwrap_or_else(|| bytes(random, path, &files)))
}

/// Opens a file of the run to change it; nothing when an earlier change made it something else.
fn open(path: &Path) -> Option<File> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(NONBLOCK).open(path).ok()?;
    file.metadata().is_ok_and(|data| data.is_file()).then_some(file)
}

/// Changes bytes without knowing what they mean.
fn bytes(random: &mut Random, path: &Path, files: &[(Role, PathBuf)]) -> String {
    let Some(file) = open(path) else { return "is no file any more".to_owned() };
    let length = file.metadata().map_or(0, |data| data.len());
    let at = random.below(length.max(1));
    let done = |outcome: std::io::Result<()>, what: String| match outcome {
        Ok(()) => what,
        Err(error) => format!("{what} ({error})"),
    };
    match random.below(7) {
        0 => done(file.set_len(at), format!("cut to {at} bytes")),
        1 => done(file.set_len(length + 1 + random.below(1 << 20)), "zeros at the end".to_owned()),
        2 => done(file.set_len(1 << 40), "a terabyte long".to_owned()),
        3 => {
            let flips = 1 + random.below(16);
            for _ in 0..flips {
                let at = random.below(length.max(1));
                let mut byte = [0];
                if file.read_at(&mut byte, at).is_ok_and(|read| read == 1) {
                    byte[0] ^= 1 << random.below(8);
                    let _ = file.write_at(&byte, at);
                }
            }
            format!("{flips} bits flipped")
        }
        4 => {
            let noise: Vec<u8> = (0..1 + random.below(4096)).map(|_| random.number() as u8).collect();
            done(file.write_all_at(&noise, at), format!("noise at {at}"))
        }
        5 => {
            let (_, other) = random.one_of(files);
            let Some(from) = open(other) else { return "nothing to copy".to_owned() };
            let mut block = vec![0; 1 + random.below(1 << 16) as usize];
            let from_at = random.below(from.metadata().map_or(1, |data| data.len().max(1)));
            let read = from.read_at(&mut block, from_at).unwrap_or(0);
            let name = other.file_name().unwrap_or_default().to_string_lossy().into_owned();
            done(file.write_all_at(&block[..read], at), format!("{read} bytes of {name} at {at}"))
        }
        _ => done(file.set_len(0), "emptied".to_owned()),
    }
}

/// Numbers that no count, length, time or pid can be, and some that are just wrong.
fn number(random: &mut Random) -> u64 {
    match random.below(12) {
        0 => 0,
        1 => 1,
        2 => 1 << 31,
        3 => u64::from(u32::MAX),
        4 => 1 << 40,
        5 => i64::MAX as u64,
        6 => 1 << 63,
        7 => u64::MAX,
        8 => u64::MAX - random.below(64),
        9 => random.below(1 << 16),
        10 => 1 << random.below(64),
        _ => random.number(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_known_by_their_names() {
        for (path, expected) in [
            ("run.json", Role::Manifest),
            ("run.d/n-1-2.json", Role::Manifest),
            ("run.d/n-1-2.live", Role::Pointer),
            (".live/n-1-2/ctl", Role::Control),
            (".live/n-1-2/a0", Role::Arena),
            (".live/n-1-2/a256.3", Role::Arena),
            (".live/n-1-2/clock", Role::Clock),
            (".live/n-1-2/journal", Role::Lines),
            ("n-1-ab.pfw.gz", Role::Trace),
            (".weft/index/index.json", Role::Catalog),
            (".weft/index/s-1.rows", Role::Rows),
            (".weft/index/s-1.strings", Role::Strings),
            (".weft/verdict.json", Role::Verdict),
            (".weft/index/lock", Role::Other),
            (".n-1-2.tail", Role::Other),
        ] {
            assert_eq!(role(Path::new(path)), expected, "{path}");
        }
    }
}
