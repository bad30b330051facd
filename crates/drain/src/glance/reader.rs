//! One arena, read beside its processes and its drain.
//!
//! For each segment in use a [`Cursor`] holds how far it was read. The drain may zero and free a segment, and a process may take it
//! again, while it is being read; so a copy counts only if the segment is still the same afterwards.

use std::collections::{BTreeMap, HashMap};
use std::hash::BuildHasherDefault;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use weftline_calls::{Calls, Flow, IoSums, Side};
use weftline_format::identity::held;
use weftline_format::secrets::Arguments;
use weftline_recorder::annotation::{ANNOTATION, CONTINUED, EventKind, SKIPPED};
use weftline_recorder::layout::{
    LOSS_NAMES, RECORDS_PER_SEGMENT, process_state, record_flags, segment_clock, segment_state,
};

use super::sums::{MOST_NAMES, Sums};
use super::{OTHERS, ProcessSeen, ProcessState};
use crate::arena::view::ArenaView;
use crate::arena::{RecordCopy, SegmentAt, SegmentInfo, SlotInfo};
use crate::encode::IdHasher;
use crate::encode::kinds::{Role, kind_of};
use crate::image::{display_name, tag_of};
use crate::procfs::Host;
use crate::timeline::Timeline;
use crate::{paths, watch};

/// Records that are read in one look; what comes beyond is only counted. An arena that a supervisor drains never holds as many.
const MOST_RECORDS: u32 = 1 << 20;
/// Names that are remembered.
const MOST_KNOWN: usize = 1 << 16;
/// Closed segments whose fill is remembered.
const FILL_MEMORY: u64 = 64;

/// How far a segment was read.
#[derive(Clone, Copy, Debug)]
struct Cursor {
    /// What tells it from other uses of the same segment.
    sequence: u64,
    anchor_ticks: u64,
    slot: u32,
    generation: u64,
    next: u32,
    closed: bool,
    /// The next record was not finished at the last look. If it still is not, it is passed over.
    waited: bool,
}

impl Cursor {
    fn is_of(&self, info: &SegmentInfo) -> bool {
        (self.sequence, self.anchor_ticks, self.generation) == (info.sequence, info.anchor_ticks, info.generation)
    }
}

/// A process image of the arena.
struct ImageSeen {
    info: SlotInfo,
    tag: String,
    name: Arc<str>,
    exe: Arc<str>,
    command: Arc<[String]>,
    /// As we see it, if we do.
    pid: Option<u32>,
    gone: bool,
    state: ProcessState,
    /// Events that were told since its birth; nothing when that was before the first look.
    counted: Option<u64>,
    /// Its line is in the journal.
    finished: bool,
    drops: Vec<(&'static str, u64)>,
    /// Of this look.
    events: u64,
    unseen: u64,
    activity: IoSums,
}

impl ImageSeen {
    fn runs(&self) -> bool {
        self.state != ProcessState::Ending
    }
}

/// Reads one arena.
pub(super) struct Reader {
    view: ArenaView,
    /// How much of command lines is shown.
    arguments: Arguments,
    begun: bool,
    cursors: HashMap<SegmentAt, Cursor>,
    images: BTreeMap<u32, ImageSeen>,
    /// Images that left their slot.
    left: Vec<(String, Option<u64>)>,
    generations: u64,
    /// The arena's count of segments when it was first seen, how many were found since, and how many are known to be missed.
    taken_first: u64,
    taken_last: u64,
    found: u64,
    missed: u64,
    /// Closed segments that were seen, and the records in them.
    closed: u64,
    closed_records: u64,
    texts: HashMap<u32, Option<Arc<str>>, BuildHasherDefault<IdHasher>>,
    paths: HashMap<u32, Option<Arc<str>>, BuildHasherDefault<IdHasher>>,
    copied: Vec<RecordCopy>,
    /// Of this look.
    calls: HashMap<u16, IoSums>,
    spans: HashMap<(u32, u32), IoSums>,
    files: HashMap<u32, IoSums, BuildHasherDefault<IdHasher>>,
    /// Of images that left their slot before their segments were read.
    events: u64,
    unseen: u64,
}

impl Reader {
    pub(super) fn new(view: ArenaView, arguments: Arguments) -> Reader {
        Reader {
            view,
            arguments,
            begun: false,
            cursors: HashMap::new(),
            images: BTreeMap::new(),
            left: Vec::new(),
            generations: 0,
            taken_first: 0,
            taken_last: 0,
            found: 0,
            missed: 0,
            closed: 0,
            closed_records: 0,
            texts: HashMap::default(),
            paths: HashMap::default(),
            copied: Vec::new(),
            calls: HashMap::new(),
            spans: HashMap::new(),
            files: HashMap::default(),
            events: 0,
            unseen: 0,
        }
    }

