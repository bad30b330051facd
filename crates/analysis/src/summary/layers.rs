//! Layers of a job: how long each took, as a sum and as wall time, and how much of it ran beside others.

use serde::{Deserialize, Serialize};

use super::gathered::{LayerSums, grown, moved, places};
use crate::intervals::Intervals;
use crate::layers::Layer;
use crate::pass::Maps;
use crate::wire;

/// A layer's times, ns. Per process means: the wall time of each process, summed over processes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerTimes {
    /// The layer.
    pub name: String,
    /// The layer that waits for it.
    pub parent: Option<String>,
    /// Whether it can run while another computes.
    pub asynchronous: bool,
    /// Its events.
    pub count: u64,
    /// Of those: calls of which only totals are known. Wall times are those of the others.
    pub totals: u64,
    /// Bytes that they moved.
    pub size: u128,
    /// Sum of their durations; nested and parallel calls count again.
    pub time_sum: i128,
    /// Wall time in which at least one event of any process was going on.
    pub time_union: i128,
    /// Per process: wall time in which at least one of its events was going on.
    pub time_union_proc: i128,
    /// The longest of those.
    pub time_union_proc_max: i128,
    /// Per process: the part of it in which none of the layers below was going on.
    pub time_self: i128,
    /// Processes that have events of it.
    pub processes: u64,
    /// Per process: what it has in common with each other layer, by the place of that layer.
    pub overlap: Vec<i128>,
    /// Per process: the part of it in which the compute layer was not going on. Nothing where there is no such layer, or it is the layer.
    pub unoverlapped: Option<i128>,
}

/// Which wall times of layers are known: those to which no calls belong of which only totals are known.
pub(super) struct KnownWalls<'l>(pub(super) &'l [LayerTimes]);

impl KnownWalls<'_> {
    /// The union of a layer.
    pub(super) fn union(&self, layer: &LayerTimes) -> bool {
        layer.totals == 0
    }

    /// The layer without those below.
    pub(super) fn own(&self, layer: &LayerTimes) -> bool {
        let below = |other: &&LayerTimes| other.parent.as_deref() == Some(layer.name.as_str());
        self.union(layer) && self.0.iter().filter(below).all(|other| self.union(other))
    }

    /// What it has in common with another one.
    pub(super) fn overlap(&self, layer: &LayerTimes, other: &LayerTimes) -> bool {
        self.union(layer) && self.union(other)
    }

    /// The layer while nothing computed.
    pub(super) fn unoverlapped(&self, layer: &LayerTimes) -> bool {
        let computes = self.0.iter().find(|other| other.name == "compute");
        self.union(layer) && computes.is_none_or(|compute| self.union(compute))
    }
}

/// Wall times of layers in a shard, as far as they can be told from it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LayerWalls {
    /// By layer, then by process: ranges that are not summed up yet because there are few, or because other shards have ranges of the process too.
    pub(super) ranges: Vec<Vec<Intervals>>,
    /// By layer: what is summed up, of all other processes.
    summed: Vec<Summed>,
}

/// A layer of processes whose ranges nobody needs one by one any more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Summed {
    /// By process: the length of its union.
    lengths: Vec<i128>,
    /// The part of them in which none of the layers below was going on.
    own: i128,
    /// What they have in common with each layer.
    overlap: Vec<i128>,
    /// The union of all these processes, for that of a shard with those of others …
    union: Intervals,
    /// … and only its length, where there are no others.
    union_ns: i128,
}

impl LayerWalls {
    pub(super) fn new(layers: usize) -> LayerWalls {
        let summed = Summed { overlap: vec![0; layers], ..Summed::default() };
        LayerWalls { ranges: vec![Vec::new(); layers], summed: vec![summed; layers] }
    }

    pub(super) fn has_layers(&self, count: usize) -> bool {
        let all =
            [self.ranges.len(), self.summed.len()].into_iter().chain(self.summed.iter().map(|one| one.overlap.len()));
        all.into_iter().all(|len| len == count)
    }

    pub(super) fn is_plausible(&self) -> bool {
        self.summed.iter().all(|one| {
            let sums = [one.own, one.union_ns].into_iter().chain(one.overlap.iter().copied());
            sums.chain(one.lengths.iter().copied()).all(wire::is_wide_sum)
        })
    }

    pub(super) fn settle(&mut self) {
        self.ranges.iter_mut().flatten().for_each(Intervals::settle);
    }

    /// Sums up the ranges of a window: windows and processes add up. Those of processes that are `cut` are kept; without a shard that cuts any
    /// (`None`) there is nobody else whose ranges a union could meet.
    pub(super) fn sum_up(&mut self, layers: &[Layer], mut window: Vec<Vec<Intervals>>, cut: Option<&[bool]>) {
        let Some(cut) = cut else {
            for (summed, ranges) in self.summed.iter_mut().zip(&window) {
                summed.union_ns += Intervals::union(ranges).length();
            }
            return self.add(layers, &window);
        };
        for (layer, ranges) in window.iter_mut().enumerate() {
            for (process, ranges) in ranges.iter_mut().enumerate().filter(|(process, _)| cut[*process]) {
                grown(&mut self.ranges[layer], process).join(std::mem::take(ranges));
            }
            self.summed[layer].union.join(Intervals::union(&*ranges));
        }
        self.add(layers, &window);
    }

