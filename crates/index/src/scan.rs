//! Yields all events that a query needs, in batches.
//!
//! [`Run::scan`] folds them in parallel, one state per thread, for sums that do not depend on the order. [`Run::scan_in_order`] yields them
//! in the order of the files, which within a process is nearly that of time. [`Run::pull`] lets an engine read row group by row group.
//! In a row group with a match, only the pages that overlap the window are read.
//!
//! A page with a wrong checksum must not fail the query: the index is rebuilt ([`Run::heal`]). Rows that were passed on cannot be taken back, so
//! the checksums of all pages that a query needs are verified before its first row: at some 10 GB/s, a hundredth of the time for the rows.

mod pull;
mod shard;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array as _, ArrayRef, Int64Array, StringArray, UInt8Array, UInt16Array, UInt32Array};

use crate::column::{Column, may_be_span};
use crate::filter::{Compiled, Filter};
use crate::part::{Columns, GroupMeta, PAGE_ROWS, Part, Room};
use crate::pipeline::{self, Sink};
use crate::rows::Wanted;
use crate::run::{Parts, Run};
use crate::{IndexError, Result};

pub use pull::Pull;
pub use shard::Shard;

/// Pages of a batch: with eight columns in use it fits into a processor's second cache.
const BATCH_PAGES: usize = (32 << 10) / PAGE_ROWS;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The columns that batches are to hold.
    pub columns: Vec<Column>,
    /// Which rows.
    pub filter: Filter,
    /// Which row groups.
    pub shard: Shard,
}

impl Request {
    /// These columns of all events.
    pub fn of(columns: impl Into<Vec<Column>>) -> Request {
        Request { columns: columns.into(), filter: Filter::default(), shard: Shard::whole() }
    }

    /// Only matching rows.
    #[must_use]
    pub fn with(mut self, filter: Filter) -> Request {
        self.filter = filter;
        self
    }

    /// Only the row groups of a shard. A run without an index is read as a whole all the same.
    #[must_use]
    pub fn within(mut self, shard: Shard) -> Request {
        self.shard = shard;
        self
    }
}

/// How much was read and how much was not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Effort {
    /// Row groups that there are.
    pub groups: usize,
    /// Those that were read.
    pub groups_read: usize,
    /// Their pages, of all row groups.
    pub pages: usize,
    /// Those that were read.
    pub pages_read: usize,
}

/// Some rows. Only the columns that were asked for are there.
#[derive(Debug, Clone)]
pub struct Batch {
    rows: usize,
    columns: Vec<Option<ArrayRef>>,
}

impl Batch {
    fn new(rows: usize) -> Batch {
        Batch { rows, columns: vec![None; Column::COUNT] }
    }

    /// How many.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// A column.
    ///
    /// # Panics
    /// When it was not asked for.
    pub fn column(&self, column: Column) -> &ArrayRef {
        self.columns[column.place()].as_ref().unwrap_or_else(|| panic!("{column:?} was not asked for"))
    }

    /// A column of integers.
    ///
    /// # Panics
    /// When it was not asked for, or is of another kind.
    pub fn ints(&self, column: Column) -> &Int64Array {
        self.column(column).as_primitive::<Int64Type>()
    }

    /// A column of ids.
    ///
    /// # Panics
    /// When it was not asked for, or is of another kind.
    pub fn ids(&self, column: Column) -> &UInt32Array {
        self.column(column).as_primitive::<UInt32Type>()
    }

    /// The phases, as codes.
    ///
    /// # Panics
    /// When they were not asked for.
    pub fn phases(&self) -> &UInt8Array {
        self.column(Column::Phase).as_primitive::<UInt8Type>()
    }

    /// The marks.
    ///
    /// # Panics
    /// When they were not asked for.
    pub fn marks(&self) -> &UInt16Array {
        self.column(Column::Marks).as_primitive::<UInt16Type>()
    }

    /// A column of texts.
    ///
    /// # Panics
    /// When it was not asked for, or is of another kind.
    pub fn texts(&self, column: Column) -> &StringArray {
        self.column(column).as_string::<i32>()
    }

