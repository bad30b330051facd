//! Calls of which the tracer kept only totals, in the sums of a summary.

use super::pass::{Gathered, Operation, Pass, grown};
use crate::classify::IoCat;
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
            let process = self.people[ids.process as usize];
            let io_cat = self.classes.io_cat(ids.cat, ids.name);
            let (calls, bytes) = (profile.count, profile.bytes());
            let (start, end) = totals.axis.range(ids.start);
            gathered.totals += calls;

            let operation = gathered
                .operations
                .entry((ids.cat, ids.name))
                .or_insert_with(|| Operation { stats: Stats::empty(), durations: Histogram::default() });
            operation.stats.merge(&profile.stats(0, calls, (start, end)));
            for (dur, often) in profile.durations().into_iter().flatten() {
                operation.durations.add_many(dur, often);
            }

            let life = grown(&mut gathered.lives, process as usize);
            *life = Some(life.map_or((start, end), |(first, last)| (first.min(start), last.max(end))));
            if self.classes.is_io(ids.cat) {
                if let Some(file) = ids.file {
                    grown(&mut gathered.files, file as usize).add_many(io_cat, calls, profile.time, bytes);
                }
                grown(&mut gathered.processes, process as usize).add_many(io_cat, calls, profile.time, bytes);
                for part in totals.axis.parts(ids.start, calls, self.width_ns) {
                    let stats = profile.stats(part.from, part.to, (start, end));
                    let traffic = gathered.buckets.entry(part.bucket).or_default();
                    traffic.add_many(io_cat, stats.count, stats.dur, stats.size);
                }
                let (bins, unbinned) = match io_cat {
                    IoCat::Read => (&mut gathered.read_bins, &mut gathered.unbinned.0),
                    IoCat::Write => (&mut gathered.write_bins, &mut gathered.unbinned.1),
                    _ => (&mut [0; crate::classify::SIZE_BINS], &mut 0),
                };
                match profile.bins() {
                    Some(known) => known.into_iter().for_each(|(bin, often)| bins[bin] += often),
                    None => *unbinned += calls,
                }
            }
            let mut bits = self.layer_bits(ids.cat, ids.name, self.classes.suffix_bits(ids.file));
            while bits != 0 {
                let sums = &mut gathered.layers[bits.trailing_zeros() as usize];
                bits &= bits - 1;
                sums.count += calls;
                sums.totals += calls;
                sums.time += profile.time;
                sums.size += bytes;
                sums.total_people.insert(process);
            }
        }
    }
}
