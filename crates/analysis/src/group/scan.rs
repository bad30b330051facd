//! Events of a run → groups by key words that batches hold directly: ids, buckets, numbers.

use arrow_array::{Array as _, Int64Array, UInt32Array};
use weftline_index::column::{SPAN_PHASES, phase_code};
use weftline_index::{Batch, Column, Filter, Request, Run};

use super::cell::Cell;
pub(crate) use super::row::{Row, number};
use super::table::{Groups, Slot};
use crate::Result;
use crate::classify::Classes;

/// A word that says "no value".
pub const NONE: u32 = u32::MAX;
/// A number that says so.
pub const NO_NUMBER: i64 = i64::MIN;

/// A part of a key as batches hold it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum KeyPart {
    /// Time since the origin in buckets.
    Bucket,
    Cat,
    Name,
    Process,
    File,
    /// [`Classes::file_class`].
    FileClass,
    /// [`Sizing::Later`]: where the size that was added came from.
    SizeFrom,
    /// Two words each.
    Thread,
    Epoch,
    Step,
}

impl KeyPart {
    pub(super) fn words(self) -> usize {
        if matches!(self, KeyPart::Thread | KeyPart::Epoch | KeyPart::Step) { 2 } else { 1 }
    }

    fn column(self) -> Option<Column> {
        Some(match self {
            KeyPart::Bucket => Column::Ts,
            KeyPart::Cat => Column::Cat,
            KeyPart::Name => Column::Name,
            KeyPart::Process => Column::Process,
            KeyPart::File | KeyPart::FileClass => Column::File,
            KeyPart::Thread => Column::Tid,
            KeyPart::Epoch => Column::EPOCH,
            KeyPart::Step => Column::STEP,
            KeyPart::SizeFrom => return None,
        })
    }
}

/// Values of [`KeyPart::SizeFrom`].
pub(super) mod size_from {
    pub(in super::super) const NOTHING: u32 = 0;
    pub(in super::super) const RETURNED: u32 = 1;
    pub(in super::super) const IMAGE: u32 = 2;
    /// Both were there: the event with what it returned …
    pub(in super::super) const BOTH: u32 = 3;
    /// … and, in a group without events, its image size.
    pub(in super::super) const BOTH_IMAGE: u32 = 4;

    #[inline]
    pub(super) fn of<T>(returned: Option<T>, image: Option<T>) -> u32 {
        match (returned, image) {
            (None, None) => NOTHING,
            (Some(_), None) => RETURNED,
            (None, Some(_)) => IMAGE,
            (Some(_), Some(_)) => BOTH,
        }
    }
}

/// How sizes are determined.
#[derive(Clone, Copy)]
pub(super) enum Sizing<'c> {
    /// What names and categories mean is known.
    Known(&'c Classes),
    /// It will be known after the pass: both candidates are kept.
    Later,
}

/// A pass over the spans of a run.
pub(super) struct Pass<'c> {
    pub(super) parts: Vec<KeyPart>,
    pub(super) sizing: Sizing<'c>,
    pub(super) origin: i64,
    pub(super) width_ns: i64,
    pub(super) filter: Filter,
    /// Whether arguments that stand in the rest are looked for.
    pub(super) rest: bool,
}

struct State<C> {
    groups: Groups<C>,
    /// Key words of a batch.
    keys: Vec<u32>,
    direct: Direct,
    slots: Vec<Slot>,
}

const NO_SLOT: Slot = Slot { shard: NONE, group: NONE };

/// Where groups are that were met before, when categories and names alone make the key: their ids are few and small, and to look
/// there is faster than to hash. `by_cat[cat][name]`, with the ways to tell a size side by side where those are part of the key.
#[derive(Default)]
struct Direct {
    by_cat: Vec<Vec<Slot>>,
}

impl Direct {
    /// Larger ids go through the hash table.
    const LIMIT: usize = 1 << 16;
    /// More than there are values of [`size_from`].
    const SIZES: usize = 8;

    #[inline]
    fn get(&self, cat: u32, place: usize) -> Option<Slot> {
        let slot = *self.by_cat.get(cat as usize)?.get(place)?;
        (slot != NO_SLOT).then_some(slot)
    }

    #[cold]
    fn note(&mut self, cat: u32, place: usize, slot: Slot) {
        let cat = cat as usize;
        if cat < Direct::LIMIT && place < Direct::LIMIT {
            self.by_cat.resize_with(self.by_cat.len().max(cat + 1), Vec::new);
            let names = &mut self.by_cat[cat];
            names.resize(names.len().max(place + 1), NO_SLOT);
            names[place] = slot;
        }
    }
}

