//! The bytes of a whole run: what the supervisor got by waiting for the program, plus the counts of processes that nobody waited for.
//!
//! The kernel adds a process's counters to the parent that waits for it. If a process outlives its parent (a daemon, the server of tmux), or its parent
//! never waits for it, they go to init, so its own last count is added here. If even that is unknown, neither its count nor its events
//! are included, so that both sides cover the same processes.
//!
//! Waits inside the C library (`system`, `pclose`) are not seen. The parent's count shows whether such a child was waited for: it is large enough for
//! the child's count, or not.

use std::collections::HashMap;

use weftline_format::manifest::{IoCount, ProcessRecord, SupervisorRecord};

use super::{Direction, SLACK, traced};

/// A process: its images, oldest first.
struct Life<'r> {
    images: Vec<&'r ProcessRecord>,
    /// Which other life it came from, if that is known.
    parent: Option<usize>,
}

impl Life<'_> {
    /// When it ended; nothing when it runs, or nobody saw its end.
    fn ended_ns(&self) -> Option<i64> {
        self.images.last().map(|image| image.ended_ns).filter(|ended| *ended > 0)
    }

    fn is_traced(&self) -> bool {
        self.images.last().is_some_and(|image| image.untraced.is_none())
    }

    /// The kernel's last count for it, the recorder's own reads included: the parent that waits for it gets this.
    fn last_count(&self) -> Option<IoCount> {
        let last = self.images.last()?;
        let end = last.io?.end;
        Some(IoCount { rchar: end.rchar.saturating_add(last.recorder_read), wchar: end.wchar })
    }

    /// Whether its counters went to somebody else than this parent.
    fn is_left_by(&self, parent: &Life<'_>) -> bool {
        self.outlived(parent) || !(self.was_waited_for() || parent.has_room_for(self))
    }

    /// Whether what the kernel counted here and nothing else explains is as much as the child's count.
    fn has_room_for(&self, child: &Life<'_>) -> bool {
        match (self.room(), child.last_count()) {
            (Some(room), Some(count)) => fits(count, room),
            _ => true,
        }
    }

    /// What the kernel counted here and neither the trace nor children that were waited for explain.
    fn room(&self) -> Option<IoCount> {
        let mut room = self.last_count()?;
        for image in &self.images {
            let (traced, reaped) = (traced(image), image.reaped_io.unwrap_or_default());
            room.rchar = room.rchar.saturating_sub(traced.0).saturating_sub(reaped.rchar);
            room.wchar = room.wchar.saturating_sub(traced.1).saturating_sub(reaped.wchar);
        }
        Some(room)
    }

    fn was_waited_for(&self) -> bool {
        self.images.iter().any(|image| image.waited_for)
    }

    /// Whether it was still there when its parent was gone.
    fn outlived(&self, parent: &Life<'_>) -> bool {
        match (self.ended_ns(), parent.ended_ns()) {
            (Some(own), Some(parent)) => own > parent,
            // Of an untraced program nobody sees the end.
            (None, Some(_)) => self.is_traced(),
            (_, None) => false,
        }
    }
}

/// Bytes read and written; nothing where the supervisor could not tell. `images`: by pid, then by time.
pub(super) fn of(record: &SupervisorRecord, images: &[&ProcessRecord]) -> Option<(Direction, Direction)> {
    let mut counted = record.tree_io?;
    let lives = lives(images);
    let orphaned: Vec<bool> =
        lives.iter().map(|life| life.parent.is_some_and(|parent| life.is_left_by(&lives[parent]))).collect();
    for (life, _) in lives.iter().zip(&orphaned).filter(|(_, orphaned)| **orphaned) {
        let count = life.last_count().unwrap_or_default();
        add(&mut counted.rchar, count.rchar);
        add(&mut counted.wchar, count.wchar);
    }
    let mut read = Direction { kernel: counted.rchar, ..Direction::default() };
    let mut write = Direction { kernel: counted.wchar, ..Direction::default() };
    for at in 0..lives.len() {
        if !takes_part(&lives, &orphaned, at) {
            continue;
        }
        let mut since = IoCount::default();
        for image in &lives[at].images {
            let bytes = traced(image);
            add(&mut read.traced, bytes.0);
            add(&mut write.traced, bytes.1);
            // Counters continue across exec: the bytes between two images of one process are the loader's.
            if let Some(io) = image.io {
                add(&mut read.before, io.start.rchar.saturating_sub(since.rchar));
                add(&mut write.before, io.start.wchar.saturating_sub(since.wchar));
                since = io.end;
            }
        }
        // The recorder's own reads of earlier images lie between the counts above.
        add(&mut read.before, lives[at].images.last().map_or(0, |image| image.recorder_read));
    }
    Some((read, write))
}

