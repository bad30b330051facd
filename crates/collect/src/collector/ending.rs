//! The end of a collector, and its record in the manifest.

use std::collections::BTreeMap;

use rustix::time::{ClockId, clock_gettime};
use weftline_format::manifest::{SampleRecord, State, SupervisorRecord};

use super::Collector;
use crate::clock::Clock;
use crate::error::Result;

impl<C: Clock> Collector<C> {
    /// The last look, and the last write.
    pub fn finish(mut self) -> SampleRecord {
        self.look(&self.clock.now());
        if let Some(node) = &mut self.node {
            node.write_last_metadata(self.clock.now(), &mut self.writer);
        }
        let record = self.record_now();
        let kernel = self.kernel_record();
        let Collector { options, own, session, began, clock, writer, .. } = self;
        let counts = writer.finish();
        let mut samples = SampleRecord { samples: counts.samples, ..record };
        if counts.lost > 0 {
            samples.lost = BTreeMap::from([("no space".to_owned(), counts.lost)]);
        }
        if options.own_record {
            let closed = SupervisorRecord {
                state: State::Complete,
                started_ns: began.real_ns,
                ended_ns: clock.now().real_ns,
                samples: Some(samples.clone()),
                kernel,
                ..own.record(session)
            };
            // On a full disk the one from the start stays, which says that the collector is at work.
            let _ = closed.write(&options.run);
        }
        samples
    }

    /// Leaves nothing: for a program that ended before there was anything to tell.
    pub(super) fn discard(self) {
        self.writer.discard();
    }

    /// What it has done so far.
    fn record_now(&self) -> SampleRecord {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        let mut what = self.options.follow.describe();
        if self.node.is_some() {
            what.push_str(" and the host");
        }
        SampleRecord {
            file: self.writer.path().file_name().unwrap_or_default().to_string_lossy().into_owned(),
            node: self.options.node.clone(),
            stage: self.options.stage.clone(),
            what,
            interval_ns: self.options.interval.as_nanos() as u64,
            ticks: self.ticks,
            skipped_ticks: self.skipped,
            samples: 0,
            lost: BTreeMap::new(),
            processes: self.targets.followed,
            not_followed: self.targets.descriptors.outside(),
            told_ends: self.targets.told_ends,
            unseen_ends: self.targets.unseen_ends,
            unseen_ns: self.targets.unseen_ns,
            cpu_ns: (cpu.tv_sec * 1_000_000_000 + cpu.tv_nsec) as u64,
        }
    }

    /// Writes the record of a collector that is at work.
    pub(super) fn write_record(&self, state: State) -> Result<()> {
        if !self.options.own_record {
            return Ok(());
        }
        let record = SupervisorRecord {
            state,
            started_ns: self.began.real_ns,
            samples: Some(self.record_now()),
            ..self.own.record(self.session)
        };
        Ok(record.write(&self.options.run)?)
    }
}
