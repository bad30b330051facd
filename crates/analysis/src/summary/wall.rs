//! Wall times of layers per row of a view: unions and intersections of time ranges, cut at the rows' bounds.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use weftline_index::{Column, Dictionary, Run, Shard};

use super::pass::{Pass, WindowSpan};
use super::{Question, SPANS_AT_ONCE, time_filter};
use crate::Result;
use crate::classify::Classes;
use crate::group::scan::{number, span_phases};
use crate::group::{directory_of, host_text, path_pattern, process_labels};
use crate::hlm::{RowKey, ViewType};
use crate::intervals::Intervals;
use crate::layers::Layer;
use crate::presets::Preset;
use crate::profiles::totals::process_ids;

/// Wall times of a layer in one row, ns: those of each process, summed over processes. What lies below a layer and what computes is
/// looked for in the whole process, whatever the rows are: a call on one file does not wait for less because another file is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wall {
    /// At least one event of the layer was going on.
    pub union: i128,
    /// Of that: none of the layers below was going on.
    pub own: i128,
    /// Of `union`: the compute layer was going on.
    pub beside_compute: i128,
}

/// Wall times per row, by the place of the layer.
pub type WallTimes = BTreeMap<RowKey, Vec<Wall>>;

/// What tells the row of a span where its process alone does not.
enum RowsOf {
    /// Rows are processes, unions of them, or buckets.
    Process,
    Thread,
    /// By file: the number of its row.
    File(Vec<Option<u32>>, Vec<String>),
    /// An argument.
    Argument(Column),
}

/// Ranges per layer, by row and process.
type ByRow = Vec<FxHashMap<(i64, u32), Intervals>>;

impl RowsOf {
    fn new(view: ViewType, dictionary: &Dictionary) -> RowsOf {
        let files = |of: &dyn Fn(&str) -> String| {
            let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
            let mut texts = Vec::new();
            let mut number = |path: &str| {
                *numbers.entry(of(path)).or_insert_with_key(|text| {
                    texts.push(text.clone());
                    texts.len() as u32 - 1
                })
            };
            let rows = (0..dictionary.files.len() as u32).map(|file| dictionary.path(file).map(&mut number)).collect();
            RowsOf::File(rows, texts)
        };
        match view {
            ViewType::TimeRange | ViewType::HostName | ViewType::ProcId | ViewType::Rank => RowsOf::Process,
            ViewType::ProcName | ViewType::ThreadId => RowsOf::Thread,
            ViewType::FileName => files(&str::to_owned),
            ViewType::FileDir => files(&|path| directory_of(path).to_owned()),
            ViewType::FilePattern => files(&path_pattern),
            ViewType::Epoch => RowsOf::Argument(Column::EPOCH),
            ViewType::Step => RowsOf::Argument(Column::STEP),
        }
    }

    fn columns(&self) -> Vec<Column> {
        match self {
            RowsOf::Process | RowsOf::File(..) => Vec::new(),
            RowsOf::Thread => vec![Column::Tid],
            RowsOf::Argument(column) => vec![*column],
        }
    }

    /// The number of a span's row.
    fn row(&self, span: &WindowSpan<'_>) -> Option<i64> {
        match self {
            RowsOf::Process => None,
            RowsOf::Thread => number(span.batch.ints(Column::Tid), span.row),
            RowsOf::File(rows, _) => rows[span.file? as usize].map(i64::from),
            RowsOf::Argument(column) => number(span.batch.ints(*column), span.row),
        }
    }

    /// What a row's number means.
    fn key(&self, view: ViewType, row: i64, process: &str) -> RowKey {
        match self {
            RowsOf::File(_, texts) => RowKey::Text(texts[row as usize].clone()),
            RowsOf::Thread if view == ViewType::ProcName => RowKey::Text(format!("app#{process}#{row}")),
            _ => RowKey::Int(row),
        }
    }
}

/// Wall times per row of a view.
pub fn wall_times(run: &Run, question: &Question, view: ViewType) -> Result<WallTimes> {
    run.prepare()?;
    let (dictionary, times) = (run.dictionary(), run.times());
    let classes = Classes::new(&question.rules, &dictionary);
    let preset = question.preset.unwrap_or_else(|| Preset::detect(&dictionary));
    let layers = preset.layers(&dictionary);
    let (origin, end) = times.spans.unwrap_or((0, 0));
    let pass = Pass {
        dictionary: &dictionary,
        classes: &classes,
        layers: &layers,
        process_ids: &process_ids(&dictionary),
        filter: &time_filter(question, origin),
        shard: &Shard::whole(),
        origin,
        width_ns: question.width_ns.unwrap_or(1_000_000_000).max(1),
        rest: false,
        intervals: true,
    };
    let spans: u64 = span_phases().iter().map(|code| times.count(*code)).sum();
    let windows = if run.index().is_empty() { 1 } else { spans.div_ceil(SPANS_AT_ONCE).max(1) as i64 };
    let length = (end - origin) / windows + 1;
    let labels = process_labels(&dictionary);
    let mut walls = Walls { pass: &pass, layers: &layers, view, labels, rows: WallTimes::new() };
    let rows = RowsOf::new(view, &dictionary);
    for window in 0..windows {
        let from = origin + window * length;
        let whole = pass.window(run, from, from + length)?;
        let parts = match rows {
            RowsOf::Process => None,
            _ => Some(by_row(&pass, run, &rows, from, from + length)?),
        };
        walls.add(&whole, parts.as_ref(), &rows);
    }
    Ok(walls.rows)
}

