//! Calls of which the tracer kept only totals, in the sums of a summary.

use weftline_calls::{Calls, Side};

use super::gathered::{Gathered, OperationStats, grown};
use super::pass::Pass;
use crate::group::{Cell as _, Stats};
use crate::histogram::Histogram;
use crate::profiles::totals::Totals;

impl Pass<'_> {
    /// Adds records to what was gathered of spans.
    pub(super) fn add_totals(&self, gathered: &mut Gathered, totals: &Totals) {
        for (ids, profile) in &totals.records {
            if self.classes.ignores_name(ids.name) || self.classes.ignores_file(ids.file) {
                continue;
            }
            let process = self.process_ids[ids.process as usize];
            let operation = self.classes.operation(ids.cat, ids.name);
            let (calls, bytes) = (profile.count, profile.bytes());
            let (start, end) = totals.axis.range(ids.start, ids.length);
            gathered.totals += calls;

            let known = gathered
                .operations
                .entry((ids.cat, ids.name, false))
                .or_insert_with(|| OperationStats { stats: Stats::empty(), durations: Histogram::default() });
            known.stats.merge(&profile.stats(0, calls, (start, end)));
            for (dur, often) in profile.durations().into_iter().flatten() {
                known.durations.add_many(dur, often);
            }

            let life = grown(&mut gathered.lives, process as usize);
            *life = Some(life.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
            if self.classes.is_io(ids.cat) {
                let sums = summed(calls, profile.time, bytes);
                if let Some(file) = ids.file {
                    grown(&mut gathered.files, file as usize).add_to(Side::File, operation, sums);
                }
                grown(&mut gathered.processes, process as usize).add(operation, sums);
                for part in totals.axis.parts(ids.start, ids.length, calls, self.width_ns) {
                    let stats = profile.stats(part.from, part.to, (start, end));
                    let bucket = gathered.buckets.entry(part.bucket).or_default();
                    bucket.add(operation, summed(stats.count, stats.dur, stats.size));
                }
                let flow = operation.flow();
                let reads = flow.reads().then_some((&mut gathered.read_bins, &mut gathered.unbinned.0));
                let writes = flow.writes().then_some((&mut gathered.write_bins, &mut gathered.unbinned.1));
                for (bins, unbinned) in [reads, writes].into_iter().flatten() {
                    match profile.bins() {
                        Some(known) => known.into_iter().for_each(|(bin, often)| bins[bin] += often),
                        None => *unbinned += calls,
                    }
                }
            }
            for layer in &*self.layers_of(ids.cat, ids.name, self.classes.suffix_bits(ids.file)) {
                let sums = &mut gathered.layers[*layer as usize];
                sums.count += calls;
                sums.totals += calls;
                sums.time += profile.time;
                sums.size += bytes;
                sums.total_processes.insert(process);
            }
        }
    }
}

fn summed(count: u64, time: i128, bytes: u128) -> Calls {
    let fit = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
    Calls { count, time_ns: fit(u128::try_from(time).unwrap_or(0)), bytes: fit(bytes) }
}
