//! Selects the processes to sample.
//!
//! [`Follow`] is what the user requested; [`Follower`] finds such processes as they appear: `table` detects new processes and their names,
//! `sentinels` watches a directory for files named by pids, `groups` finds the control group of a process. The children of a followed
//! process are followed too, as long as they live.

mod groups;
mod sentinels;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::BorrowedFd;
use std::path::PathBuf;

use regex::Regex;

use crate::error::{CollectError, Result};
use crate::roots::Roots;

pub use groups::Group;
use sentinels::Sentinels;
use table::{Look, Table, Unfollowed};

/// What is to be followed. Several options add up, with one exception: with a directory of sentinels the pattern does not find processes
/// but chooses among the sentinels.
#[derive(Debug, Clone, Default)]
pub struct Follow {
    /// Processes with all that descends from them.
    pub trees: Vec<u32>,
    /// Processes whose short name or command line matches.
    pub matching: Option<Regex>,
    /// Processes in control groups and containers.
    pub groups: Vec<Group>,
    /// Processes that have a file named by their pid here.
    pub pid_dir: Option<PathBuf>,
    /// Only processes that exist at the start, and no later ones.
    pub fixed: bool,
}

impl Follow {
    /// Whether no process is.
    pub fn nobody(&self) -> bool {
        self.trees.is_empty() && self.matching.is_none() && self.groups.is_empty() && self.pid_dir.is_none()
    }

    /// Whether it selects only descendants of certain processes.
    pub fn only_trees(&self) -> bool {
        self.matching.is_none() && self.groups.is_empty() && self.pid_dir.is_none()
    }

    /// Whether all that is asked for by name is there, which is asked before anything is made for it. The directory of sentinels is made.
    pub fn verify(&self, roots: &Roots) -> Result<()> {
        self.verify_in(&Table::open(roots)?, roots)?;
        self.pid_dir.as_deref().map(Sentinels::watch).transpose()?;
        Ok(())
    }

    fn verify_in(&self, table: &Table, roots: &Roots) -> Result<()> {
        if let Some(pid) = self.trees.iter().find(|pid| table.read(**pid).is_none()) {
            return Err(CollectError::NoProcess(*pid));
        }
        self.groups.iter().try_for_each(|group| group.verify(roots))
    }

    /// In words, for the line that a collector starts with.
    pub fn describe(&self) -> String {
        let mut parts = Vec::new();
        for pid in &self.trees {
            parts.push(format!("process {pid} and its descendants"));
        }
        let pattern = self.matching.as_ref().map(|pattern| format!("matching /{}/", pattern.as_str()));
        match (&self.pid_dir, pattern) {
            (Some(directory), Some(pattern)) => {
                parts.push(format!("processes named in {} and {pattern}", directory.display()));
            }
            (Some(directory), None) => parts.push(format!("processes named in {}", directory.display())),
            (None, Some(pattern)) => parts.push(format!("processes {pattern}")),
            (None, None) => {}
        }
        for group in &self.groups {
            parts.push(group.describe());
        }
        if parts.is_empty() { "no process".into() } else { parts.join(", ") }
    }
}

/// Compiles the pattern of a user: letters of either case mean both, as Tracekit's does.
pub fn pattern(text: &str) -> std::result::Result<Regex, regex::Error> {
    regex::RegexBuilder::new(text).case_insensitive(true).size_limit(1 << 20).build()
}

/// Finds the processes that are to be followed.
#[derive(Debug)]
pub struct Follower {
    options: Follow,
    roots: Roots,
    table: Table,
    sentinels: Option<Sentinels>,
    followed: BTreeSet<u32>,
    /// Processes that a pattern must not find: the collector, and the shells and wrappers whose command lines hold its own.
    own: BTreeSet<u32>,
    own_pid: u32,
    /// The table's generation when descendants were last looked for: without a change there are no others.
    searched: Option<u64>,
    /// Processes that did not fit, with their start: a later process with the same number is another one.
    postponed: BTreeMap<u32, u64>,
    /// Whether a process has ended since.
    room: bool,
    messages: Vec<String>,
}

impl Follower {
    /// Looks at the machine for the first time.
    pub fn new(options: Follow, roots: &Roots) -> Result<Follower> {
        let table = Table::open(roots)?;
        options.verify_in(&table, roots)?;
        let sentinels = options.pid_dir.as_deref().map(Sentinels::watch).transpose()?;
        let own_pid = std::process::id();
        let own = table.ancestry(own_pid);
        Ok(Follower {
            options,
            roots: roots.clone(),
            table,
            sentinels,
            followed: BTreeSet::new(),
            own,
            own_pid,
            searched: None,
            postponed: BTreeMap::new(),
            room: false,
            messages: Vec::new(),
        })
    }

