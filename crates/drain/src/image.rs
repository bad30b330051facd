//! One process image: its identity, the name of its file, and what has been written.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use weftline_format::identity::{Identity, held};
use weftline_format::secrets::Arguments;

use crate::arena::{Arena, SlotInfo};
use crate::output::{HEAD, TraceFile};
use crate::paths;
use crate::procfs::Host;
use crate::timeline::Timeline;
use crate::totals::Totals;

/// Longest name that a viewer is given; the whole command line is beside it.
const NAME_LENGTH: usize = 100;

/// Words of a command line at most: it may be nothing but ends of words.
const WORDS_MAX: usize = 8 << 10;

/// Which use of which process slot. Unique until the arena is reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ImageKey {
    pub arena: u64,
    pub slot: u32,
    pub generation: u64,
}

impl ImageKey {
    /// All keys that an arena can have.
    pub(crate) fn all_of(arena: u64) -> std::ops::RangeInclusive<ImageKey> {
        ImageKey { arena, slot: 0, generation: 0 }..=ImageKey { arena, slot: u32::MAX, generation: u64::MAX }
    }
}

/// A process image (or forked child) as the drain knows it.
pub(crate) struct Image {
    pub key: ImageKey,
    pub arena: Arc<Arena>,
    pub info: SlotInfo,
    /// What tells it from all others of its pid: AT_RANDOM, which is new for every exec, and the clock at birth, which
    /// differs among forked children. Recovery computes the same.
    pub tag: String,
    /// The identity line's contents, but for the member's number.
    pub identity: Identity,
    pub numbers: Mutex<Numbers>,
    pub file: Arc<Mutex<TraceFile>>,
    pub totals: Mutex<Totals>,
}

impl Image {
    /// The identity line of the next member: a program may have given itself another name meanwhile.
    pub(crate) fn identity_now(&self) -> Identity {
        let mut identity = self.identity.clone();
        let own = self.arena.own_name(self.key.slot);
        if let Some((_, name)) = self.arena.name(own).filter(|(_, name)| !name.is_empty()) {
            identity.name = held(name);
        }
        identity
    }

    /// Reads a slot that is in use. `start` is the process's start in clock ticks since boot, where the kernel could be asked.
    pub(crate) fn read(
        arena: &Arc<Arena>,
        slot: u32,
        host: &Host,
        timeline: &Timeline,
        start: Option<u64>,
        arguments: Arguments,
    ) -> Image {
        let info = arena.slot_info(slot);
        let tag = tag_of(&info);
        let text = |id: u32| arena.name(id).map(|(_, bytes)| bytes).unwrap_or_default();
        let path = |id: u32| paths::resolve(|id| arena.name(id), id).map(|path| held(&path)).unwrap_or_default();
        let command = text(info.birth.command);
        let words = command.strip_suffix(b"\0").unwrap_or(command).split(|byte| *byte == 0);
        let cmd = arguments.kept(words.take(WORDS_MAX).map(held));
        let exe = path(info.birth.exe);
        let born_ticks = info.born_boot / (1_000_000_000 / host.clock_ticks.max(1));
        let identity = Identity {
            pid: info.birth.pid,
            at_ns: match info.born_ticks {
                // The process may not read the counter.
                0 => timeline.at_monotonic(info.born_mono),
                ticks => timeline.at(ticks),
            },
            name: display_name(&cmd, &exe, info.birth.parent_slot != 0),
            host: host.name.clone(),
            boot: host.boot.clone(),
            pidns: info.birth.pid_namespace,
            start: start.unwrap_or(born_ticks),
            nonce: tag.clone(),
            ppid: info.birth.ppid,
            exe,
            cmd,
            cwd: path(info.birth.cwd),
            rank: u32::try_from(info.birth.rank).ok(),
            seq: 0,
        };
        let file = TraceFile::new(format!("{}-{}-{tag}.pfw.gz", host.name, info.birth.pid));
        Image {
            key: ImageKey { arena: arena.number(), slot, generation: info.generation },
            arena: Arc::clone(arena),
            info,
            tag,
            identity,
            numbers: Mutex::default(),
            file: Arc::new(Mutex::new(file)),
            totals: Mutex::default(),
        }
    }
}