impl Pass<'_> {
    fn width(&self) -> usize {
        self.parts.iter().map(|part| part.words()).sum()
    }

    fn request<C: Cell>(&self) -> Request {
        let mut columns = vec![Column::Phase, Column::Dur, Column::Cat, Column::Name, Column::RET, Column::IMAGE_SIZE];
        columns.extend(C::START.then_some(Column::Ts));
        columns.extend(C::OFFSET.then_some(Column::OFFSET));
        columns.extend(self.parts.iter().filter_map(|part| part.column()));
        columns.extend(self.rest.then_some(Column::Rest));
        Request::of(columns).with(self.filter.clone())
    }

    pub(super) fn run<C: Cell>(&self, run: &Run) -> Result<Groups<C>> {
        let width = self.width();
        let make = || State {
            groups: Groups::<C>::new(width),
            direct: Direct::default(),
            slots: Vec::new(),
            keys: Vec::new(),
        };
        let (states, _) = run.scan(&self.request::<C>(), make, |state, batch| self.fold(state, batch))?;
        Ok(Groups::merge(states.into_iter().map(|state| state.groups).collect(), width))
    }

    fn fold<C: Cell>(&self, state: &mut State<C>, batch: &Batch) {
        if self.parts == [KeyPart::Cat, KeyPart::Name, KeyPart::SizeFrom] {
            return self.fold_streamed_names(state, batch);
        }
        let mut slots = std::mem::take(&mut state.slots);
        slots.clear();
        if self.parts == [KeyPart::Cat, KeyPart::Name] {
            self.find_direct(state, batch, &mut slots);
        } else {
            self.find(state, batch, &mut slots);
        }
        let values = Row::of::<C>(batch, self.rest);
        for (row, slot) in slots.iter().enumerate() {
            if *slot != NO_SLOT {
                let size = match self.sizing {
                    Sizing::Known(classes) => values.size(row, classes),
                    Sizing::Later => values.returned(row).or_else(|| values.image(row)),
                };
                state.groups.at(*slot).add(values.values::<C>(row, size));
            }
        }
        state.slots = slots;
        if let Sizing::Later = self.sizing {
            self.second_candidates(state, batch, &values);
        }
    }

    /// Categories and names of a run without an index, in one go: the question that everybody asks first.
    fn fold_streamed_names<C: Cell>(&self, state: &mut State<C>, batch: &Batch) {
        let (cats, names) = (batch.ids(Column::Cat).values(), batch.ids(Column::Name).values());
        let values = Row::of::<C>(batch, self.rest);
        for row in batch.spans().rows() {
            let (cat, name) = (cats[row], names[row]);
            let (returned, image) = (values.returned(row), values.image(row));
            let from = size_from::of(returned, image);
            let place = name as usize * Direct::SIZES + from as usize;
            let slot = state.direct.get(cat, place).unwrap_or_else(|| {
                let slot = state.groups.slot(&[cat, name, from]);
                state.direct.note(cat, place, slot);
                slot
            });
            state.groups.at(slot).add(values.values::<C>(row, returned.or(image)));
            if let (size_from::BOTH, Some(image)) = (from, image) {
                state.groups.cell(&[cat, name, size_from::BOTH_IMAGE]).add_size(image);
            }
        }
    }

    fn find_direct<C: Cell>(&self, state: &mut State<C>, batch: &Batch, slots: &mut Vec<Slot>) {
        let (cats, names) = (batch.ids(Column::Cat).values(), batch.ids(Column::Name).values());
        let spans = batch.spans();
        for row in 0..batch.rows() {
            let (cat, name) = (cats[row], names[row]);
            if !spans.has(row) {
                slots.push(NO_SLOT);
                continue;
            }
            let slot = state.direct.get(cat, name as usize).unwrap_or_else(|| {
                let slot = state.groups.slot(&[cat, name]);
                state.direct.note(cat, name as usize, slot);
                slot
            });
            slots.push(slot);
        }
    }

    fn find<C: Cell>(&self, state: &mut State<C>, batch: &Batch, slots: &mut Vec<Slot>) {
        let spans = batch.spans();
        let width = state.groups.width;
        let mut keys = std::mem::take(&mut state.keys);
        Words::of(self, batch).write_all(batch.rows(), width, &mut keys);
        // Events of a process often come in runs of the same group.
        let (mut last, mut last_slot): (&[u32], Slot) = (&[], NO_SLOT);
        for (row, key) in keys.chunks_exact(width).enumerate() {
            if !spans.has(row) {
                slots.push(NO_SLOT);
                continue;
            }
            if key != last {
                last_slot = state.groups.slot(key);
                last = key;
            }
            slots.push(last_slot);
        }
        state.keys = keys;
    }

    /// Events that have both a result and an image size: which of them counts is not known yet.
    fn second_candidates<C: Cell>(&self, state: &mut State<C>, batch: &Batch, values: &Row<'_>) {
        let Some(at) = self.at(KeyPart::SizeFrom) else { return };
        let width = state.groups.width;
        let mut key = vec![0; width];
        for row in batch.spans().rows() {
            if let (Some(_), Some(image)) = (values.returned(row), values.image(row)) {
                // The words of the batch are still those of `find`.
                key.copy_from_slice(&state.keys[row * width..(row + 1) * width]);
                key[at] = size_from::BOTH_IMAGE;
                state.groups.cell(&key).add_size(image);
            }
        }
    }

    /// The place of a part among the key words.
    pub(super) fn at(&self, wanted: KeyPart) -> Option<usize> {
        let mut at = 0;
        for part in &self.parts {
            if *part == wanted {
                return Some(at);
            }
            at += part.words();
        }
        None
    }
}

