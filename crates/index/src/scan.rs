//! All events that a question needs, in batches.
//!
//! [`Run::scan`] folds them side by side, one state per thread: for sums that do not mind the order. [`Run::scan_in_order`] hands them over
//! in the order of the files, which within a process is nearly that of time. [`Run::pull`] lets an engine read row group by row group.

mod pull;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type};
use arrow_array::{Array as _, ArrayRef, Int64Array, StringArray, UInt8Array, UInt16Array, UInt32Array};

use crate::column::Column;
use crate::filter::{Compiled, Filter};
use crate::pipeline::{self, Sink};
use crate::rows::Wanted;
use crate::run::{Content, Run};
use crate::segment::{Columns, GroupMeta, Segment};
use crate::{IndexError, Result};

pub use pull::Pull;

/// Rows of a batch: with eight columns in use it fits into a processor's second cache.
const BATCH_ROWS: usize = 32 << 10;

/// What is asked for.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The columns that batches are to hold.
    pub columns: Vec<Column>,
    /// Which rows.
    pub filter: Filter,
}

impl Request {
    /// These columns of all events.
    pub fn of(columns: impl Into<Vec<Column>>) -> Request {
        Request { columns: columns.into(), filter: Filter::default() }
    }

    /// Only matching rows.
    #[must_use]
    pub fn with(mut self, filter: Filter) -> Request {
        self.filter = filter;
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

/// A segment's ids → those of the run. Where there is but one segment they are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Renumber {
    pub names: Option<Vec<u32>>,
    pub cats: Option<Vec<u32>>,
    pub processes: Option<Vec<u32>>,
    pub files: Option<Vec<u32>>,
}

impl Renumber {
    pub(crate) fn name(&self, id: u32) -> u32 {
        self.names.as_ref().map_or(id, |map| map[id as usize])
    }

    pub(crate) fn cat(&self, id: u32) -> u32 {
        self.cats.as_ref().map_or(id, |map| map[id as usize])
    }

    pub(crate) fn process(&self, id: u32) -> u32 {
        self.processes.as_ref().map_or(id, |map| map[id as usize])
    }

    pub(crate) fn file(&self, id: u32) -> u32 {
        self.files.as_ref().map_or(id, |map| map[id as usize])
    }

    fn apply(&self, column: Column, array: ArrayRef) -> ArrayRef {
        let map = match column {
            Column::Name => &self.names,
            Column::Cat => &self.cats,
            Column::Process => &self.processes,
            Column::File => &self.files,
            _ => return array,
        };
        let Some(map) = map else { return array };
        let ids = array.as_primitive::<UInt32Type>();
        // A row without an id holds any number.
        Arc::new(ids.unary::<_, UInt32Type>(|id| map.get(id as usize).copied().unwrap_or(0)))
    }
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
    /// Reads one row group and hands on what matches.
    fn group(&self, segment: &Segment, renumber: &Renumber, group: usize, each: &mut dyn FnMut(&Batch)) -> Result<()> {
        let meta = &segment.meta.groups[group];
        let mut first = 0;
        for read in segment.read(group, &self.columns, BATCH_ROWS)? {
            let read = read?;
            let rows = read.first().map_or(0, |column| column.len());
            let mut batch = Batch::new(rows);
            for (column, array) in self.columns.iter().zip(read) {
                let array = match column {
                    Column::Dur if !meta.late.is_empty() => patch(&meta.late, first, &array),
                    _ => renumber.apply(*column, array),
                };
                batch.columns[column.place()] = Some(array);
            }
            first += rows;
            self.hand_on(batch, each)?;
        }
        Ok(())
    }

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
struct Fold<'f, 'r, T, M, E> {
    reader: &'f Reader<'r>,
    late: &'f [crate::rows::Late],
    make: &'f M,
    each: &'f E,
    state: std::marker::PhantomData<fn() -> T>,
}

impl<T: Send, M: Fn() -> T + Sync, E: Fn(&mut T, &Batch) + Sync> Sink for Fold<'_, '_, T, M, E> {
    type State = (T, Vec<GroupMeta>);

    fn begin(&self) -> Self::State {
        ((self.make)(), Vec::new())
    }

    fn take(&self, state: &mut Self::State, group: usize, columns: Columns, meta: GroupMeta) -> Result<Columns> {
        let mut batch = Batch::new(meta.rows as usize);
        let late: Vec<(u32, i64)> =
            self.late.iter().filter(|late| late.at.group == group).map(|late| (late.at.row, late.dur)).collect();
        for (column, array) in Column::all().zip(&columns) {
            if self.reader.columns.contains(&column) {
                let array = if column == Column::Dur { patch(&late, 0, array) } else { Arc::clone(array) };
                batch.columns[column.place()] = Some(array);
            }
        }
        state.1.push(meta);
        self.reader.hand_on(batch, &mut |batch| (self.each)(&mut state.0, batch))?;
        Ok(columns)
    }
}

impl Run {
    /// Folds the events that match into one state per thread. Which thread sees which events is not said.
    pub fn scan<T: Send>(
        &self,
        request: &Request,
        make: impl Fn() -> T + Sync,
        each: impl Fn(&mut T, &Batch) + Sync,
    ) -> Result<(Vec<T>, Effort)> {
        match &self.content {
            Content::Indexed(segments) => self.scan_segments(segments, request, &make, &each),
            Content::Streamed(_) => self.scan_files(request, self.threads, &make, &each),
        }
    }