    pub(super) fn inode(&self) -> u64 {
        self.view.inode()
    }

    /// Whether the arena was made empty for other processes since the last look.
    pub(super) fn was_reset(&self) -> bool {
        // Generations only grow while an arena is in use; an image with a number that another one had is in an arena made new.
        let replaced = |(slot, image): (&u32, &ImageSeen)| {
            let now = self.view.slot_info(*slot);
            self.view.slot_state(*slot) > process_state::CLAIMED
                && now.generation <= image.info.generation
                && now.born_ticks != image.info.born_ticks
        };
        self.view.generations() < self.generations
            || self.view.segments_taken() < self.taken_last
            || self.images.iter().any(replaced)
    }

    pub(super) fn anybody_runs(&self) -> bool {
        self.images.values().any(ImageSeen::runs)
    }

    pub(super) fn images(&self) -> u64 {
        self.images.values().filter(|image| !image.finished).count() as u64
    }

    /// Losses of the images that are not in the journal.
    pub(super) fn drops(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.images.values().filter(|image| !image.finished).flat_map(|image| image.drops.iter().copied())
    }

    /// The journal tells how many events an image had: how many of them were not counted. Nothing when it is no image of this arena.
    pub(super) fn finish(&mut self, tag: &str, events: u64) -> Option<u64> {
        let image = self.images.values_mut().find(|image| image.tag == tag)?;
        image.finished = true;
        let counted = image.counted?.saturating_add(image.events).saturating_add(image.unseen);
        image.counted = Some(events.max(counted).saturating_sub(image.events).saturating_sub(image.unseen));
        Some(events.saturating_sub(counted))
    }

    pub(super) fn leave_all(&mut self) {
        let images = std::mem::take(&mut self.images).into_values();
        self.left.extend(images.filter(|image| !image.finished).map(|image| (image.tag, image.counted)));
    }

    /// Images that left their slot and whose lines are not in the journal yet, with their counted events.
    pub(super) fn take_left(&mut self) -> Vec<(String, Option<u64>)> {
        std::mem::take(&mut self.left)
    }

    /// Reads what is new. Of an arena that was there before the first look (`known` is false) only where it ends.
    pub(super) fn look(&mut self, host: &Host, timeline: &Timeline, known: bool) {
        let from_birth = known || self.begun;
        if !self.begun {
            self.begun = true;
            self.taken_first = if known { 0 } else { self.view.segments_taken() };
        }
        self.look_at_slots(host, from_birth);
        self.generations = self.view.generations();
        self.taken_last = self.view.segments_taken();
        let used = self.view.used_segments();
        let mut room = MOST_RECORDS;
        let mut before = std::mem::take(&mut self.cursors);
        for at in used {
            let Some(info) = self.view.segment_info(at) else { continue };
            if info.state == segment_state::FREE || info.taken > RECORDS_PER_SEGMENT {
                continue;
            }
            let old = before.get(&at).copied().filter(|cursor| cursor.is_of(&info));
            let mut cursor = match old {
                Some(cursor) => {
                    before.remove(&at);
                    cursor
                }
                None => {
                    self.found += u64::from(from_birth);
                    let next = if from_birth { 0 } else { info.taken };
                    Cursor {
                        sequence: info.sequence,
                        anchor_ticks: info.anchor_ticks,
                        slot: info.slot,
                        generation: info.generation,
                        next,
                        closed: false,
                        waited: false,
                    }
                }
            };
            self.read_segment(at, &mut cursor, &info, timeline, &mut room);
            self.cursors.insert(at, cursor);
        }
        let fill = self.fill();
        for cursor in before.into_values().filter(|cursor| !cursor.closed) {
            // Of an image that ends, the journal will tell how many events it had.
            let image = self.images.get_mut(&cursor.slot);
            if let Some(image) = image.filter(|image| image.info.generation == cursor.generation && image.runs()) {
                image.unseen = image.unseen.saturating_add(fill.saturating_sub(u64::from(cursor.next)));
            }
        }
        self.count_missed();
    }