    /// Which rows are spans.
    ///
    /// # Panics
    /// When phases and durations were not asked for.
    pub fn spans(&self) -> Spans<'_> {
        Spans { phases: self.phases().values(), dur: self.ints(Column::Dur) }
    }

    fn select(&self, keep: &arrow_array::BooleanArray) -> Result<Batch> {
        let mut selected = Batch::new(keep.true_count());
        for (to, from) in selected.columns.iter_mut().zip(&self.columns) {
            *to = from
                .as_ref()
                .map(|column| arrow_select::filter::filter(column, keep))
                .transpose()
                .map_err(|error| IndexError::Damaged { path: "(batch)".into(), why: error.to_string() })?;
        }
        Ok(selected)
    }
}

/// Which rows of a batch are spans: events of [`SPAN_PHASES`](crate::column::SPAN_PHASES) that have a duration. Whatever has a duration has a time. The duration of a `B`
/// or `b` came with its end; one that never ended has none.
#[derive(Debug, Clone, Copy)]
pub struct Spans<'b> {
    phases: &'b [u8],
    dur: &'b Int64Array,
}

impl Spans<'_> {
    /// Whether a row is one.
    #[inline]
    pub fn has(&self, row: usize) -> bool {
        may_be_span(self.phases[row]) && self.dur.is_valid(row)
    }

    /// Their rows.
    pub fn rows(self) -> impl Iterator<Item = usize> {
        (0..self.phases.len()).filter(move |row| self.has(*row))
    }
}

/// A part's ids → those of the run. Where there is but one part they are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Renumber {
    pub names: Option<Vec<u32>>,
    pub cats: Option<Vec<u32>>,
    pub processes: Option<Vec<u32>>,
    pub files: Option<Vec<u32>>,
}

impl Renumber {
    pub(crate) fn name(&self, id: u32) -> u32 {
        renumbered(&self.names, id)
    }

    pub(crate) fn cat(&self, id: u32) -> u32 {
        renumbered(&self.cats, id)
    }

    pub(crate) fn process(&self, id: u32) -> u32 {
        renumbered(&self.processes, id)
    }

    pub(crate) fn file(&self, id: u32) -> u32 {
        renumbered(&self.files, id)
    }

    fn apply(&self, column: Column, array: ArrayRef) -> ArrayRef {
        let map = match column {
            Column::Name => &self.names,
            Column::Cat => &self.cats,
            Column::Process => &self.processes,
            Column::File | Column::SecondFile => &self.files,
            _ => return array,
        };
        let Some(map) = map else { return array };
        let ids = array.as_primitive::<UInt32Type>();
        // A row without an id holds any number.
        Arc::new(ids.unary::<_, UInt32Type>(|id| map.get(id as usize).copied().unwrap_or(0)))
    }
}

/// An id that no table has is only in a forged index.
fn renumbered(map: &Option<Vec<u32>>, id: u32) -> u32 {
    map.as_ref().map_or(id, |map| map.get(id as usize).copied().unwrap_or(0))
}

/// Adds the durations that became known too late to the rows of a batch that starts at row `first` of its group.
fn patch(late: &[(u32, i64)], first: usize, dur: &ArrayRef) -> ArrayRef {
    let rows = first..first + dur.len();
    let mut here = late.iter().filter(|(row, _)| rows.contains(&(*row as usize))).peekable();
    if here.peek().is_none() {
        return Arc::clone(dur);
    }
    let mut values: Vec<Option<i64>> = dur.as_primitive::<Int64Type>().iter().collect();
    for (row, value) in here {
        values[*row as usize - first] = Some(*value);
    }
    Arc::new(Int64Array::from(values))
}

/// Columns of the request and of its filter, each once, in the order of the file.
fn needed(request: &Request, compiled: &Compiled) -> Vec<Column> {
    let mut columns = request.columns.clone();
    columns.extend(compiled.columns());
    if columns.is_empty() {
        // Rows are counted by a column.
        columns.push(Column::Phase);
    }
    columns.sort_by_key(|column| column.place());
    columns.dedup();
    columns
}