/// What the counters of images hold of children that the C library itself waited for, by the pid and nonce of the image.
pub(super) fn unlisted<'r>(images: &[&'r ProcessRecord]) -> HashMap<(u32, &'r str), IoCount> {
    let lives = lives(images);
    let mut found: HashMap<(u32, &str), IoCount> = HashMap::new();
    for life in lives.iter().filter(|life| !life.was_waited_for()) {
        let Some(parent) = life.parent.map(|parent| &lives[parent]) else { continue };
        let (Some(room), Some(count)) = (parent.room(), life.last_count()) else { continue };
        if life.outlived(parent) || !parent.is_traced() {
            continue;
        }
        let is_before = |image: &&&ProcessRecord| image.started_ns <= life.images[0].started_ns;
        let Some(image) = parent.images.iter().rev().find(is_before) else { continue };
        let sum = found.entry((image.pid, image.nonce.as_str())).or_default();
        let mut more = *sum;
        add(&mut more.rchar, count.rchar);
        add(&mut more.wchar, count.wchar);
        // Several that were not waited for would fit one by one.
        if fits(more, room) {
            *sum = more;
        }
    }
    found
}

fn fits(count: IoCount, room: IoCount) -> bool {
    room.rchar.saturating_add(SLACK) >= count.rchar && room.wchar.saturating_add(SLACK) >= count.wchar
}

/// Numbers come from a file: they may be any.
fn add(sum: &mut u64, more: u64) {
    *sum = sum.saturating_add(more);
}

/// Whether the count that a process's bytes went into is known: its ancestors up to one that nobody waited for.
fn takes_part(lives: &[Life<'_>], orphaned: &[bool], mut at: usize) -> bool {
    // Parents come from a file: they may stand in a circle.
    for _ in 0..lives.len() {
        match lives[at].parent {
            _ if orphaned[at] => return lives[at].last_count().is_some(),
            Some(parent) => at = parent,
            None => return true,
        }
    }
    true
}

fn lives<'r>(images: &[&'r ProcessRecord]) -> Vec<Life<'r>> {
    let mut lives: Vec<Life<'r>> = Vec::new();
    for image in images {
        let same = |life: &Life<'_>| {
            life.images.last().is_some_and(|last| {
                // Pids come again; an untraced program's start is not known.
                let starts = last.start == image.start || last.start == 0 || image.start == 0;
                (last.pid, last.pidns) == (image.pid, image.pidns) && starts
            })
        };
        match lives.last_mut().filter(|life| same(life)) {
            Some(life) => life.images.push(image),
            None => lives.push(Life { images: vec![image], parent: None }),
        }
    }
    let mut by_pid: HashMap<(u32, u64), Vec<usize>> = HashMap::new();
    for (at, life) in lives.iter().enumerate() {
        by_pid.entry((life.images[0].pid, life.images[0].pidns)).or_default().push(at);
    }
    for at in 0..lives.len() {
        let first = lives[at].images[0];
        let begun = |candidate: &usize| lives[*candidate].images[0].started_ns;
        let candidates = by_pid.get(&(first.ppid, first.pidns)).map_or(&[][..], |candidates| candidates);
        let parent = candidates.iter().filter(|candidate| **candidate != at && begun(candidate) <= first.started_ns);
        lives[at].parent = parent.max_by_key(|candidate| begun(candidate)).copied();
    }
    lives
}
