//! The control groups of followed processes, which show the limits of a process and whether it is throttled.

use crate::cgroup::CgroupSampler;
use crate::clock::ClockReading;
use crate::error::{CollectError, Result};
use crate::follow::Group;
use crate::roots::Roots;
use crate::writer::SampleWriter;

/// They are sampled no more often than this: the kernel adds up all processes of a group for each look.
const PERIOD_NS: i64 = 1_000_000_000;
/// Groups that are sampled at most.
const MOST: usize = 32;

#[derive(Debug)]
pub(super) struct Groups {
    samplers: Vec<CgroupSampler>,
    last: ClockReading,
}

impl Groups {
    /// The groups that were asked for by name.
    pub(super) fn open(options: &[Group], roots: &Roots, now: ClockReading) -> Result<Groups> {
        let mut samplers = Vec::new();
        for group in options {
            if let Group::Path(path) = group {
                samplers.push(CgroupSampler::open(roots, path).map_err(|error| CollectError::io(path, error))?);
            }
        }
        Ok(Groups { samplers, last: now })
    }

    /// Adds the group of a process, where there is room for its files. The root is the machine itself.
    pub(super) fn add_of(&mut self, pid: u32, roots: &Roots, has_room: impl Fn() -> bool) {
        let Ok(name) = CgroupSampler::name_of_process(roots, pid) else { return };
        let name = name.to_string_lossy();
        let is_known = self.samplers.iter().any(|group| group.name() == name);
        if name != "/" && !is_known && self.samplers.len() < MOST {
            self.samplers.extend(CgroupSampler::of_process(roots, pid).into_iter().filter(|_| has_room()));
        }
    }

    /// Samples them when it is time.
    pub(super) fn sample(&mut self, now: ClockReading, writer: &mut SampleWriter) {
        if now.steady_ns - self.last.steady_ns >= PERIOD_NS {
            let interval = now.since(&self.last);
            self.samplers.retain_mut(|group| group.sample(interval, writer).is_ok());
            self.last = now;
        }
    }
}
