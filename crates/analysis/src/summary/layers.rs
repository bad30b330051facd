//! Layers of a job: how long each took, as a sum and as wall time, and how much of it ran beside others.

use rustc_hash::FxHashSet;

use crate::intervals::Intervals;
use crate::layers::Layer;

use super::pass::LayerSums;

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

/// Adds up layers over windows of time.
pub(super) struct LayerSummer<'l> {
    layers: &'l [Layer],
    times: Vec<LayerTimes>,
    /// Per layer and process.
    per_process: Vec<Vec<i128>>,
    /// Per layer: processes of which totals are known.
    total_processes: Vec<FxHashSet<u32>>,
}

impl<'l> LayerSummer<'l> {
    pub(super) fn new(layers: &'l [Layer], sums: &[LayerSums]) -> LayerSummer<'l> {
        let times = layers.iter().zip(sums).map(|(layer, sums)| LayerTimes {
            name: layer.name.to_string(),
            parent: layer.parent.as_ref().map(ToString::to_string),
            asynchronous: layer.asynchronous,
            count: sums.count,
            totals: sums.totals,
            size: sums.size,
            time_sum: sums.time,
            time_union: 0,
            time_union_proc: 0,
            time_union_proc_max: 0,
            time_self: 0,
            processes: 0,
            overlap: vec![0; layers.len()],
            unoverlapped: None,
        });
        LayerSummer {
            layers,
            times: times.collect(),
            per_process: vec![Vec::new(); layers.len()],
            total_processes: sums.iter().map(|sums| sums.total_processes.clone()).collect(),
        }
    }

    /// Takes up the ranges of a window.
    pub(super) fn add(&mut self, intervals: &[Vec<Intervals>]) {
        let nothing = Intervals::default();
        let of = |layer: usize, process: usize| intervals[layer].get(process).unwrap_or(&nothing);
        let processes = intervals.iter().map(Vec::len).max().unwrap_or(0);
        for (place, layer) in self.layers.iter().enumerate() {
            let times = &mut self.times[place];
            times.time_union += Intervals::union(&intervals[place]).length();
            let below: Vec<usize> = (0..self.layers.len())
                .filter(|other| self.layers[*other].parent.as_deref() == Some(&*layer.name))
                .collect();
            for process in (0..processes).filter(|process| !of(place, *process).is_empty()) {
                let mine = of(place, process);
                let length = mine.length();
                let known = &mut self.per_process[place];
                if process >= known.len() {
                    known.resize(process + 1, 0);
                }
                known[process] += length;
                let inside = match below.as_slice() {
                    [] => 0,
                    [one] => mine.overlap(of(*one, process)),
                    several => mine.overlap(&Intervals::union(several.iter().map(|other| of(*other, process)))),
                };
                times.time_self += length - inside;
                for (other, overlap) in times.overlap.iter_mut().enumerate() {
                    *overlap += if other == place { length } else { mine.overlap(of(other, process)) };
                }
            }
        }
    }

    pub(super) fn finish(mut self) -> Vec<LayerTimes> {
        let compute = self.layers.iter().position(|layer| layer.name == "compute");
        for (place, times) in self.times.iter_mut().enumerate() {
            let lengths = &self.per_process[place];
            times.time_union_proc = lengths.iter().sum();
            times.time_union_proc_max = lengths.iter().copied().max().unwrap_or(0);
            let spans = |process: usize| lengths.get(process).is_some_and(|length| *length > 0);
            let only_totals = self.total_processes[place].iter().filter(|process| !spans(**process as usize)).count();
            times.processes = (lengths.iter().filter(|length| **length > 0).count() + only_totals) as u64;
            times.unoverlapped = compute
                .filter(|compute| *compute != place)
                .map(|compute| times.time_union_proc - times.overlap[compute]);
        }
        self.times
    }
}
