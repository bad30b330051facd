//! One pass over the spans of a run that gathers all that a summary shows.

use std::sync::{Mutex, PoisonError};

use arrow_array::Array as _;
use rustc_hash::{FxHashMap, FxHashSet};
use weftline_index::{Batch, Column, Dictionary, Filter, Request, Run};

use crate::Result;
use crate::classify::{Classes, IoCat, SIZE_BINS, bin_of};
use crate::group::scan::{Buckets, Row, is_span};
use crate::group::{Cell as _, Stats, Values};
use crate::histogram::Histogram;
use crate::intervals::Intervals;
use crate::layers::Layer;

/// What is gathered.
pub(super) struct Pass<'p> {
    pub(super) dictionary: &'p Dictionary,
    pub(super) classes: &'p Classes,
    pub(super) layers: &'p [Layer],
    /// By process id: the id that stands for it, of those that mean the same process.
    pub(super) people: Vec<u32>,
    pub(super) filter: Filter,
    pub(super) origin: i64,
    pub(super) width_ns: i64,
    /// Whether a layer beyond I/O has sizes.
    pub(super) rest: bool,
    /// Whether ranges of time are kept on the way; else they are gathered later, window by window.
    pub(super) intervals: bool,
}

/// Calls of one kind.
#[derive(Debug, Clone)]
pub(super) struct Operation {
    pub(super) stats: Stats,
    pub(super) durations: Histogram,
}

/// Bytes and calls on one file, or of one process or bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// I/O calls.
    pub calls: u64,
    /// Of those: calls that ask for or change what is known of files.
    pub metadata_calls: u64,
    /// Bytes read.
    pub read: u128,
    /// Bytes written.
    pub written: u128,
    /// Time in I/O calls, ns: the sum of their durations.
    pub time: i128,
}

impl Traffic {
    #[inline]
    fn add(&mut self, io_cat: IoCat, dur: i64, size: u64) {
        self.add_many(io_cat, 1, dur.into(), size.into());
    }

    /// Takes up calls of one kind.
    #[inline]
    pub(super) fn add_many(&mut self, io_cat: IoCat, calls: u64, time: i128, size: u128) {
        self.calls += calls;
        self.metadata_calls += if io_cat == IoCat::Metadata { calls } else { 0 };
        self.time += time;
        match io_cat {
            IoCat::Read => self.read += size,
            IoCat::Write => self.written += size,
            _ => {}
        }
    }

    pub(super) fn merge(&mut self, other: &Traffic) {
        self.calls += other.calls;
        self.metadata_calls += other.metadata_calls;
        self.read += other.read;
        self.written += other.written;
        self.time += other.time;
    }

    /// Bytes in both directions.
    pub fn bytes(&self) -> u128 {
        self.read + self.written
    }
}

/// Events of a layer.
#[derive(Debug, Clone, Default)]
pub(super) struct LayerSums {
    pub(super) count: u64,
    pub(super) time: i128,
    pub(super) size: u128,
    /// Of `count`: calls that are known only as totals.
    pub(super) totals: u64,
    /// Processes of those.
    pub(super) total_people: FxHashSet<u32>,
}

/// What one thread has gathered, and then all.
#[derive(Default)]
pub(super) struct Gathered {
    /// By category and name.
    pub(super) operations: FxHashMap<(u32, u32), Operation>,
    pub(super) files: Vec<Traffic>,
    pub(super) processes: Vec<Traffic>,
    /// First start and last end of each process.
    pub(super) lives: Vec<Option<(i64, i64)>>,
    pub(super) buckets: FxHashMap<u32, Traffic>,
    /// The first buckets; merged into `buckets` at the end.
    dense: Vec<Traffic>,
    pub(super) read_bins: [u64; SIZE_BINS],
    pub(super) write_bins: [u64; SIZE_BINS],
    pub(super) layers: Vec<LayerSums>,
    /// By layer, then by process.
    pub(super) intervals: Vec<Vec<Intervals>>,
    pub(super) ignored: u64,
    pub(super) events: u64,
    /// Calls that are known only as totals.
    pub(super) totals: u64,
    /// Of those: reads and writes whose sizes are not known.
    pub(super) unbinned: (u64, u64),
}

