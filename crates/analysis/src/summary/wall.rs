//! Wall times of layers per row of a view: unions and intersections of time ranges, cut at the rows' bounds.

use std::collections::BTreeMap;

use weftline_index::Run;

use super::pass::{Pass, people};
use super::{Question, SPANS_AT_ONCE, time_filter};
use crate::Result;
use crate::classify::Classes;
use crate::group::host_text;
use crate::group::scan::span_phases;
use crate::hlm::{RowKey, ViewType};
use crate::intervals::Intervals;
use crate::presets::Preset;

/// Wall times of a layer in one row, ns: those of each process, summed over processes.
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

/// Wall times per row of a view. Rows of files and of single threads have none: time ranges are kept per process.
pub fn wall_times(run: &Run, question: &Question, view: ViewType) -> Result<Option<WallTimes>> {
    if !matches!(view, ViewType::TimeRange | ViewType::HostName | ViewType::ProcId | ViewType::Rank) {
        return Ok(None);
    }
    run.prepare()?;
    let (dictionary, times) = (run.dictionary(), run.times());
    let classes = Classes::new(&question.rules, &dictionary);
    let preset = question.preset.unwrap_or_else(|| Preset::detect(&dictionary));
    let layers = preset.layers(&dictionary);
    let (origin, end) = times.spans.unwrap_or((0, 0));
    let width_ns = question.width_ns.unwrap_or(1_000_000_000).max(1);
    let pass = Pass {
        dictionary: &dictionary,
        classes: &classes,
        layers: &layers,
        people: people(&dictionary),
        filter: time_filter(question, origin),
        origin,
        width_ns,
        rest: false,
        intervals: true,
    };
    let spans: u64 = span_phases().iter().map(|code| times.count(*code)).sum();
    let windows = if run.index().is_empty() { 1 } else { spans.div_ceil(SPANS_AT_ONCE).max(1) as i64 };
    let length = (end - origin) / windows + 1;
    let compute = layers.iter().position(|layer| layer.name == "compute");
    let mut rows = WallTimes::new();
    let nothing = Intervals::default();
    for window in 0..windows {
        let from = origin + window * length;
        let found = pass.window(run, from, from + length)?;
        let of = |layer: usize, process: usize| found[layer].get(process).unwrap_or(&nothing);
        for (place, layer) in layers.iter().enumerate() {
            let below: Vec<usize> =
                (0..layers.len()).filter(|other| layers[*other].parent.as_deref() == Some(&*layer.name)).collect();
            for (process, mine) in found[place].iter().enumerate().filter(|(_, mine)| !mine.is_empty()) {
                let inside = mine.intersection(&Intervals::union(below.iter().map(|other| of(*other, process))));
                let beside = compute.map(|compute| mine.intersection(of(compute, process))).unwrap_or_default();
                let known = dictionary.process(process as u32);
                let mut add = |ranges: &Intervals, take: &dyn Fn(&mut Wall, i128)| {
                    let mut put = |key: RowKey, length: i128| {
                        take(
                            &mut rows.entry(key).or_insert_with(|| vec![Wall::default(); layers.len()])[place],
                            length,
                        );
                    };
                    match view {
                        ViewType::TimeRange => ranges.per_bucket(origin, width_ns, |bucket, length| {
                            put(RowKey::Int(bucket), length.into());
                        }),
                        ViewType::HostName => put(RowKey::Text(host_text(known).to_owned()), ranges.length()),
                        ViewType::ProcId => put(RowKey::Int(known.pid), ranges.length()),
                        _ => known.rank.into_iter().for_each(|rank| put(RowKey::Int(rank), ranges.length())),
                    }
                };
                add(mine, &|wall, length| {
                    wall.union += length;
                    wall.own += length;
                });
                add(&inside, &|wall, length| wall.own -= length);
                add(&beside, &|wall, length| wall.beside_compute += length);
            }
        }
    }
    Ok(Some(rows))
}
