//! Counts per file, process, thread and host.

use datafusion::arrow::array::Array as _;
use weftline_calls::{Calls, Flow, IoSums, Side};
use weftline_format::Phase;
use weftline_index::column::{Column, may_be_span, phase_code};
use weftline_index::scan::Batch;

use super::gathered::Cell;
use super::vocabulary::Vocabulary;

/// Sums over events. Integers, so that the order in which threads see them does not matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) events: i64,
    /// Of the I/O calls among them.
    pub(super) io: IoSums,
    pub(super) range: Option<(i64, i64)>,
}

impl Usage {
    /// Joins two.
    pub(super) fn join(&mut self, other: &Usage) {
        self.events = self.events.saturating_add(other.events);
        self.io.merge(&other.io);
        if let Some((start, end)) = other.range {
            self.widen(start, end);
        }
    }

    fn widen(&mut self, start: i64, end: i64) {
        self.range = Some(self.range.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
    }

    pub(super) fn first<'a>(&self) -> Cell<'a> {
        Cell::maybe(self.range.map(|(first, _)| first))
    }

    pub(super) fn last<'a>(&self) -> Cell<'a> {
        Cell::maybe(self.range.map(|(_, last)| last))
    }

    /// The cells that all tables about processes end with.
    pub(super) fn tail<'a>(&self) -> [Cell<'a>; 7] {
        [
            Cell::Int(self.events),
            self.io.calls.into(),
            self.io.time_ns.into(),
            self.io.read_bytes.into(),
            self.io.write_bytes.into(),
            self.first(),
            self.last(),
        ]
    }
}

/// Reads what is counted from the rows of a batch.
pub(super) struct Counter<'a> {
    words: &'a Vocabulary,
}

impl<'a> Counter<'a> {
    /// The columns that [`Counter::event`] looks at.
    pub(super) const COLUMNS: [Column; 6] =
        [Column::Phase, Column::Ts, Column::Dur, Column::Name, Column::Cat, Column::RET];

    pub(super) fn new(words: &'a Vocabulary) -> Counter<'a> {
        Counter { words }
    }

    /// Whether the row is a call that copies from its second file.
    pub(super) fn copies(&self, batch: &Batch, row: usize) -> bool {
        let (cat, name) = (batch.ids(Column::Cat).value(row), batch.ids(Column::Name).value(row));
        self.words.classes.operation(cat, name).flow() == Flow::Both
    }

    /// Counts a row on one side of its call.
    pub(super) fn event(&self, usage: &mut Usage, side: Side, batch: &Batch, row: usize) {
        let phase = batch.phases().value(row);
        let (ts, dur) = (batch.ints(Column::Ts), batch.ints(Column::Dur));
        usage.events += 1;
        if !ts.is_valid(row) {
            return;
        }
        let start = ts.value(row);
        let duration = dur.is_valid(row).then(|| dur.value(row));
        usage.widen(start, start.saturating_add(duration.unwrap_or(0).max(0)));
        let is_span = may_be_span(phase);
        let (cat, name) = (batch.ids(Column::Cat).value(row), batch.ids(Column::Name).value(row));
        let classes = &self.words.classes;
        let (Some(duration), true) = (duration, is_span && classes.is_io(cat)) else { return };
        let ret = batch.ints(Column::RET);
        let result = if ret.is_valid(row) { ret.value(row) } else { 0 };
        usage.io.add_to(side, classes.operation(cat, name), Calls::one(duration, result));
    }
}

/// Phases of everything but metadata.
pub(super) fn all_but_metadata() -> weftline_index::Filter {
    let metadata = phase_code(Phase::Metadata);
    let codes: Vec<u8> = (0..=u8::MAX).filter(|code| *code != metadata).collect();
    weftline_index::Filter::default().with_phases(&codes)
}
