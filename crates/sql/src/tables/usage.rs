//! What is counted per file, process, thread and host.

use datafusion::arrow::array::Array as _;
use weftline_analysis::classify::{IoCat, SizeKind};
use weftline_format::Phase;
use weftline_index::column::{Column, phase_code};
use weftline_index::scan::Batch;

use super::columns::RET;
use super::gathered::Cell;
use super::vocabulary::Vocabulary;

/// Sums over events. Integers, so that the order in which threads see them does not matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) events: i64,
    pub(super) io_calls: i64,
    pub(super) io_ns: i64,
    pub(super) opens: i64,
    pub(super) reads: i64,
    pub(super) writes: i64,
    pub(super) metadata_calls: i64,
    pub(super) syncs: i64,
    pub(super) read_bytes: i64,
    pub(super) write_bytes: i64,
    pub(super) read_ns: i64,
    pub(super) write_ns: i64,
    pub(super) metadata_ns: i64,
    pub(super) range: Option<(i64, i64)>,
}

impl Usage {
    /// Joins two.
    pub(super) fn join(&mut self, other: &Usage) {
        let sums = [
            (&mut self.events, other.events),
            (&mut self.io_calls, other.io_calls),
            (&mut self.io_ns, other.io_ns),
            (&mut self.opens, other.opens),
            (&mut self.reads, other.reads),
            (&mut self.writes, other.writes),
            (&mut self.metadata_calls, other.metadata_calls),
            (&mut self.syncs, other.syncs),
            (&mut self.read_bytes, other.read_bytes),
            (&mut self.write_bytes, other.write_bytes),
            (&mut self.read_ns, other.read_ns),
            (&mut self.write_ns, other.write_ns),
            (&mut self.metadata_ns, other.metadata_ns),
        ];
        for (sum, more) in sums {
            *sum = sum.saturating_add(more);
        }
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
            Cell::Int(self.io_calls),
            Cell::Int(self.io_ns),
            Cell::Int(self.read_bytes),
            Cell::Int(self.write_bytes),
            self.first(),
            self.last(),
        ]
    }
}

/// Reads what is counted from the rows of a batch.
pub(super) struct Counter<'a> {
    words: &'a Vocabulary,
    /// By name: whether the call opens a file.
    opens: Vec<bool>,
}

impl<'a> Counter<'a> {
    /// The columns that [`Counter::event`] looks at.
    pub(super) const COLUMNS: [Column; 6] = [Column::Phase, Column::Ts, Column::Dur, Column::Name, Column::Cat, RET];

    pub(super) fn new(words: &'a Vocabulary) -> Counter<'a> {
        let is_open = |name: &str| {
            words.rules.io.get(name) == Some(&IoCat::Metadata) && name.contains("open") && !name.contains("dir")
        };
        Counter { words, opens: words.dictionary.names.iter().map(is_open).collect() }
    }

    /// Counts a row.
    pub(super) fn event(&self, usage: &mut Usage, batch: &Batch, row: usize) {
        let phase = batch.phases().value(row);
        let (ts, dur) = (batch.ints(Column::Ts), batch.ints(Column::Dur));
        usage.events += 1;
        if !ts.is_valid(row) {
            return;
        }
        let start = ts.value(row);
        let duration = dur.is_valid(row).then(|| dur.value(row));
        usage.widen(start, start.saturating_add(duration.unwrap_or(0).max(0)));
        let is_span = phase == phase_code(Phase::Complete) || phase == phase_code(Phase::Begin);
        let (cat, name) = (batch.ids(Column::Cat).value(row), batch.ids(Column::Name).value(row));
        let (Some(duration), true) = (duration, is_span && self.words.classes.is_io(cat)) else { return };
        let classes = &self.words.classes;
        let ret = batch.ints(RET);
        let moved = if classes.size_kind(cat, name) == SizeKind::Returned && ret.is_valid(row) {
            ret.value(row).max(0)
        } else {
            0
        };
        usage.io_calls += 1;
        usage.io_ns = usage.io_ns.saturating_add(duration);
        usage.opens += i64::from(self.opens[name as usize]);
        match classes.io_cat(cat, name) {
            IoCat::Read => {
                usage.reads += 1;
                usage.read_bytes = usage.read_bytes.saturating_add(moved);
                usage.read_ns = usage.read_ns.saturating_add(duration);
            }
            IoCat::Write => {
                usage.writes += 1;
                usage.write_bytes = usage.write_bytes.saturating_add(moved);
                usage.write_ns = usage.write_ns.saturating_add(duration);
            }
            IoCat::Metadata => {
                usage.metadata_calls += 1;
                usage.metadata_ns = usage.metadata_ns.saturating_add(duration);
            }
            IoCat::Sync => usage.syncs += 1,
            _ => {}
        }
    }
}

/// Phases of everything but metadata.
pub(super) fn all_but_metadata() -> weftline_index::Filter {
    let metadata = phase_code(Phase::Metadata);
    let codes: Vec<u8> = (0..=u8::MAX).filter(|code| *code != metadata).collect();
    weftline_index::Filter::default().with_phases(&codes)
}
