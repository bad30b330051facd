//! Selects the events that a query needs.
//!
//! A filter is applied twice: row groups in which nothing can match are not read, and of the others only matching rows are passed on.

use std::fmt;
use std::sync::Arc;

use arrow_array::{Array as _, BooleanArray, UInt32Array};
use arrow_buffer::BooleanBuffer;

use crate::column::{Column, phase_bit};
use crate::dictionary::{Dictionary, Process};
use crate::part::GroupMeta;
use crate::scan::Batch;

/// A test of a text.
pub type TextTest = Arc<dyn Fn(&str) -> bool + Send + Sync>;
/// A test of the path that an event is about, if it is about one.
pub type PathTest = Arc<dyn Fn(Option<&str>) -> bool + Send + Sync>;
/// A test of a process.
pub type ProcessTest = Arc<dyn Fn(&Process) -> bool + Send + Sync>;

/// Which rows of a batch hold.
pub type BatchTest = Arc<dyn Fn(&Batch, &Dictionary) -> Vec<bool> + Send + Sync>;

/// A test of rows.
#[derive(Clone)]
pub struct RowTest {
    /// The columns that it looks at.
    pub columns: Vec<Column>,
    /// The test: one answer per row.
    pub test: BatchTest,
}

/// All tests must hold; those that are not set do.
#[derive(Clone, Default)]
pub struct Filter {
    /// Events that end at this time or later (ns since the epoch); those without a time do not match.
    pub from_ns: Option<i64>,
    /// Events that start before this time.
    pub to_ns: Option<i64>,
    /// Phases, as bits of [`phase_bit`].
    pub phases: Option<u16>,
    /// Names.
    pub names: Option<TextTest>,
    /// Categories, as they were written.
    pub cats: Option<TextTest>,
    /// Paths.
    pub files: Option<PathTest>,
    /// Processes.
    pub processes: Option<ProcessTest>,
    /// Anything else, row by row.
    pub rows: Option<RowTest>,
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter")
            .field("from_ns", &self.from_ns)
            .field("to_ns", &self.to_ns)
            .field("phases", &self.phases)
            .field("names", &self.names.is_some())
            .field("cats", &self.cats.is_some())
            .field("files", &self.files.is_some())
            .field("processes", &self.processes.is_some())
            .field("rows", &self.rows.is_some())
            .finish()
    }
}

impl Filter {
    /// Only events of these phases (codes of [`crate::column::phase_code`]).
    #[must_use]
    pub fn with_phases(mut self, codes: &[u8]) -> Filter {
        self.phases = Some(codes.iter().map(|code| phase_bit(*code)).fold(0, |all, bit| all | bit));
        self
    }

    /// Only events that overlap a time range.
    #[must_use]
    pub fn with_time(mut self, from_ns: Option<i64>, to_ns: Option<i64>) -> Filter {
        (self.from_ns, self.to_ns) = (from_ns, to_ns);
        self
    }
}

/// A filter over the ids of a run.
pub(crate) struct Compiled {
    from_ns: i64,
    to_ns: i64,
    timed: bool,
    phases: Option<u16>,
    names: Option<Vec<bool>>,
    cats: Option<Vec<bool>>,
    processes: Option<Vec<bool>>,
    files: Option<Vec<bool>>,
    no_file: bool,
    rows: Option<RowTest>,
    dictionary: Arc<Dictionary>,
}

impl Compiled {
    pub(crate) fn new(filter: &Filter, dictionary: &Arc<Dictionary>) -> Compiled {
        let all =
            |strings: &crate::dictionary::Strings, test: &TextTest| strings.iter().map(|text| test(text)).collect();
        Compiled {
            from_ns: filter.from_ns.unwrap_or(i64::MIN),
            to_ns: filter.to_ns.unwrap_or(i64::MAX),
            timed: filter.from_ns.is_some() || filter.to_ns.is_some(),
            phases: filter.phases,
            names: filter.names.as_ref().map(|test| all(&dictionary.names, test)),
            cats: filter.cats.as_ref().map(|test| all(&dictionary.cats, test)),
            processes: filter.processes.as_ref().map(|test| dictionary.processes.iter().map(|p| test(p)).collect()),
            files: filter
                .files
                .as_ref()
                .map(|test| (0..dictionary.files.len() as u32).map(|id| test(dictionary.path(id))).collect()),
            no_file: filter.files.as_ref().is_none_or(|test| test(None)),
            rows: filter.rows.clone(),
            dictionary: Arc::clone(dictionary),
        }
    }