    /// Adds the lengths of processes.
    fn add(&mut self, layers: &[Layer], ranges: &[Vec<Intervals>]) {
        let nothing = Intervals::default();
        let of = |layer: usize, process: usize| ranges[layer].get(process).unwrap_or(&nothing);
        let processes = ranges.iter().map(Vec::len).max().unwrap_or(0);
        for (place, layer) in layers.iter().enumerate() {
            let summed = &mut self.summed[place];
            let below: Vec<usize> =
                (0..layers.len()).filter(|other| layers[*other].parent.as_deref() == Some(&*layer.name)).collect();
            for process in (0..processes).filter(|process| !of(place, *process).is_empty()) {
                let mine = of(place, process);
                let length = mine.length();
                *grown(&mut summed.lengths, process) += length;
                let inside = match below.as_slice() {
                    [] => 0,
                    [one] => mine.overlap(of(*one, process)),
                    several => mine.overlap(&Intervals::union(several.iter().map(|other| of(*other, process)))),
                };
                summed.own += length - inside;
                for (other, overlap) in summed.overlap.iter_mut().enumerate() {
                    *overlap += if other == place { length } else { mine.overlap(of(other, process)) };
                }
            }
        }
    }

    pub(super) fn merge(&mut self, other: LayerWalls) {
        join(&mut self.ranges, other.ranges);
        for (own, other) in self.summed.iter_mut().zip(other.summed) {
            for (process, length) in other.lengths.into_iter().enumerate() {
                add(grown(&mut own.lengths, process), length);
            }
            add(&mut own.own, other.own);
            own.overlap.iter_mut().zip(other.overlap).for_each(|(own, other)| add(own, other));
            own.union.join(other.union);
            add(&mut own.union_ns, other.union_ns);
        }
    }

    pub(super) fn each_process(&self, each: &mut dyn FnMut(u32)) {
        self.ranges.iter().for_each(|ranges| places(ranges).for_each(&mut *each));
        self.summed.iter().for_each(|summed| places(&summed.lengths).for_each(&mut *each));
    }

    pub(super) fn renumbered(self, maps: &Maps) -> LayerWalls {
        let first = |id: u32| maps.first(id);
        let ranges = self.ranges.into_iter().map(|ranges| moved(ranges, first, Intervals::join));
        let summed =
            self.summed.into_iter().map(|summed| Summed { lengths: moved(summed.lengths, first, add), ..summed });
        LayerWalls { ranges: ranges.collect(), summed: summed.collect() }
    }

    /// The times of the layers, when all shards are together.
    pub(super) fn finish(mut self, layers: &[Layer], sums: &[LayerSums]) -> Vec<LayerTimes> {
        self.settle();
        let ranges = std::mem::take(&mut self.ranges);
        self.add(layers, &ranges);
        let compute = layers.iter().position(|layer| layer.name == "compute");
        let each = self.summed.into_iter().zip(ranges).zip(layers.iter().zip(sums)).enumerate();
        let times = each.map(|(place, ((summed, ranges), (layer, sums)))| {
            let lengths = &summed.lengths;
            let spans = |process: usize| lengths.get(process).is_some_and(|length| *length > 0);
            let only_totals = sums.total_processes.iter().filter(|process| !spans(**process as usize)).count();
            let union = Intervals::union(ranges.iter().chain([&summed.union])).length();
            let time_union_proc = lengths.iter().sum();
            LayerTimes {
                name: layer.name.to_string(),
                parent: layer.parent.as_ref().map(ToString::to_string),
                asynchronous: layer.asynchronous,
                count: sums.count,
                totals: sums.totals,
                size: sums.size,
                time_sum: sums.time,
                time_union: summed.union_ns + union,
                time_union_proc,
                time_union_proc_max: lengths.iter().copied().max().unwrap_or(0),
                time_self: summed.own,
                processes: (lengths.iter().filter(|length| **length > 0).count() + only_totals) as u64,
                unoverlapped: compute
                    .filter(|compute| *compute != place)
                    .map(|compute| time_union_proc - summed.overlap[compute]),
                overlap: summed.overlap,
            }
        });
        times.collect()
    }
}

/// Sums of forged states stop at the largest number.
fn add(sum: &mut i128, more: i128) {
    *sum = sum.saturating_add(more);
}

/// Joins ranges by layer and process.
pub(super) fn join(all: &mut [Vec<Intervals>], found: Vec<Vec<Intervals>>) {
    for (all, found) in all.iter_mut().zip(found) {
        for (process, ranges) in found.into_iter().enumerate() {
            grown(all, process).join(ranges);
        }
    }
}