/// Numbers that drains of one image gave out in vain, at most: each job that a kill interrupted costs one.
const GAPS_MAX: u64 = 1 << 16;

/// Numbers for the members of a file. Readers take a gap for a lost member, so there is none at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Numbers {
    next: u64,
    /// Numbers below `next` that no member has, largest first.
    free: Vec<u64>,
}

impl Default for Numbers {
    fn default() -> Self {
        Numbers { next: HEAD + 1, free: Vec::new() }
    }
}

impl Numbers {
    /// The numbers left by members that are in the file. Gaps that no drain leaves are not filled: they would be made of empty members.
    pub(crate) fn beside(taken: &HashSet<u64>) -> Numbers {
        let next = taken.iter().max().map_or(HEAD + 1, |last| last.saturating_add(1));
        let gaps = next.saturating_sub(taken.len() as u64);
        let free = match gaps {
            0..=GAPS_MAX => (HEAD + 1..next).rev().filter(|number| !taken.contains(number)).collect(),
            _ => Vec::new(),
        };
        Numbers { next, free }
    }

    pub(crate) fn take(&mut self) -> u64 {
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }

    /// A number whose member was not written after all.
    pub(crate) fn give_back(&mut self, number: u64) {
        self.free.push(number);
        self.free.sort_unstable_by(|a, b| b.cmp(a));
        while self.free.first() == Some(&(self.next - 1)) {
            self.free.remove(0);
            self.next -= 1;
        }
    }

    /// Takes all gaps.
    pub(crate) fn take_gaps(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.free)
    }
}

/// See [`Image::tag`].
pub(crate) fn tag_of(info: &SlotInfo) -> String {
    let born = if info.born_ticks == 0 { info.born_mono } else { info.born_ticks };
    format!("{:012x}", (info.birth.nonce ^ born.rotate_left(17)) & 0xFFFF_FFFF_FFFF)
}

/// The command line as one text, the program without its directory. A child made by fork has its parent's command line.
pub(crate) fn display_name(cmd: &[String], exe: &str, forked: bool) -> String {
    let base = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let mut name = cmd.first().map(|first| base(first)).filter(|name| !name.is_empty()).unwrap_or_else(|| base(exe));
    for word in cmd.iter().skip(1) {
        if name.chars().count() + word.chars().count() >= NAME_LENGTH {
            name.push_str(" …");
            break;
        }
        name.push(' ');
        name.push_str(word);
    }
    if forked {
        name.push_str(" (forked)");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_gaps_in_the_end() {
        let mut numbers = Numbers::beside(&HashSet::from([2, 5]));
        assert_eq!([numbers.take(), numbers.take(), numbers.take(), numbers.take()], [1, 3, 4, 6]);
        for number in [6, 3, 4] {
            numbers.give_back(number);
        }
        assert_eq!(numbers.take_gaps(), [4, 3]);
        assert_eq!((numbers.take(), Numbers::default().take()), (6, 1));
    }

    /// A member of an untrusted run may have any number.
    #[test]
    fn numbers_of_others_are_not_believed() {
        for last in [1 << 40, u64::MAX - 1, u64::MAX] {
            let numbers = Numbers::beside(&HashSet::from([1, last]));
            assert_eq!((numbers.free.len(), numbers.next), (0, last.saturating_add(1)), "{last}");
        }
    }

    #[test]
    fn viewers_get_short_names() {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        for (cmd, exe, expected) in [
            (words(&["/usr/bin/python3", "train.py", "-x"]), "/usr/bin/python3.11", "python3 train.py -x"),
            (words(&[""]), "/bin/true", "true"),
            (words(&[]), "", ""),
            (words(&["sh", "-c", &"x".repeat(200)]), "/bin/sh", "sh -c …"),
        ] {
            assert_eq!(display_name(&cmd, exe, false), expected);
            assert_eq!(display_name(&cmd, exe, true), format!("{expected} (forked)"));
        }
    }
}
