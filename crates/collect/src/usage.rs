//! The kernel's numbers of some processes since the last question: CPU time, memory, bytes. For `weft top`; [`crate::collector`] writes what goes
//! into a trace.

use std::collections::HashMap;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::process::ProcessSampler;
use crate::roots::Roots;
use crate::sample::{Facts, Interval, Sink, Subject, Value};

/// One process over the last interval. Nothing where the kernel does not tell, or not yet.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Usage {
    /// Processor time.
    pub cpu_ns: Option<u64>,
    /// Memory.
    pub rss_bytes: Option<u64>,
    /// Bytes that its calls read.
    pub read_bytes: Option<u64>,
    /// Bytes that its calls wrote.
    pub write_bytes: Option<u64>,
}

/// Samples processes by pid.
#[derive(Default)]
pub struct Sampler {
    roots: Roots,
    samplers: HashMap<u32, ProcessSampler>,
    last_ns: Option<i64>,
}

impl Sampler {
    /// Reads all these processes. What a process did is known from the second time on.
    pub fn sample(&mut self, pids: impl Iterator<Item = u32>) -> HashMap<u32, Usage> {
        let now_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64);
        let at = Interval { start_ns: self.last_ns.unwrap_or(now_ns), end_ns: now_ns };
        let known = self.last_ns.replace(now_ns).is_some();
        let mut before = std::mem::take(&mut self.samplers);
        let mut found = HashMap::new();
        for pid in pids.filter(|pid| *pid != 0) {
            let opened = || {
                let mut sampler = ProcessSampler::open(&self.roots, pid).ok()?;
                if known {
                    sampler.count_from_birth();
                }
                Some(sampler)
            };
            if let Some(sampler) = before.remove(&pid).or_else(opened) {
                self.samplers.insert(pid, sampler);
            }
        }
        // The kernel adds what a child did to its parent when the child is reaped; it is no work of the parent's.
        for gone in before.into_values() {
            if let Some(parent) = self.samplers.get_mut(&gone.identity().ppid) {
                parent.discount(&gone.last_totals());
            }
        }
        self.samplers.retain(|pid, sampler| {
            let mut usage = Taken::default();
            let there = sampler.sample(at, &mut usage).is_ok();
            if there {
                found.insert(*pid, usage.0);
            }
            there
        });
        found
    }
}

/// Takes the values that are shown.
#[derive(Default)]
struct Taken(Usage);

impl Sink for Taken {
    fn counter(
        &mut self,
        _: Subject,
        category: &'static str,
        name: &str,
        _: Interval,
        values: &[(&'static str, Value)],
    ) {
        if (category, name) != ("process", "process") {
            return;
        }
        for (name, value) in values {
            let Value::Unsigned(value) = *value else { continue };
            match *name {
                "cpu_ns" => self.0.cpu_ns = Some(value),
                "rss_bytes" => self.0.rss_bytes = Some(value),
                "read_chars" => self.0.read_bytes = Some(value),
                "write_chars" => self.0.write_bytes = Some(value),
                _ => {}
            }
        }
    }

    fn metadata(&mut self, _: Subject, _: &str, _: i64, _: Facts<'_>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_read() {
        let mut kernel = Sampler::default();
        let own = std::process::id();
        let first = kernel.sample([own, 0, u32::MAX].into_iter());
        assert_eq!(first.len(), 1, "neither of the others is a process");
        assert!(
            first[&own].cpu_ns.is_none() && first[&own].rss_bytes.is_some_and(|bytes| bytes > 100_000),
            "{first:?}"
        );
        let read = std::fs::read("/proc/self/exe").expect("own program").len() as u64;
        let second = kernel.sample([own].into_iter())[&own];
        assert!(second.read_bytes.is_some_and(|bytes| bytes >= read), "{second:?}");
        assert!(second.cpu_ns.is_some_and(|ns| ns > 0), "{second:?}");
    }
}
