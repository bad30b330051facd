//! The summary's part of the one pass over the events that a report makes.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::Array as _;
use rustc_hash::FxHashMap;
use weftline_calls::{Activity, Calls, Flow, IoSums, Operation, Side};
use weftline_format::Phase;
use weftline_index::column::phase_code;
use weftline_index::{Batch, Column, Dictionary, Filter, Request, Run, Shard};

use super::gathered::{Gathered, LayerSums, OperationKey, OperationStats, grown};
use super::layers::{LayerWalls, join};
use crate::Result;
use crate::classify::{Classes, bin_of};
use crate::group::scan::{Buckets, Row};
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
    pub(super) process_ids: &'p [u32],
    pub(super) filter: &'p Filter,
    pub(super) shard: &'p Shard,
    pub(super) origin: i64,
    pub(super) width_ns: i64,
    /// Whether a layer beyond I/O has sizes.
    pub(super) rest: bool,
    /// Whether ranges of time are kept on the way; else they are gathered later, window by window.
    pub(super) intervals: bool,
}

/// What a kind of event is, looked up once per category and name.
#[derive(Clone)]
struct EventClass {
    operation: Operation,
    is_io: bool,
    ignored: bool,
    repeats_size: bool,
    /// The places of its layers, by the suffix bits of the file.
    layers: Vec<Option<Places>>,
}

/// Places of layers, of which there may be one per category of a trace.
pub(super) type Places = Arc<[u32]>;

const UNKNOWN: u32 = u32::MAX;
/// Buckets that are found without hashing.
const DENSE_BUCKETS: usize = 1 << 14;

/// What one thread has gathered.
pub(super) struct State {
    gathered: Gathered,
    /// The first buckets; merged into the others at the end.
    dense: Vec<IoSums>,
    kinds: Vec<Vec<Option<Box<EventClass>>>>,
    /// Operations by category, and by name and waiting.
    places: Vec<Vec<u32>>,
    operations: Vec<(OperationKey, OperationStats)>,
}