pub(super) fn grown<T: Default + Clone>(all: &mut Vec<T>, place: usize) -> &mut T {
    if place >= all.len() {
        all.resize(place + 1, T::default());
    }
    &mut all[place]
}

/// What a kind of event is, looked up once per category and name.
#[derive(Clone)]
struct Kind {
    io_cat: IoCat,
    is_io: bool,
    ignored: bool,
    /// Layers as bits, by the suffix bits of the file.
    layers: Vec<u32>,
}

const UNKNOWN: u32 = u32::MAX;
/// Buckets that are found without hashing.
const DENSE_BUCKETS: usize = 1 << 14;

struct State {
    gathered: Gathered,
    kinds: Vec<Vec<Option<Box<Kind>>>>,
    /// Operations by category and name.
    places: Vec<Vec<u32>>,
    operations: Vec<((u32, u32), Operation)>,
}

impl Pass<'_> {
    /// Which layers an event is in.
    pub(super) fn layer_bits(&self, cat: u32, name: u32, suffix_bits: u8) -> u32 {
        let label = self.classes.cat_label(self.classes.effective_cat(cat, suffix_bits));
        let (name, io_cat) = (self.dictionary.name(name), self.classes.io_cat(cat, name));
        let layers = self.layers.iter().take(31).enumerate();
        layers.fold(0, |bits, (place, layer)| bits | u32::from(layer.test.holds(label, name, io_cat)) << place)
    }

    fn kind<'s>(&self, kinds: &'s mut Vec<Vec<Option<Box<Kind>>>>, cat: u32, name: u32) -> &'s mut Kind {
        let names = grown(kinds, cat as usize);
        if name as usize >= names.len() {
            names.resize_with(name as usize + 1, || None);
        }
        names[name as usize].get_or_insert_with(|| {
            Box::new(Kind {
                io_cat: self.classes.io_cat(cat, name),
                is_io: self.classes.is_io(cat),
                ignored: self.classes.ignores_name(name),
                layers: vec![UNKNOWN; 256],
            })
        })
    }

    fn request(&self) -> Request {
        let mut columns =
            vec![Column::Phase, Column::Ts, Column::Dur, Column::Cat, Column::Name, Column::Process, Column::File];
        columns.extend(["ret", "image_size"].into_iter().filter_map(Column::integer));
        columns.extend(self.rest.then_some(Column::Rest));
        Request::of(columns).with(self.filter.clone())
    }

    /// Gathers.
    pub(super) fn run(&self, run: &Run) -> Result<Gathered> {
        let make = || State {
            gathered: Gathered {
                layers: vec![LayerSums::default(); self.layers.len()],
                intervals: vec![Vec::new(); self.layers.len()],
                dense: vec![Traffic::default(); DENSE_BUCKETS],
                ..Gathered::default()
            },
            kinds: Vec::new(),
            places: Vec::new(),
            operations: Vec::new(),
        };
        let (states, _) = run.scan(&self.request(), make, |state, batch| self.fold(state, batch))?;
        let mut all: Option<Gathered> = None;
        for state in states {
            let mut one = state.gathered;
            one.operations = state.operations.into_iter().collect();
            let dense = std::mem::take(&mut one.dense).into_iter().enumerate().filter(|(_, traffic)| traffic.calls > 0);
            one.buckets.extend(dense.map(|(bucket, traffic)| (bucket as u32, traffic)));
            match &mut all {
                Some(all) => all.merge(one),
                None => all = Some(one),
            }
        }
        let mut all = all.unwrap_or_default();
        all.layers.resize_with(self.layers.len(), LayerSums::default);
        all.intervals.resize_with(self.layers.len(), Vec::new);
        all.intervals.iter_mut().flatten().for_each(Intervals::settle);
        Ok(all)
    }

    fn fold(&self, state: &mut State, batch: &Batch) {
        let State { gathered, kinds, places, operations } = state;
        let phases = batch.phases().values();
        let rows = Row::new(batch, self.rest, false, true);
        let mut buckets = Buckets::new(self.origin, self.width_ns);
        let people = batch.ids(Column::Process).values();
        let files = batch.ids(Column::File);
        for row in (0..batch.rows()).filter(|row| is_span(phases[*row])) {
            gathered.events += 1;
            let (cat, name) = rows.kind(row);
            let file = files.is_valid(row).then(|| files.value(row));
            let kind = self.kind(kinds, cat, name);
            if kind.ignored || self.classes.ignores_file(file) {
                gathered.ignored += 1;
                continue;
            }
            let (start, dur) = rows.span(row);
            let end = start.saturating_add(dur.max(0));
            let size = rows.size(row, self.classes);
            let process = self.people[people[row] as usize] as usize;

            let names = grown(places, cat as usize);
            let place = grown_from(names, name as usize);
            if *place == UNKNOWN {
                *place = operations.len() as u32;
                operations.push(((cat, name), Operation { stats: Stats::empty(), durations: Histogram::default() }));
            }
            let operation = &mut operations[*place as usize].1;
            operation.stats.add(Values { start, dur, size, offset: None });
            operation.durations.add(dur);

            let life = grown(&mut gathered.lives, process);
            *life = Some(life.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
            if kind.is_io {
                let bytes = size.unwrap_or(0);
                if let Some(file) = file {
                    grown(&mut gathered.files, file as usize).add(kind.io_cat, dur, bytes);
                }
                grown(&mut gathered.processes, process).add(kind.io_cat, dur, bytes);
                let bucket = buckets.of(start) as u32;
                match gathered.dense.get_mut(bucket as usize) {
                    Some(traffic) => traffic.add(kind.io_cat, dur, bytes),
                    None => gathered.buckets.entry(bucket).or_default().add(kind.io_cat, dur, bytes),
                }
                match (kind.io_cat, size) {
                    (IoCat::Read, Some(size)) => gathered.read_bins[bin_of(size)] += 1,
                    (IoCat::Write, Some(size)) => gathered.write_bins[bin_of(size)] += 1,
                    _ => {}
                }
            }
            let suffix_bits = self.classes.suffix_bits(file);
            let known = &mut kind.layers[usize::from(suffix_bits)];
            if *known == UNKNOWN {
                *known = self.layer_bits(cat, name, suffix_bits);
            }
            let mut bits = *known;
            while bits != 0 {
                let layer = bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let sums = &mut gathered.layers[layer];
                sums.count += 1;
                sums.time += i128::from(dur);
                sums.size += u128::from(size.unwrap_or(0));
                if self.intervals {
                    grown(&mut gathered.intervals[layer], process).add(start, end);
                }
            }
        }
    }

    /// The ranges of time of a window, clipped to it: what lengths over all windows add up to is exact.
    pub(super) fn window(&self, run: &Run, from: i64, to: i64) -> Result<Vec<Vec<Intervals>>> {
        let each = |found: &mut Vec<Vec<Intervals>>, span: &WindowSpan<'_>| {
            span.layers(|layer| grown(&mut found[layer], span.process as usize).add(span.start, span.end));
        };
        let states = self.each_in_window(run, from, to, &[], || vec![Vec::new(); self.layers.len()], each)?;
        let mut all = vec![Vec::new(); self.layers.len()];
        for found in states {
            join(&mut all, found);
        }
        all.iter_mut().flatten().for_each(Intervals::settle);
        Ok(all)
    }

    /// Shows every span of a window, clipped to it, to a fold; `more` are columns that it needs beside those of all.
    pub(super) fn each_in_window<S: Send>(
        &self,
        run: &Run,
        from: i64,
        to: i64,
        more: &[Column],
        make: impl Fn() -> S + Sync,
        each: impl Fn(&mut S, &WindowSpan<'_>) + Sync,
    ) -> Result<Vec<S>> {
        let columns =
            [Column::Phase, Column::Ts, Column::Dur, Column::Cat, Column::Name, Column::Process, Column::File];
        let mut filter = self.filter.clone();
        filter.from_ns = Some(filter.from_ns.map_or(from, |known| known.max(from)));
        filter.to_ns = Some(filter.to_ns.map_or(to, |known| known.min(to)));
        let known: Mutex<FxHashMap<(u32, u32, u8), u32>> = Mutex::default();
        let bits_of = |cat: u32, name: u32, suffix: u8| {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            *known.entry((cat, name, suffix)).or_insert_with(|| self.layer_bits(cat, name, suffix))
        };
        type Cache = FxHashMap<(u32, u32, u8), u32>;
        let fold = |(state, cache): &mut (S, Cache), batch: &Batch| {
            let phases = batch.phases().values();
            let (cats, names) = (batch.ids(Column::Cat).values(), batch.ids(Column::Name).values());
            let (people, files) = (batch.ids(Column::Process).values(), batch.ids(Column::File));
            let (ts, dur) = (batch.ints(Column::Ts), batch.ints(Column::Dur));
            for row in (0..batch.rows()).filter(|row| is_span(phases[*row]) && ts.is_valid(*row) && dur.is_valid(*row))
            {
                let file = files.is_valid(row).then(|| files.value(row));
                if self.classes.ignores_name(names[row]) || self.classes.ignores_file(file) {
                    continue;
                }
                let suffix = self.classes.suffix_bits(file);
                let key = (cats[row], names[row], suffix);
                let bits = *cache.entry(key).or_insert_with(|| bits_of(key.0, key.1, key.2));
                let (start, end) = (ts.value(row).max(from), ts.value(row).saturating_add(dur.value(row)).min(to));
                let process = self.people[people[row] as usize];
                each(state, &WindowSpan { batch, row, process, file, start, end, bits });
            }
        };
        let request = Request::of([columns.as_slice(), more].concat()).with(filter);
        let (states, _) = run.scan(&request, || (make(), Cache::default()), fold)?;
        Ok(states.into_iter().map(|(state, _)| state).collect())
    }
}