struct Reader<'r> {
    compiled: Arc<Compiled>,
    columns: Vec<Column>,
    request: &'r Request,
}

impl Reader<'_> {
    /// The stretches of a row group's pages that may hold a match, each at most a batch.
    fn stretches(&self, part: &Part, group: usize) -> Vec<Range<usize>> {
        let pages = &part.meta.groups[group].pages;
        let mut stretches: Vec<Range<usize>> = Vec::new();
        for (page, _) in pages.iter().enumerate().filter(|(_, time)| self.compiled.meets(**time)) {
            match stretches.last_mut() {
                Some(last) if last.end == page && last.len() < BATCH_PAGES => last.end += 1,
                _ => stretches.push(page..page + 1),
            }
        }
        stretches
    }

    /// Reads one row group and hands on what matches.
    fn group(
        &self,
        part: &Part,
        renumber: &Renumber,
        group: usize,
        room: &mut Room,
        each: &mut dyn FnMut(&Batch),
    ) -> Result<()> {
        let meta = &part.meta.groups[group];
        for pages in self.stretches(part, group) {
            let first = pages.start * PAGE_ROWS;
            let read = part.read(group, pages, &self.columns, room)?;
            let mut batch = Batch::new(read.first().map_or(0, |column| column.len()));
            for (column, array) in self.columns.iter().zip(read) {
                let array = match column {
                    Column::Dur if !meta.late.is_empty() => patch(&meta.late, first, &array),
                    _ => renumber.apply(*column, array),
                };
                batch.columns[column.place()] = Some(array);
            }
            self.hand_on(batch, each)?;
        }
        Ok(())
    }

    /// Compares the sums of all pages that row groups will be asked for.
    fn check(&self, parts: &Parts, groups: &[(usize, usize)], threads: usize) -> Result<()> {
        side_by_side(groups, threads, Room::new, |room, (place, group)| {
            let part = &parts[*place].0;
            let mut stretches = self.stretches(part, *group).into_iter();
            stretches.try_for_each(|pages| part.check(*group, pages, &self.columns, room))
        })?;
        Ok(())
    }

    /// The row groups that may hold a match.
    fn plan(&self, parts: &Parts) -> (Vec<(usize, usize)>, Effort) {
        let mut groups = Vec::new();
        let mut effort = Effort::default();
        for (place, (part, renumber)) in parts.iter().enumerate() {
            let before = effort.groups;
            effort.groups += part.meta.groups.len();
            for (group, meta) in part.meta.groups.iter().enumerate() {
                effort.pages += meta.pages.len();
                if self.request.shard.contains(before + group) && self.compiled.may_match(meta, renumber) {
                    effort.pages_read += meta.pages.iter().filter(|time| self.compiled.meets(**time)).count();
                    groups.push((place, group));
                }
            }
        }
        effort.groups_read = groups.len();
        (groups, effort)
    }
}

impl<'r> Reader<'r> {
    fn new(run: &Run, request: &'r Request) -> Reader<'r> {
        let compiled = Compiled::new(&request.filter, &run.dictionary());
        Reader { columns: needed(request, &compiled), compiled: compiled.into(), request }
    }
}

impl Reader<'_> {
    fn hand_on(&self, mut batch: Batch, each: &mut dyn FnMut(&Batch)) -> Result<()> {
        if !self.compiled.is_empty() {
            let keep = self.compiled.matches(&batch);
            match keep.true_count() {
                0 => return Ok(()),
                all if all == batch.rows => {}
                _ => batch = batch.select(&keep)?,
            }
        }
        for column in self.columns.iter().filter(|column| !self.request.columns.contains(column)) {
            batch.columns[column.place()] = None;
        }
        each(&batch);
        Ok(())
    }
}

/// Hands batches of a run without an index to a fold.
struct Fold<'f, 'r, T, M, E, N> {
    reader: &'f Reader<'r>,
    late: &'f [crate::rows::Late],
    renumber: &'f Renumber,
    make: &'f M,
    each: &'f E,
    end: &'f N,
    state: std::marker::PhantomData<fn() -> T>,
}