impl Pass<'_> {
    /// Which layers an event is in.
    pub(super) fn layers_of(&self, cat: u32, name: u32, suffix_bits: u8) -> Places {
        let label = self.classes.cat_label(self.classes.effective_cat(cat, suffix_bits));
        let (name, io_cat) = (self.dictionary.name(name), self.classes.io_cat(cat, name));
        let layers = self.layers.iter().zip(0u32..);
        layers.filter(|(layer, _)| layer.test.holds(label, name, io_cat)).map(|(_, place)| place).collect()
    }

    fn kind<'s>(&self, kinds: &'s mut Vec<Vec<Option<Box<EventClass>>>>, cat: u32, name: u32) -> &'s mut EventClass {
        let names = grown(kinds, cat as usize);
        if name as usize >= names.len() {
            names.resize_with(name as usize + 1, || None);
        }
        names[name as usize].get_or_insert_with(|| {
            Box::new(EventClass {
                operation: self.classes.operation(cat, name),
                is_io: self.classes.is_io(cat),
                ignored: self.classes.ignores_name(name),
                repeats_size: self.classes.repeats_size(cat, name),
                layers: vec![None; 256],
            })
        })
    }

    /// The columns that it looks at.
    pub(super) fn columns(&self) -> Vec<Column> {
        let mut columns = vec![
            Column::Phase,
            Column::Ts,
            Column::Dur,
            Column::Cat,
            Column::Name,
            Column::Process,
            Column::File,
            Column::SecondFile,
            Column::RET,
            Column::IMAGE_SIZE,
        ];
        columns.extend(self.rest.then_some(Column::Rest));
        columns
    }

    /// What a thread begins with.
    pub(super) fn begin(&self) -> State {
        State {
            gathered: Gathered {
                layers: vec![LayerSums::default(); self.layers.len()],
                walls: LayerWalls::new(self.layers.len()),
                ..Gathered::default()
            },
            dense: vec![IoSums::default(); DENSE_BUCKETS],
            kinds: Vec::new(),
            places: Vec::new(),
            operations: Vec::new(),
        }
    }

    /// What all threads have gathered, together.
    pub(super) fn finish(&self, states: Vec<State>) -> Gathered {
        let mut all: Option<Gathered> = None;
        for state in states {
            let mut one = state.gathered;
            one.operations = state.operations.into_iter().collect();
            let dense = state.dense.into_iter().enumerate().filter(|(_, traffic)| traffic.calls > 0);
            one.buckets.extend(dense.map(|(bucket, traffic)| (bucket as u32, traffic)));
            match &mut all {
                Some(all) => all.merge(one),
                None => all = Some(one),
            }
        }
        let mut all = all.unwrap_or_else(|| self.begin().gathered);
        all.walls.settle();
        all
    }

    /// Takes up a batch.
    pub(super) fn fold(&self, state: &mut State, batch: &Batch) {
        let State { gathered, dense, kinds, places, operations } = state;
        let rows = Row::new(batch, self.rest, false, true);
        let mut buckets = Buckets::new(self.origin, self.width_ns);
        let process_ids = batch.ids(Column::Process).values();
        let (files, second_files) = (batch.ids(Column::File), batch.ids(Column::SecondFile));
        for (id, phase) in process_ids.iter().zip(batch.phases().values()) {
            if ![phase_code(Phase::Metadata), phase_code(Phase::Counter)].contains(phase) {
                *grown(&mut gathered.seen, self.process_ids[*id as usize] as usize) = true;
            }
        }
        for row in batch.spans().rows() {
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
            let size = rows.size(row, self.classes).filter(|_| !kind.repeats_size);
            let process = self.process_ids[process_ids[row] as usize] as usize;

            let names = grown(places, cat as usize);
            let waits = self.classes.activity(cat, name, file).is_some_and(Activity::is_waiting);
            let place = grown_from(names, name as usize * 2 + usize::from(waits));
            if *place == UNKNOWN {
                *place = operations.len() as u32;
                let stats = OperationStats { stats: Stats::empty(), durations: Histogram::default() };
                operations.push(((cat, name, waits), stats));
            }
            let operation = &mut operations[*place as usize].1;
            operation.stats.add(Values { start, dur, size, offset: None });
            operation.durations.add(dur);

            let life = grown(&mut gathered.lives, process);
            *life = Some(life.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
            if kind.is_io {
                let (operation, flow) = (kind.operation, kind.operation.flow());
                let calls = Calls { count: 1, time_ns: dur.max(0) as u64, bytes: size.unwrap_or(0) };
                if let Some(file) = file {
                    grown(&mut gathered.files, file as usize).add_to(Side::File, operation, calls);
                }
                if flow == Flow::Both && second_files.is_valid(row) {
                    let second = second_files.value(row) as usize;
                    grown(&mut gathered.files, second).add_to(Side::SecondFile, operation, calls);
                }
                grown(&mut gathered.processes, process).add(operation, calls);
                let bucket = buckets.of(start) as u32;
                match dense.get_mut(bucket as usize) {
                    Some(sums) => sums.add(operation, calls),
                    None => gathered.buckets.entry(bucket).or_default().add(operation, calls),
                }
                if let Some(size) = size {
                    gathered.read_bins[bin_of(size)] += u64::from(flow.reads());
                    gathered.write_bins[bin_of(size)] += u64::from(flow.writes());
                }
            }
            let suffix_bits = self.classes.suffix_bits(file);
            let known = &mut kind.layers[usize::from(suffix_bits)];
            for layer in &**known.get_or_insert_with(|| self.layers_of(cat, name, suffix_bits)) {
                let layer = *layer as usize;
                let sums = &mut gathered.layers[layer];
                sums.count += 1;
                sums.time += i128::from(dur);
                sums.size += u128::from(size.unwrap_or(0));
                if self.intervals {
                    grown(&mut gathered.walls.ranges[layer], process).add(start, end);
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
        type Cache = FxHashMap<(u32, u32, u8), Places>;
        let known: Mutex<Cache> = Mutex::default();
        let layers_of = |cat: u32, name: u32, suffix: u8| {
            let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(known.entry((cat, name, suffix)).or_insert_with(|| self.layers_of(cat, name, suffix)))
        };
        let fold = |(state, cache): &mut (S, Cache), batch: &Batch| {
            let (cats, names) = (batch.ids(Column::Cat).values(), batch.ids(Column::Name).values());
            let (process_ids, files) = (batch.ids(Column::Process).values(), batch.ids(Column::File));
            let (ts, dur) = (batch.ints(Column::Ts), batch.ints(Column::Dur));
            for row in batch.spans().rows() {
                let file = files.is_valid(row).then(|| files.value(row));
                if self.classes.ignores_name(names[row]) || self.classes.ignores_file(file) {
                    continue;
                }
                let suffix = self.classes.suffix_bits(file);
                let key = (cats[row], names[row], suffix);
                let layers = cache.entry(key).or_insert_with(|| layers_of(key.0, key.1, key.2));
                let (start, end) = (ts.value(row).max(from), ts.value(row).saturating_add(dur.value(row)).min(to));
                let process = self.process_ids[process_ids[row] as usize];
                each(state, &WindowSpan { batch, row, process, file, start, end, layers });
            }
        };
        let request = Request::of([columns.as_slice(), more].concat()).with(filter).within(self.shard.clone());
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
    /// The places of its layers.
    layers: &'b [u32],
}

impl WindowSpan<'_> {
    /// The places of its layers.
    pub(super) fn layers(&self, each: impl FnMut(usize)) {
        self.layers.iter().map(|place| *place as usize).for_each(each);
    }
}

fn grown_from(all: &mut Vec<u32>, place: usize) -> &mut u32 {
    if place >= all.len() {
        all.resize(place + 1, UNKNOWN);
    }
    &mut all[place]
}
