//! A part: the rows of some trace files in one file, and beside it the strings of its ids.
//!
//! ```text
//! NAME.rows      row groups; each is the chunks of its columns, one after the other; each chunk is pages of 8 Ki rows (`page`).
//!                Its end (`directory`) has the content of the groups ([`Meta`]), and place and checksum of each page (`seal`)
//! NAME.strings   names, categories, hashes in the order of their ids, and the strings of hashes (`strings`)
//! ```
//!
//! **Order.** Rows are in the order of the trace where that is nearly the order of time, as it is in one large file: our recorder drains threads in turn,
//! foreign tracers write as calls end. A page of 8 Ki rows then covers a short time range, which its group states, and a window reads only
//! those pages. In a group of several processes' files, or of a file in another order, each page would cover nearly all of the time, so its rows are sorted by their start
//! (`order`). Rows are sorted across processes, not within each: a window covers all processes, and few fill a page alone.
//!
//! **Not Parquet.** It was, up to version 1. Writing it took 3,200 of the 7,410 instructions that an event of an own run cost (callgrind), and still 2,800 without its
//! dictionaries, which are useless for ids that are dense already; pages of our own take 1,200 and have checksums; names, categories and threads, which are not
//! compressed by zstd here, make them 10 % larger and a fifth faster to read. No other program reads these
//! files: use `weft query --format parquet` for that.

mod bounds;
mod directory;
mod idset;
mod order;
mod page;
mod read;
mod seal;
mod strings;
mod write;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{Array as _, ArrayRef, Int64Array, UInt8Array, UInt16Array, UInt32Array};
use serde::{Deserialize, Serialize};

use crate::column::{may_be_span, phase_bit};
use crate::dictionary::Process;
use crate::pipeline::Maps;
use crate::rows::{Late, Rows, Wanted};

pub(crate) use bounds::MOST_ROWS;
pub(crate) use idset::IdSet;
pub(crate) use page::PAGE_ROWS;
pub(crate) use read::{Part, Room};
pub(crate) use seal::sum;
pub(crate) use write::PartWriter;

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
    /// Of each page, the earliest start and the latest end of its rows that have a time.
    pub pages: Vec<Option<(i64, i64)>>,
    /// Durations that became known after the group was written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<(u32, i64)>,
}

impl GroupMeta {
    /// A duration became known.
    fn add_late(&mut self, late: &Late) {
        self.late.push((late.at.row, late.dur));
        let page = self.pages.get_mut(late.at.row as usize / PAGE_ROWS);
        for range in [&mut self.time, &mut self.spans].into_iter().chain(page) {
            widen(range, late.end.saturating_sub(late.dur), late.end);
        }
    }
}

/// The metadata of a part.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub groups: Vec<GroupMeta>,
    pub processes: Vec<Process>,
}

/// Turns collected rows into columns with common ids. Where rows that are stored had to be sorted, also the place that each one has now.
pub(crate) fn columns(rows: Rows, maps: &Maps, wanted: Wanted) -> (Columns, GroupMeta, Option<Vec<u32>>) {
    let count = rows.len();
    let mapped = |ids: Vec<u32>, map: &[u32]| {
        let ids: Vec<u32> = ids.into_iter().map(|id| map[id as usize]).collect();
        UInt32Array::from(ids)
    };
    let Rows { phase, ts, dur, name, cat, process, tid, file, second_file, id, integers, rest, extra, marks } = rows;
    // A column that is not requested has no rows.
    let of = |wanted: bool| if wanted { count } else { 0 };
    let (ts, dur) = (ts.finish(of(wanted.ts)), dur.finish(of(wanted.dur)));
    let (name, cat, process) = (mapped(name, &maps.names), mapped(cat, &maps.cats), mapped(process, &maps.processes));
    let file = file.finish(of(wanted.file), &maps.files);
    let second_file = second_file.finish(of(wanted.second_file), &maps.files);
    let mut meta = GroupMeta { rows: count as u64, ..GroupMeta::default() };
    if wanted.meta {
        meta.names = IdSet::of(&name);
        meta.cats = IdSet::of(&cat);
        meta.processes = IdSet::of(&process);
        meta.no_file = file.null_count() > 0;
        meta.files = IdSet::of(&file);
    }
    let mut counts = [0u64; 256];
    phase.iter().for_each(|code| counts[usize::from(*code)] += 1);
    add_times(&mut meta, &phase, &ts, &dur);
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
        Arc::new(Int64Array::from(tid)),
        Arc::new(file),
        Arc::new(second_file),
        Arc::new(id.finish(of(wanted.id))),
    ];
    columns.extend(integers.into_iter().enumerate().map(|(place, column)| {
        let wanted = wanted.integers >> place & 1 == 1;
        Arc::new(column.finish(of(wanted))) as ArrayRef
    }));
    columns.push(rest.finish(of(wanted.rest)));
    columns.push(extra.finish(of(wanted.extra)));
    columns.push(Arc::new(UInt16Array::from(marks)));
    // Who streams a trace knows late durations by the rows of an earlier pass.
    let places = if wanted == Wanted::ALL { order::sort(&mut columns, &mut meta) } else { None };
    (columns, meta, places)
}

/// When the rows of a group, and of its pages, were.
fn add_times(meta: &mut GroupMeta, phase: &[u8], ts: &Int64Array, dur: &Int64Array) {
    for first in (0..phase.len()).step_by(PAGE_ROWS) {
        let mut page = None;
        for (row, code) in (first..(first + PAGE_ROWS).min(ts.len())).zip(&phase[first..]) {
            if ts.is_valid(row) {
                let start = ts.value(row);
                let lasted = (row < dur.len() && dur.is_valid(row)).then(|| dur.value(row));
                let end = start.saturating_add(lasted.unwrap_or(0)).max(start);
                widen(&mut page, start, end);
                if lasted.is_some() && may_be_span(*code) {
                    widen(&mut meta.spans, start, end);
                }
            }
        }
        if let Some((start, end)) = page {
            widen(&mut meta.time, start, end);
        }
        meta.pages.push(page);
    }
}

/// Names of a part's two files.
pub(crate) fn rows_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.rows"))
}

pub(crate) fn strings_path(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!("{name}.strings"))
}

/// Widens a time range.
pub(crate) fn widen(range: &mut Option<(i64, i64)>, start: i64, end: i64) {
    *range = Some(range.map_or((start, end), |(from, to)| (from.min(start), to.max(end))));
}