impl<T: Send, M: Fn() -> T + Sync, E: Fn(&mut T, &Batch) + Sync, N: Fn(&mut T, usize) + Sync> Sink
    for Fold<'_, '_, T, M, E, N>
{
    type State = (T, Vec<GroupMeta>);

    fn begin(&self) -> Self::State {
        ((self.make)(), Vec::new())
    }

    fn take(&self, state: &mut Self::State, group: usize, columns: Columns, meta: GroupMeta) -> Result<Columns> {
        if !self.reader.request.shard.contains(group) {
            state.1.push(meta);
            (self.end)(&mut state.0, group);
            return Ok(columns);
        }
        let mut batch = Batch::new(meta.rows as usize);
        let late: Vec<(u32, i64)> =
            self.late.iter().filter(|late| late.at.group == group).map(|late| (late.at.row, late.dur)).collect();
        for (column, array) in Column::all().zip(&columns) {
            if self.reader.columns.contains(&column) {
                let array = match column {
                    Column::Dur => patch(&late, 0, array),
                    _ => self.renumber.apply(column, Arc::clone(array)),
                };
                batch.columns[column.place()] = Some(array);
            }
        }
        state.1.push(meta);
        self.reader.hand_on(batch, &mut |batch| (self.each)(&mut state.0, batch))?;
        (self.end)(&mut state.0, group);
        Ok(columns)
    }
}

/// What must be read to answer a question, and is known to be whole.
struct Planned<'r> {
    parts: Arc<Parts>,
    reader: Reader<'r>,
    groups: Vec<(usize, usize)>,
    effort: Effort,
}

/// How often an index is built again because a page of it cannot be read. Once is enough unless somebody damages it all the time.
const TRIES: usize = 3;

impl Run {
    /// Folds the events that match into one state per thread. Which thread sees which events is not said.
    pub fn scan<T: Send>(
        &self,
        request: &Request,
        make: impl Fn() -> T + Sync,
        each: impl Fn(&mut T, &Batch) + Sync,
    ) -> Result<(Vec<T>, Effort)> {
        self.scan_groups(request, make, each, |_, _| {})
    }

    /// The same, and tells a state when it has seen all of a row group: its place among those that are read, in the order of the files, from 0 on.
    /// Every place is told once, also where no row matched. Threads take row groups in that order, so that few are under way at once.
    pub fn scan_groups<T: Send>(
        &self,
        request: &Request,
        make: impl Fn() -> T + Sync,
        each: impl Fn(&mut T, &Batch) + Sync,
        end: impl Fn(&mut T, usize) + Sync,
    ) -> Result<(Vec<T>, Effort)> {
        let Some(planned) = self.planned(request)? else {
            return self.scan_files(request, self.threads, &make, &each, &end);
        };
        let Planned { parts, reader, groups, effort } = planned;
        let begin = || Ok((make(), Room::new()?));
        let numbered: Vec<(usize, &(usize, usize))> = groups.iter().enumerate().collect();
        let states = side_by_side(&numbered, self.threads, begin, |(state, room), (number, (place, group))| {
            let (part, renumber) = &parts[*place];
            reader.group(part, renumber, *group, room, &mut |batch| each(state, batch))?;
            end(state, *number);
            Ok(())
        });
        let states = states.inspect_err(|error| self.doubt(error))?;
        Ok((states.into_iter().map(|(state, _)| state).collect(), effort))
    }