/// A span of a window.
pub(super) struct WindowSpan<'b> {
    pub(super) batch: &'b Batch,
    pub(super) row: usize,
    /// The process that stands for it, of those that mean the same.
    pub(super) process: u32,
    pub(super) file: Option<u32>,
    pub(super) start: i64,
    pub(super) end: i64,
    /// Its layers.
    bits: u32,
}

impl WindowSpan<'_> {
    /// The places of its layers.
    pub(super) fn layers(&self, mut each: impl FnMut(usize)) {
        let mut bits = self.bits;
        while bits != 0 {
            each(bits.trailing_zeros() as usize);
            bits &= bits - 1;
        }
    }
}

fn grown_from(all: &mut Vec<u32>, place: usize) -> &mut u32 {
    if place >= all.len() {
        all.resize(place + 1, UNKNOWN);
    }
    &mut all[place]
}

fn join(all: &mut [Vec<Intervals>], found: Vec<Vec<Intervals>>) {
    for (all, found) in all.iter_mut().zip(found) {
        for (process, intervals) in found.into_iter().enumerate() {
            grown(all, process).join(intervals);
        }
    }
}

impl Gathered {
    fn merge(&mut self, other: Gathered) {
        for (key, operation) in other.operations {
            match self.operations.get_mut(&key) {
                Some(known) => {
                    known.stats.merge(&operation.stats);
                    known.durations.merge(&operation.durations);
                }
                None => drop(self.operations.insert(key, operation)),
            }
        }
        for (place, traffic) in other.files.iter().enumerate() {
            grown(&mut self.files, place).merge(traffic);
        }
        for (place, traffic) in other.processes.iter().enumerate() {
            grown(&mut self.processes, place).merge(traffic);
        }
        for (place, life) in other.lives.into_iter().enumerate() {
            let own = grown(&mut self.lives, place);
            *own = match (*own, life) {
                (Some(own), Some(life)) => Some((own.0.min(life.0), own.1.max(life.1))),
                (own, life) => own.or(life),
            };
        }
        for (bucket, traffic) in other.buckets {
            self.buckets.entry(bucket).or_default().merge(&traffic);
        }
        for bin in 0..SIZE_BINS {
            self.read_bins[bin] += other.read_bins[bin];
            self.write_bins[bin] += other.write_bins[bin];
        }
        for (own, other) in self.layers.iter_mut().zip(other.layers) {
            own.count += other.count;
            own.time += other.time;
            own.size += other.size;
        }
        join(&mut self.intervals, other.intervals);
        self.ignored += other.ignored;
        self.events += other.events;
    }
}