fn by_row(pass: &Pass<'_>, run: &Run, rows: &RowsOf, from: i64, to: i64) -> Result<ByRow> {
    let make = || -> ByRow { vec![FxHashMap::default(); pass.layers.len()] };
    let each = |found: &mut ByRow, span: &WindowSpan<'_>| {
        let Some(row) = rows.row(span) else { return };
        span.layers(|layer| found[layer].entry((row, span.process)).or_default().add(span.start, span.end));
    };
    let mut all = make();
    for found in pass.each_in_window(run, from, to, &rows.columns(), make, each)? {
        for (all, found) in all.iter_mut().zip(found) {
            found.into_iter().for_each(|(key, ranges)| all.entry(key).or_default().join(ranges));
        }
    }
    all.iter_mut().for_each(|layer| layer.values_mut().for_each(Intervals::settle));
    Ok(all)
}

struct Walls<'w> {
    pass: &'w Pass<'w>,
    layers: &'w [Layer],
    view: ViewType,
    /// What tables call the processes.
    labels: Vec<String>,
    rows: WallTimes,
}

impl Walls<'_> {
    /// Adds a window: ranges per layer and process, and the same by row where rows are not processes.
    fn add(&mut self, whole: &[Vec<Intervals>], parts: Option<&ByRow>, rows: &RowsOf) {
        let nothing = Intervals::default();
        let of = |layer: usize, process: usize| whole[layer].get(process).unwrap_or(&nothing);
        let layers = self.layers;
        let compute = layers.iter().position(|layer| layer.name == "compute");
        for (place, layer) in layers.iter().enumerate() {
            let below: Vec<usize> =
                (0..layers.len()).filter(|other| layers[*other].parent.as_deref() == Some(&*layer.name)).collect();
            // Per process: what takes from a layer's own time.
            let mut known: FxHashMap<u32, Intervals> = FxHashMap::default();
            let mut cut = |walls: &mut Self, row: Option<i64>, process: u32, mine: &Intervals| {
                let inside = known
                    .entry(process)
                    .or_insert_with(|| Intervals::union(below.iter().map(|other| of(*other, process as usize))));
                let inside = mine.intersection(inside);
                let beside = compute.map(|compute| mine.intersection(of(compute, process as usize)));
                let found = [mine, &inside, &beside.unwrap_or_default()];
                walls.put(place, row.map(|row| (row, rows)), process, found);
            };
            match parts {
                None => {
                    let all = whole[place].iter().enumerate().filter(|(_, mine)| !mine.is_empty());
                    all.for_each(|(process, mine)| cut(self, None, process as u32, mine));
                }
                Some(parts) => {
                    let all = parts[place].iter().filter(|(_, mine)| !mine.is_empty());
                    all.for_each(|((row, process), mine)| cut(self, Some(*row), *process, mine));
                }
            }
        }
    }

    /// Adds the ranges of a layer in one process: its own, those inside layers below, those beside compute.
    fn put(&mut self, place: usize, row: Option<(i64, &RowsOf)>, process: u32, found: [&Intervals; 3]) {
        let known = self.pass.dictionary.process(process);
        let count = self.layers.len();
        let takes: [fn(&mut Wall, i128); 3] = [
            |wall, length| {
                wall.union += length;
                wall.own += length;
            },
            |wall, length| wall.own -= length,
            |wall, length| wall.beside_compute += length,
        ];
        for (ranges, take) in found.into_iter().zip(takes) {
            let mut add = |key: RowKey, length: i128| {
                take(&mut self.rows.entry(key).or_insert_with(|| vec![Wall::default(); count])[place], length);
            };
            match (row, self.view) {
                (Some((row, rows)), view) => {
                    add(rows.key(view, row, &self.labels[process as usize]), ranges.length());
                }
                (None, ViewType::TimeRange) => {
                    ranges.per_bucket(self.pass.origin, self.pass.width_ns, |bucket, length| {
                        add(RowKey::Int(bucket), length.into());
                    });
                }
                (None, ViewType::HostName) => add(RowKey::Text(host_text(known).to_owned()), ranges.length()),
                (None, ViewType::ProcId) => add(RowKey::Int(known.pid), ranges.length()),
                (None, _) => known.rank.into_iter().for_each(|rank| add(RowKey::Int(rank), ranges.length())),
            }
        }
    }
}