    /// Records of a segment that nobody saw: as many as those had that were seen lately. Threads that end leave their segments half
    /// empty, so a full one is only assumed before one was seen.
    fn fill(&self) -> u64 {
        self.closed_records.checked_div(self.closed).unwrap_or(u64::from(RECORDS_PER_SEGMENT))
    }

    fn read_segment(
        &mut self,
        at: SegmentAt,
        cursor: &mut Cursor,
        info: &SegmentInfo,
        timeline: &Timeline,
        room: &mut u32,
    ) {
        if info.state == segment_state::CLOSED && !cursor.closed {
            cursor.closed = true;
            if self.closed >= FILL_MEMORY {
                self.closed /= 2;
                self.closed_records /= 2;
            }
            self.closed += 1;
            self.closed_records += u64::from(info.taken);
        }
        let new = info.taken.saturating_sub(cursor.next);
        if new == 0 {
            return;
        }
        if new > *room {
            self.add_unseen(cursor.slot, cursor.generation, u64::from(new));
            cursor.next = info.taken;
            return;
        }
        let mut copied = std::mem::take(&mut self.copied);
        copied.clear();
        let mut stopped_at = None;
        let first = self.view.records(at).and_then(|records| {
            let first = records.get(0).map(|record| record.head);
            for index in cursor.next..info.taken {
                match records.get(index) {
                    Some(record) => copied.push(record),
                    None if cursor.waited => {}
                    None => {
                        stopped_at = Some(index);
                        break;
                    }
                }
            }
            first
        });
        // The drain zeroes from the first record on, before it frees the segment; what was copied meanwhile may be torn.
        fence(Ordering::Acquire);
        let first_now = self.view.records(at).and_then(|records| records.get(0)).map(|record| record.head);
        let is_same =
            self.view.segment_info(at).is_some_and(|now| now.state != segment_state::FREE && cursor.is_of(&now));
        if is_same && first_now == first && (first.is_some() || stopped_at == Some(0) || cursor.waited) {
            *room -= copied.len() as u32;
            let counted = (info.clock != segment_clock::SHARED).then(|| timeline.of_monotonic());
            let timeline = counted.as_ref().unwrap_or(timeline);
            for record in &copied {
                self.record(cursor, record, timeline);
            }
            cursor.next = stopped_at.unwrap_or(info.taken);
            cursor.waited = stopped_at.is_some();
        } else {
            self.add_unseen(cursor.slot, cursor.generation, u64::from(new));
            cursor.next = info.taken;
        }
        self.copied = copied;
    }