    /// A descriptor that signals new sentinels.
    pub fn sentinel_events(&self) -> Option<BorrowedFd<'_>> {
        self.sentinels.as_ref().map(Sentinels::events)
    }

    /// Whom to follow from now on: those found since the last call. `now_ns` is a steady time.
    pub fn discover(&mut self, now_ns: i64) -> Vec<u32> {
        let mut found = Vec::new();
        if self.options.nobody() || self.options.fixed && !self.table.is_new() {
            return found;
        }
        if self.table.is_new() {
            let roots: Vec<u32> = self.options.trees.clone();
            found.extend(roots.into_iter().filter(|pid| self.followed.insert(*pid)));
        }
        let (options, own, roots, sentinels) = (&self.options, &self.own, &self.roots, &self.sentinels);
        let by_pattern = options.matching.as_ref().filter(|_| sentinels.is_none());
        let unfollowed = match (by_pattern, options.groups.is_empty()) {
            (_, false) => Unfollowed::All,
            (Some(_), true) => Unfollowed::Execs,
            (None, true) => Unfollowed::None,
        };
        let mut chosen = Vec::new();
        self.table.look(now_ns, unfollowed, &self.followed, &mut |look: &mut Look<'_>| {
            let wanted = by_pattern.is_some_and(|pattern| !own.contains(&look.pid()) && look.matches(pattern))
                || options.groups.iter().any(|group| group.holds(roots, look.pid()));
            if wanted {
                chosen.push(look.pid());
            }
        });
        found.extend(chosen.into_iter().filter(|pid| self.followed.insert(*pid)));
        found.extend(self.take_sentinels(now_ns));
        if std::mem::take(&mut self.room) {
            for (pid, start) in std::mem::take(&mut self.postponed) {
                if self.table.read(pid).is_some_and(|known| known.start == start) && self.followed.insert(pid) {
                    found.push(pid);
                }
            }
        }
        self.add_descendants(&mut found);
        found
    }

    /// Sentinels that came since the last look, as soon as they come.
    pub fn new_sentinels(&mut self, now_ns: i64) -> Vec<u32> {
        if self.options.fixed {
            return Vec::new();
        }
        let mut found = self.take_sentinels(now_ns);
        if !found.is_empty() {
            self.table.refresh();
            self.add_descendants(&mut found);
        }
        found
    }

    fn take_sentinels(&mut self, now_ns: i64) -> Vec<u32> {
        let Some(sentinels) = &mut self.sentinels else { return Vec::new() };
        let (table, matching) = (&self.table, self.options.matching.as_ref());
        let chosen = sentinels.take(now_ns, &mut |pid| {
            let mut look = Look::at(table, pid)?;
            Some(matching.is_none_or(|pattern| look.matches(pattern)))
        });
        self.messages.append(&mut sentinels.messages);
        chosen.into_iter().filter(|pid| self.followed.insert(*pid)).collect()
    }

    /// Adds the children of followed processes, and theirs.
    fn add_descendants(&mut self, found: &mut Vec<u32>) {
        if found.is_empty() && self.searched == Some(self.table.generation()) {
            return;
        }
        self.searched = Some(self.table.generation());
        let (own, orphans) = (self.own_pid, !self.options.trees.is_empty());
        loop {
            let more = self.table.children_of(&self.followed, orphans);
            let before = found.len();
            found.extend(more.into_iter().filter(|pid| *pid != own && self.followed.insert(*pid)));
            if found.len() == before {
                return;
            }
        }
    }

    /// The process has ended.
    pub fn ended(&mut self, pid: u32) {
        self.followed.remove(&pid);
        self.room = true;
        self.table.forget(pid);
        if let Some(sentinels) = &mut self.sentinels {
            sentinels.ended(pid);
        }
    }

    /// The process could not be opened: it is not followed after all.
    pub fn refused(&mut self, pid: u32) {
        self.followed.remove(&pid);
        self.searched = None;
        if self.table.read(pid).is_none() {
            self.table.forget(pid);
        }
    }

    /// There is no room for the process yet: it is found again when a followed one has ended.
    pub fn postponed(&mut self, pid: u32) {
        self.followed.remove(&pid);
        if let Some(known) = self.table.read(pid) {
            self.postponed.insert(pid, known.start);
        }
    }

    /// What the user should know; each thing once.
    pub fn take_messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.messages)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_in_words() {
        let matching = Some(pattern("^ffmpeg$").expect("a pattern"));
        let pid_dir = Some(PathBuf::from("/pids"));
        for (follow, words) in [
            (Follow::default(), "no process"),
            (Follow { trees: vec![7], ..Follow::default() }, "process 7 and its descendants"),
            (Follow { matching: matching.clone(), ..Follow::default() }, "processes matching /^ffmpeg$/"),
            (Follow { pid_dir: pid_dir.clone(), ..Follow::default() }, "processes named in /pids"),
            (Follow { pid_dir, matching, ..Follow::default() }, "processes named in /pids and matching /^ffmpeg$/"),
        ] {
            assert_eq!(follow.describe(), words);
        }
    }

    #[test]
    fn patterns_are_of_either_case_and_may_be_wrong() {
        assert!(pattern("^FFmpeg$").expect("a pattern").is_match("ffmpeg"));
        for wrong in ["(", "[a-", "a{2,1}", "(?P<x"] {
            assert!(pattern(wrong).is_err(), "{wrong}");
        }
    }
}