/// The phases of spans.
pub(crate) fn span_phases() -> [u8; 3] {
    SPAN_PHASES.map(phase_code)
}

/// The key words of a batch's rows.
struct Words<'b> {
    parts: Vec<Source<'b>>,
}

enum Source<'b> {
    Bucket { ts: &'b Int64Array, origin: i64, width: i64 },
    Id(&'b [u32]),
    File(&'b UInt32Array),
    FileClass(&'b UInt32Array, &'b Classes),
    Number(&'b Int64Array),
    Argument(&'b Int64Array),
    SizeFrom(Row<'b>),
}

impl<'b> Words<'b> {
    fn of(pass: &'b Pass<'_>, batch: &'b Batch) -> Words<'b> {
        let source = |part: &KeyPart| match part {
            KeyPart::Bucket => {
                Source::Bucket { ts: batch.ints(Column::Ts), origin: pass.origin, width: pass.width_ns.max(1) }
            }
            KeyPart::Cat => Source::Id(batch.ids(Column::Cat).values()),
            KeyPart::Name => Source::Id(batch.ids(Column::Name).values()),
            KeyPart::Process => Source::Id(batch.ids(Column::Process).values()),
            KeyPart::File => Source::File(batch.ids(Column::File)),
            KeyPart::FileClass => match pass.sizing {
                Sizing::Known(classes) => Source::FileClass(batch.ids(Column::File), classes),
                Sizing::Later => Source::File(batch.ids(Column::File)),
            },
            KeyPart::SizeFrom => Source::SizeFrom(Row::new(batch, pass.rest, false, false)),
            KeyPart::Thread => Source::Number(batch.ints(Column::Tid)),
            KeyPart::Epoch => Source::Argument(batch.ints(Column::EPOCH)),
            KeyPart::Step => Source::Argument(batch.ints(Column::STEP)),
        };
        Words { parts: pass.parts.iter().map(source).collect() }
    }

    /// The key words of all rows, `width` of them per row: part after part, so that no row costs a choice between kinds of parts.
    fn write_all(&self, rows: usize, width: usize, keys: &mut Vec<u32>) {
        keys.clear();
        keys.resize(rows * width, NONE);
        let mut at = 0;
        for part in &self.parts {
            match part {
                Source::Bucket { ts, origin, width: wide } => {
                    let mut buckets = Buckets::new(*origin, *wide);
                    // `NONE` is kept free for events without a time; the caller checked that buckets fit.
                    fill(keys, at, width, |row| number(ts, row).map_or(NONE, |ts| buckets.of(ts) as u32));
                }
                Source::Id(ids) => fill(keys, at, width, |row| ids[row]),
                Source::File(files) => {
                    fill(keys, at, width, |row| if files.is_valid(row) { files.value(row) } else { NONE });
                }
                Source::FileClass(files, classes) => {
                    fill(keys, at, width, |row| classes.file_class(files.is_valid(row).then(|| files.value(row))));
                }
                Source::Number(numbers) => {
                    fill(keys, at, width, |row| numbers.value(row) as u32);
                    fill(keys, at + 1, width, |row| (numbers.value(row) >> 32) as u32);
                }
                Source::Argument(column) => {
                    let of = |row: usize| number(column, row).unwrap_or(NO_NUMBER);
                    fill(keys, at, width, |row| of(row) as u32);
                    fill(keys, at + 1, width, |row| (of(row) >> 32) as u32);
                }
                Source::SizeFrom(values) => {
                    fill(keys, at, width, |row| size_from::of(values.returned(row), values.image(row)));
                }
            }
            at += part.words();
        }
    }
}

impl Source<'_> {
    fn words(&self) -> usize {
        if matches!(self, Source::Number(_) | Source::Argument(_)) { 2 } else { 1 }
    }
}

/// Writes one word of every row's key.
#[inline]
fn fill(keys: &mut [u32], at: usize, width: usize, mut of: impl FnMut(usize) -> u32) {
    for (row, key) in keys.chunks_exact_mut(width).enumerate() {
        key[at] = of(row);
    }
}

/// Buckets of times that mostly lie close together: a division only where the bucket changes.
pub(crate) struct Buckets {
    origin: i64,
    width: i64,
    bucket: i64,
    range: std::ops::Range<i64>,
}

impl Buckets {
    pub(crate) fn new(origin: i64, width: i64) -> Buckets {
        Buckets { origin, width: width.max(1), bucket: 0, range: 0..0 }
    }

    #[inline]
    pub(crate) fn of(&mut self, ts: i64) -> i64 {
        if !self.range.contains(&ts) {
            self.bucket = ts.saturating_sub(self.origin).div_euclid(self.width);
            let start = self.origin.saturating_add(self.bucket.saturating_mul(self.width));
            self.range = start..start.saturating_add(self.width);
        }
        self.bucket
    }
}

/// The number that two words hold.
#[inline]
pub(super) fn from_two(words: &[u32]) -> i64 {
    i64::from(words[0]) | i64::from(words[1] as i32) << 32
}
