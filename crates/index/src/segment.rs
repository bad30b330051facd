//! A segment: the rows of some trace files in one Parquet file, and beside it the strings that its ids mean.
//!
//! ```text
//! NAME.rows.parquet      the columns of crate::column; its footer carries [`Meta`]: row groups with what is in them, processes
//! NAME.strings.parquet   names, categories, hashes in the order of their ids, and what hashes mean
//! ```

mod idset;
mod read;
mod stored;
mod write;

use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, UInt8Array, UInt16Array, UInt32Array};
use serde::{Deserialize, Serialize};

use crate::column::{phase_bit, phase_code};
use crate::dictionary::Process;
use crate::pipeline::Maps;
use crate::rows::{Rows, Wanted};

pub(crate) use idset::IdSet;
pub(crate) use read::{Segment, strings_of};
pub(crate) use write::SegmentWriter;

/// All columns of a row group, in the order of [`crate::Column::all`].
pub(crate) type Columns = Vec<ArrayRef>;

/// What is in a row group: enough to pass it over.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct GroupMeta {
    pub rows: u64,
    /// Earliest start and latest end of its rows that have a time.
    pub time: Option<(i64, i64)>,
    /// The same, of spans alone.
    pub spans: Option<(i64, i64)>,
    /// Phases, as bits of [`phase_bit`].
    pub phases: u16,
    /// Rows per phase, in the order of the bits.
    pub per_phase: Vec<(u8, u64)>,
    pub names: IdSet,
    pub cats: IdSet,
    pub processes: IdSet,
    pub files: IdSet,
    /// Rows without a file.
    pub no_file: bool,
    /// Nanoseconds in a stored unit of time.
    pub unit: i64,
    /// Dense columns in which some rows have no value, by their places.
    pub absent: u32,
    /// Durations that became known after the group was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<(u32, i64)>,
}

/// What a segment says of itself.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub groups: Vec<GroupMeta>,
    pub processes: Vec<Process>,
}

/// Turns collected rows into columns with common ids.
pub(crate) fn columns(rows: Rows, maps: &Maps, wanted: Wanted) -> (Columns, GroupMeta) {
    let count = rows.len();
    let mapped = |ids: Vec<u32>, map: &[u32]| {
        let ids: Vec<u32> = ids.into_iter().map(|id| map[id as usize]).collect();
        UInt32Array::from(ids)
    };
    let Rows { phase, ts, dur, name, cat, process, tid, file, id, integers, rest, extra, marks } = rows;
    // What nobody wants is a column without rows.
    let of = |wanted: bool| if wanted { count } else { 0 };
    let (ts, dur) = (ts.finish(of(wanted.ts)), dur.finish(of(wanted.dur)));
    let (name, cat, process) = (mapped(name, &maps.names), mapped(cat, &maps.cats), mapped(process, &maps.processes));
    let file = file.finish(of(wanted.file), &maps.hashes);
    let mut meta = GroupMeta { rows: count as u64, ..GroupMeta::default() };
    if wanted.meta {
        meta.names = IdSet::of(&name);
        meta.cats = IdSet::of(&cat);
        meta.processes = IdSet::of(&process);
        meta.no_file = file.null_count() > 0;
        meta.files = IdSet::of(&file);
    }
    let mut counts = [0u64; 256];
    let spans = [phase_code(weftline_format::Phase::Complete), phase_code(weftline_format::Phase::Begin)];
    phase.iter().for_each(|code| counts[usize::from(*code)] += 1);
    for (row, code) in phase.iter().enumerate().take(ts.len()) {
        if ts.is_valid(row) {
            let start = ts.value(row);
            let known = row < dur.len() && dur.is_valid(row);
            let end = if known { start.saturating_add(dur.value(row)).max(start) } else { start };
            widen(&mut meta.time, start, end);
            if spans.contains(code) {
                widen(&mut meta.spans, start, end);
            }
        }
    }
    for (code, count) in (0u8..=255).zip(counts).filter(|(_, count)| *count > 0) {
        meta.phases |= phase_bit(code);
        meta.per_phase.push((code, count));
    }
    let mut columns: Columns = vec![
        Arc::new(UInt8Array::from(phase)),
        Arc::new(ts),
        Arc::new(dur),
        Arc::new(name),
        Arc::new(cat),
        Arc::new(process),
        Arc::new(arrow_array::Int64Array::from(tid)),
        Arc::new(file),
        Arc::new(id.finish(of(wanted.id))),
    ];
    columns.extend(integers.into_iter().enumerate().map(|(place, column)| {
        let wanted = wanted.integers >> place & 1 == 1;
        Arc::new(column.finish(of(wanted))) as ArrayRef
    }));
    columns.push(rest.finish(of(wanted.rest)));
    columns.push(extra.finish(of(wanted.extra)));
    columns.push(Arc::new(UInt16Array::from(marks)));
    (columns, meta)
}

/// Widens a time range.
pub(crate) fn widen(range: &mut Option<(i64, i64)>, start: i64, end: i64) {
    *range = Some(range.map_or((start, end), |(from, to)| (from.min(start), to.max(end))));
}