    /// Hands over the events that match in the order of the files.
    pub fn scan_in_order(&self, request: &Request, mut each: impl FnMut(&Batch) + Send) -> Result<Effort> {
        let Content::Indexed(segments) = &self.content else {
            let each = Mutex::new(&mut each);
            let (_, effort) = self.scan_files(request, 1, &|| (), &|(), batch| {
                (each.lock().unwrap_or_else(PoisonError::into_inner))(batch);
            })?;
            return Ok(effort);
        };
        let dictionary = self.dictionary();
        let compiled = Compiled::new(&request.filter, &dictionary);
        let reader = Reader { columns: needed(request, &compiled), compiled: compiled.into(), request };
        let (groups, effort) = plan(segments, &reader.compiled);
        // Decoded ahead by all threads, a few groups at a time.
        for some in groups.chunks(self.threads.max(1)) {
            let decoded: Vec<Result<Vec<Batch>>> = std::thread::scope(|scope| {
                let threads: Vec<_> = some
                    .iter()
                    .map(|(place, group)| {
                        let (reader, (segment, renumber)) = (&reader, &segments[*place]);
                        scope.spawn(move || {
                            let mut batches = Vec::new();
                            let taken =
                                reader.group(segment, renumber, *group, &mut |batch| batches.push(batch.clone()));
                            taken.map(|()| batches)
                        })
                    })
                    .collect();
                threads.into_iter().map(join).collect()
            });
            for batches in decoded {
                batches?.iter().for_each(&mut each);
            }
        }
        Ok(effort)
    }

    fn scan_segments<T: Send>(
        &self,
        segments: &[(Segment, Renumber)],
        request: &Request,
        make: &(impl Fn() -> T + Sync),
        each: &(impl Fn(&mut T, &Batch) + Sync),
    ) -> Result<(Vec<T>, Effort)> {
        let dictionary = self.dictionary();
        let compiled = Compiled::new(&request.filter, &dictionary);
        let reader = Reader { columns: needed(request, &compiled), compiled: compiled.into(), request };
        let (groups, effort) = plan(segments, &reader.compiled);
        let next = AtomicUsize::new(0);
        let threads = self.threads.min(groups.len()).max(1);
        let fold = || {
            let mut state = make();
            while let Some((place, group)) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (segment, renumber) = &segments[*place];
                reader.group(segment, renumber, *group, &mut |batch| each(&mut state, batch))?;
            }
            Ok(state)
        };
        let states: Result<Vec<T>> = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(fold)).collect();
            let first = fold();
            std::iter::once(first).chain(others.into_iter().map(join)).collect()
        });
        Ok((states?, effort))
    }

    fn scan_files<T: Send>(
        &self,
        request: &Request,
        threads: usize,
        make: &(impl Fn() -> T + Sync),
        each: &(impl Fn(&mut T, &Batch) + Sync),
    ) -> Result<(Vec<T>, Effort)> {
        let Content::Streamed(streamed) = &self.content else { return Ok((Vec::new(), Effort::default())) };
        let filter = &request.filter;
        let by_id =
            filter.names.is_some() || filter.cats.is_some() || filter.files.is_some() || filter.processes.is_some();
        if by_id || streamed.may_have_pairs {
            self.prepare()?;
        }
        let dictionary = self.dictionary();
        let compiled = Compiled::new(filter, &dictionary);
        let reader = Reader { columns: needed(request, &compiled), compiled: compiled.into(), request };
        let late = self.late();
        let wanted = Wanted::of(&reader.columns, streamed.may_have_pairs);
        let sink = Fold { reader: &reader, late: &late, make, each, state: std::marker::PhantomData };
        let gathered = pipeline::run(&streamed.files, threads, wanted, &sink, &*self.progress)?;
        let (mut states, mut metas) = (Vec::new(), Vec::new());
        let (groups, tables, facts, late) = (gathered.groups, gathered.tables, gathered.files, gathered.late);
        for (state, some) in gathered.states {
            states.push(state);
            metas.extend(some);
        }
        self.learn(&tables, &metas, &facts, late, wanted.is_survey());
        Ok((states, Effort { groups, groups_read: groups }))
    }
}

fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(value) => value,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// The row groups that may hold a match.
fn plan(segments: &[(Segment, Renumber)], compiled: &Compiled) -> (Vec<(usize, usize)>, Effort) {
    let mut groups = Vec::new();
    let mut all = 0;
    for (place, (segment, renumber)) in segments.iter().enumerate() {
        all += segment.meta.groups.len();
        let here = segment.meta.groups.iter().enumerate();
        groups.extend(here.filter(|(_, meta)| compiled.may_match(meta, renumber)).map(|(group, _)| (place, group)));
    }
    let effort = Effort { groups: all, groups_read: groups.len() };
    (groups, effort)
}