    /// Columns that must be read to tell.
    pub(crate) fn columns(&self) -> Vec<Column> {
        let mut columns = Vec::new();
        let mut need = |needed: bool, column| columns.extend(needed.then_some(column));
        need(self.timed, Column::Ts);
        need(self.timed, Column::Dur);
        need(self.phases.is_some(), Column::Phase);
        need(self.names.is_some(), Column::Name);
        need(self.cats.is_some(), Column::Cat);
        need(self.processes.is_some(), Column::Process);
        need(self.files.is_some(), Column::File);
        columns.extend(self.rows.iter().flat_map(|rows| rows.columns.iter().copied()));
        columns
    }

    /// Whether rows of this time range may be within the window.
    pub(crate) fn meets(&self, time: Option<(i64, i64)>) -> bool {
        !self.timed || time.is_some_and(|(start, end)| start < self.to_ns && end >= self.from_ns)
    }

    /// Whether a row group may hold a match. `map` turns the group's ids into those of the run.
    pub(crate) fn may_match(&self, group: &GroupMeta, map: &crate::scan::Renumber) -> bool {
        let wanted = |tests: &Option<Vec<bool>>, set: &crate::part::IdSet, map: &dyn Fn(u32) -> u32| {
            tests.as_ref().is_none_or(|tests| set.any(|id| tests.get(map(id) as usize).copied().unwrap_or(false)))
        };
        self.meets(group.time)
            && self.phases.is_none_or(|phases| group.phases & phases != 0)
            && wanted(&self.names, &group.names, &|id| map.name(id))
            && wanted(&self.cats, &group.cats, &|id| map.cat(id))
            && wanted(&self.processes, &group.processes, &|id| map.process(id))
            && (self.no_file && group.no_file || wanted(&self.files, &group.files, &|id| map.file(id)))
    }

    /// Whether every row of a row group matches, if that is cheap to decide.
    pub(crate) fn is_empty(&self) -> bool {
        !self.timed
            && self.phases.is_none()
            && self.names.is_none()
            && self.cats.is_none()
            && self.processes.is_none()
            && self.files.is_none()
            && self.rows.is_none()
    }

    /// The rows of a batch that match.
    pub(crate) fn matches(&self, batch: &Batch) -> BooleanArray {
        let mut keep = vec![true; batch.rows()];
        if let Some(phases) = self.phases {
            let mut wanted = [false; 256];
            for code in 0u8..=255 {
                wanted[usize::from(code)] = phase_bit(code) & phases != 0;
            }
            let codes = batch.phases().values();
            keep.iter_mut().zip(codes.iter()).for_each(|(keep, code)| *keep &= wanted[usize::from(*code)]);
        }
        if self.timed {
            let (ts, dur) = (batch.ints(Column::Ts), batch.ints(Column::Dur));
            for (row, keep) in keep.iter_mut().enumerate() {
                let start = if ts.is_valid(row) { ts.value(row) } else { i64::MAX };
                let end = if dur.is_valid(row) { start.saturating_add(dur.value(row).max(0)) } else { start };
                *keep &= ts.is_valid(row) && start < self.to_ns && end >= self.from_ns;
            }
        }
        let mut by_id = |tests: &Option<Vec<bool>>, ids: Column, none: bool| {
            let Some(tests) = tests else { return };
            let ids: &UInt32Array = batch.ids(ids);
            for (row, keep) in keep.iter_mut().enumerate() {
                *keep &=
                    if ids.is_valid(row) { tests.get(ids.value(row) as usize).copied().unwrap_or(false) } else { none };
            }
        };
        by_id(&self.names, Column::Name, false);
        by_id(&self.cats, Column::Cat, false);
        by_id(&self.processes, Column::Process, false);
        by_id(&self.files, Column::File, self.no_file);
        if let Some(rows) = &self.rows {
            let hold = (rows.test)(batch, &self.dictionary);
            keep.iter_mut().zip(hold).for_each(|(keep, hold)| *keep &= hold);
        }
        BooleanArray::new(BooleanBuffer::from(keep), None)
    }
}