    /// Hands over the events that match in the order of the files.
    pub fn scan_in_order(&self, request: &Request, mut each: impl FnMut(&Batch) + Send) -> Result<Effort> {
        let Some(planned) = self.planned(request)? else {
            let each = Mutex::new(&mut each);
            let each = |(): &mut (), batch: &Batch| (each.lock().unwrap_or_else(PoisonError::into_inner))(batch);
            let (_, effort) = self.scan_files(request, 1, &|| (), &each, &|(), _| {})?;
            return Ok(effort);
        };
        let Planned { parts, reader, groups, effort } = planned;
        // Decoded ahead by all threads, a few groups at a time.
        for some in groups.chunks(self.threads.max(1)) {
            let decoded: Vec<Result<Vec<Batch>>> = std::thread::scope(|scope| {
                let threads: Vec<_> = some
                    .iter()
                    .map(|(place, group)| {
                        let (reader, (part, renumber)) = (&reader, &parts[*place]);
                        scope.spawn(move || {
                            let mut batches = Vec::new();
                            let mut keep = |batch: &Batch| batches.push(batch.clone());
                            let taken = reader.group(part, renumber, *group, &mut Room::new()?, &mut keep);
                            taken.map(|()| batches)
                        })
                    })
                    .collect();
                threads.into_iter().map(join).collect()
            });
            for batches in decoded {
                batches.inspect_err(|error| self.doubt(error))?.iter().for_each(&mut each);
            }
        }
        Ok(effort)
    }

    /// Asks something of the parts, and again of new ones when they turn out to be damaged.
    pub(crate) fn with_parts<A>(&self, ask: impl Fn(&Arc<Parts>) -> Result<A>) -> Result<A> {
        let mut parts = self.parts();
        for _ in 1..TRIES {
            match ask(&parts) {
                Err(IndexError::Damaged { .. }) => parts = self.heal(&parts)?,
                other => return other,
            }
        }
        ask(&parts)
    }

    /// The row groups that a question needs, with all sums compared; nothing where the traces themselves are to be read.
    fn planned<'r>(&self, request: &'r Request) -> Result<Option<Planned<'r>>> {
        if self.read_from_traces().is_some() {
            return Ok(None);
        }
        let planned = self.with_parts(|parts| {
            let reader = Reader::new(self, request);
            let (groups, effort) = reader.plan(parts);
            reader.check(parts, &groups, self.threads)?;
            Ok(Planned { parts: Arc::clone(parts), reader, groups, effort })
        });
        // The index was damaged and could not be replaced.
        if planned.is_err() && self.read_from_traces().is_some() {
            return Ok(None);
        }
        planned.map(Some)
    }

    fn scan_files<T: Send>(
        &self,
        request: &Request,
        threads: usize,
        make: &(impl Fn() -> T + Sync),
        each: &(impl Fn(&mut T, &Batch) + Sync),
        end: &(impl Fn(&mut T, usize) + Sync),
    ) -> Result<(Vec<T>, Effort)> {
        let Some(streamed) = self.read_from_traces() else { return Ok((Vec::new(), Effort::default())) };
        let filter = &request.filter;
        let by_id =
            filter.names.is_some() || filter.cats.is_some() || filter.files.is_some() || filter.processes.is_some();
        if by_id || streamed.may_have_pairs {
            self.prepare()?;
        }
        let reader = Reader::new(self, request);
        let late = self.late();
        let wanted = Wanted::of(&reader.columns, streamed.may_have_pairs);
        let (renumber, state) = (&streamed.renumber, std::marker::PhantomData);
        let sink = Fold { reader: &reader, late: &late, renumber, make, each, end, state };
        let gathered = pipeline::run(&streamed.files, threads, wanted, &sink, &*self.progress)?;
        let (mut states, mut metas) = (Vec::new(), Vec::new());
        let (groups, tables, infos, late) = (gathered.groups, gathered.tables, gathered.files, gathered.late);
        for (state, some) in gathered.states {
            states.push(state);
            metas.extend(some);
        }
        self.learn(&tables, &metas, &infos, late, wanted.is_survey());
        Ok((states, Effort { groups, groups_read: groups, pages: 0, pages_read: 0 }))
    }
}

/// Gives items to threads, whichever is free; each thread has a state. A single one needs no other thread.
fn side_by_side<T: Sync, S: Send>(
    items: &[T],
    threads: usize,
    begin: impl Fn() -> Result<S> + Sync,
    each: impl Fn(&mut S, &T) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut state = begin()?;
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            each(&mut state, item)?;
        }
        Ok(state)
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(items.len())).map(|_| scope.spawn(work)).collect();
        let first = work();
        std::iter::once(first).chain(others.into_iter().map(join)).collect()
    })
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