    fn record(&mut self, cursor: &Cursor, record: &RecordCopy, timeline: &Timeline) {
        if matches!(record.head, CONTINUED | SKIPPED) {
            return;
        }
        let took = |from: u64| u64::try_from(timeline.at(record.end).saturating_sub(timeline.at(from))).unwrap_or(0);
        let mut call = None;
        if record.head & ANNOTATION != 0 {
            let kind = match EventKind::of_head(record.head) {
                Some(EventKind::Meta) | None => return,
                Some(kind) => kind,
            };
            let is_span = matches!(kind, EventKind::Span | EventKind::AsyncSpan);
            let time_ns = if is_span { took(record.start) } else { 0 };
            // The end of what was told at its start is no second one.
            if !matches!(kind, EventKind::End | EventKind::AsyncEnd) {
                let key = (record.path, record.fd.cast_unsigned());
                let room = self.spans.len() < MOST_NAMES || self.spans.contains_key(&key);
                self.spans.entry(if room { key } else { (0, 0) }).or_default().merge(&IoSums {
                    calls: 1,
                    time_ns,
                    ..IoSums::default()
                });
            }
        } else {
            let Some(kind) = kind_of(record.head) else { return };
            if !matches!(kind.role, Role::Mark | Role::Name) {
                let folded = record.head & record_flags::FOLDED != 0;
                let calls = Calls {
                    count: if folded { u64::from(record.detail) } else { 1 },
                    time_ns: took(if folded { record.end.saturating_sub(record.extra) } else { record.start }),
                    bytes: u64::try_from(record.ret).unwrap_or(0),
                };
                let operation = kind.call.operation;
                self.calls.entry(record.head as u16).or_default().add(operation, calls);
                let copies = operation.flow() == Flow::Both && record.head & record_flags::SECOND_PATH != 0;
                let second = if copies { record.extra as u32 } else { 0 };
                for (side, path) in [(Side::File, record.path), (Side::SecondFile, second)] {
                    if path != 0 {
                        let room = self.files.len() < MOST_NAMES || self.files.contains_key(&path);
                        self.files.entry(if room { path } else { 0 }).or_default().add_to(side, operation, calls);
                    }
                }
                call = Some((operation, calls));
            }
        }
        match self.images.get_mut(&cursor.slot).filter(|image| image.info.generation == cursor.generation) {
            Some(image) => {
                image.events += 1;
                if let Some((operation, calls)) = call {
                    image.activity.add(operation, calls);
                }
            }
            None => self.events += 1,
        }
    }

    fn add_unseen(&mut self, slot: u32, generation: u64, count: u64) {
        match self.images.get_mut(&slot).filter(|image| image.info.generation == generation) {
            Some(image) => image.unseen = image.unseen.saturating_add(count),
            None => self.unseen = self.unseen.saturating_add(count),
        }
    }

    /// Segments that were handed out and given back since the last look are missing in the count. Whose they were is not known; those
    /// who made the events that were seen are the likely ones.
    fn count_missed(&mut self) {
        let taken = self.taken_last.saturating_sub(self.taken_first);
        let missed = taken.saturating_sub(self.found).saturating_sub(self.missed);
        if missed == 0 {
            return;
        }
        self.missed += missed;
        let mut left = missed.saturating_mul(self.fill());
        // Of images that end the journal will tell.
        let weight = |image: &ImageSeen| if image.runs() { (image.events + image.unseen).max(1) } else { 0 };
        let mut weights: u64 = self.images.values().map(weight).sum();
        for image in self.images.values_mut() {
            let weight = weight(image);
            let part = (u128::from(left) * u128::from(weight) / u128::from(weights.max(1))) as u64;
            image.unseen = image.unseen.saturating_add(part);
            left -= part;
            weights -= weight;
        }
    }

    fn look_at_slots(&mut self, host: &Host, from_birth: bool) {
        for slot in 0..self.view.slots_used() {
            let state = self.view.slot_state(slot);
            let info = self.view.slot_info(slot);
            let in_use = state > process_state::CLAIMED;
            let is_other = |image: &ImageSeen| !in_use || image.info.generation != info.generation;
            if self.images.get(&slot).is_some_and(is_other)
                && let Some(image) = self.images.remove(&slot).filter(|image| !image.finished)
            {
                self.left.push((image.tag, image.counted));
            }
            if !in_use {
                continue;
            }
            if !self.images.contains_key(&slot) {
                let image = self.read_image(slot, info, host, from_birth);
                self.images.insert(slot, image);
            }
            let drops = self.view.slot_end(slot).map(|end| end.losses).unwrap_or_default();
            let Some(image) = self.images.get_mut(&slot) else { continue };
            image.drops = LOSS_NAMES.into_iter().zip(drops).filter(|(_, count)| *count > 0).collect();
            image.gone |= image.pid.is_some_and(|pid| !watch::is_process(pid, image.info.born_boot, host));
            image.state = match state {
                _ if image.gone => ProcessState::Ending,
                process_state::LIVE => ProcessState::Running,
                process_state::EXECUTING => ProcessState::Executing,
                _ => ProcessState::Ending,
            };
        }
    }

    fn read_image(&self, slot: u32, info: SlotInfo, host: &Host, from_birth: bool) -> ImageSeen {
        let command = self.view.name(info.birth.command).map(|(_, bytes)| bytes).unwrap_or_default();
        let words = command.strip_suffix(b"\0").unwrap_or(command).split(|byte| *byte == 0);
        let command = self.arguments.kept(words.map(held));
        let exe = paths::resolve(|id| self.view.name(id), info.birth.exe).map(|path| held(&path)).unwrap_or_default();
        ImageSeen {
            tag: tag_of(&info),
            name: display_name(&command, &exe, info.birth.parent_slot != 0).into(),
            exe: exe.into(),
            command: command.into(),
            pid: self.view.seen_as(slot, host),
            gone: false,
            state: ProcessState::Running,
            counted: from_birth.then_some(0),
            finished: false,
            drops: Vec::new(),
            events: 0,
            unseen: 0,
            activity: IoSums::default(),
            info,
        }
    }

    /// Hands over what this look saw.
    pub(super) fn tell(&mut self, sums: &mut Sums) {
        let view = &self.view;
        for known in [&mut self.texts, &mut self.paths] {
            if known.len() > MOST_KNOWN {
                known.clear();
            }
        }
        for (call, activity) in self.calls.drain() {
            if let Some(kind) = kind_of(u32::from(call)) {
                sums.add_call(&kind.call.name.into(), &kind.category.into(), &activity);
            }
        }
        let mut text = |id: u32, otherwise: &str| -> Arc<str> {
            let read = || view.name(id).map(|(_, bytes)| held(bytes).into()).filter(|text: &Arc<str>| !text.is_empty());
            self.texts.entry(id).or_insert_with(read).clone().unwrap_or_else(|| otherwise.into())
        };
        for ((name, category), activity) in self.spans.drain() {
            let name = text(name, OTHERS);
            sums.add_call(&name, &text(category, "app"), &activity);
        }
        for (id, activity) in self.files.drain() {
            let read = || paths::resolve(|id| view.name(id), id).map(|path| held(&path).into());
            let path = self.paths.entry(id).or_insert_with(read).clone().unwrap_or_else(|| OTHERS.into());
            sums.add_file(&path, &activity);
        }
        sums.events += std::mem::take(&mut self.events);
        sums.unseen += std::mem::take(&mut self.unseen);
        for image in self.images.values_mut() {
            let (events, unseen) = (std::mem::take(&mut image.events), std::mem::take(&mut image.unseen));
            image.counted = image.counted.map(|counted| counted.saturating_add(events).saturating_add(unseen));
            sums.processes.push(ProcessSeen {
                pid: image.pid.unwrap_or(0),
                own_pid: image.info.birth.pid,
                ppid: image.info.birth.ppid,
                name: Arc::clone(&image.name),
                exe: Arc::clone(&image.exe),
                command: Arc::clone(&image.command),
                rank: u32::try_from(image.info.birth.rank).ok(),
                state: image.state,
                events,
                unseen,
                activity: std::mem::take(&mut image.activity),
                drops: image.drops.clone(),
                key: u128::from(image.info.birth.nonce) << 64 | u128::from(image.info.born_ticks),
            });
        }
    }
}
