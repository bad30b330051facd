//! Lanes: tracks for overlapping requests.
//!
//! Viewers nest the spans of a thread and drop one that begins within another and ends after it. A thread that issues a request continues
//! with other requests and calls. So requests are put into lanes: virtual threads of a device or of a process's rings, with a
//! name that says so. The thread that issued a request is one of its arguments.

use std::collections::HashMap;

use super::event::{EXIT, KernelEvent, Source};

/// Threads that exist have smaller numbers: the kernel's own limit is 2^22.
const FIRST: u32 = 1 << 30;
/// Lanes of one device or process. A device that loses completions would open more and more; the last one takes what is left.
const MOST: usize = 4096;
/// Devices with lanes of their own.
const MOST_DEVICES: usize = 1024;

/// A lane for an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lane {
    /// The number that stands in the place of a thread's.
    pub tid: u32,
    /// Which one of its device or process.
    pub number: u32,
}

/// When the last request in each lane ended, ns.
type Ends = Vec<i64>;

/// The lanes of all devices and processes.
#[derive(Debug, Default)]
pub struct Lanes {
    devices: Vec<(String, Ends)>,
    /// The same numbers are used for each process: readers identify threads by process and number.
    rings: HashMap<u32, Ends>,
}

impl Lanes {
    /// The lane of an event; nothing for what the thread itself was busy with.
    pub fn of(&mut self, event: &KernelEvent<'_>) -> Option<Lane> {
        match event.source {
            Source::Block => {
                let name = event.device.unwrap_or_default();
                let known = self.devices.iter().position(|(device, _)| device == name);
                let place = known.unwrap_or_else(|| {
                    if self.devices.len() < MOST_DEVICES {
                        self.devices.push((name.to_owned(), Ends::new()));
                    }
                    self.devices.len() - 1
                });
                let number = free(&mut self.devices[place].1, event);
                Some(Lane { tid: FIRST + ((place as u32 + 1) * MOST as u32) + number, number })
            }
            Source::Uring => {
                let number = free(self.rings.entry(event.pid).or_default(), event);
                Some(Lane { tid: FIRST + number, number })
            }
            Source::Process if event.name == EXIT => {
                self.rings.remove(&event.pid);
                None
            }
            Source::Call | Source::Fault | Source::Process => None,
        }
    }
}

/// The first lane in which everything has ended. Requests come in the order of their ends, or nearly: an end never moves back.
fn free(ends: &mut Ends, event: &KernelEvent<'_>) -> u32 {
    let number = ends.iter().position(|end| *end <= event.start_ns).unwrap_or_else(|| {
        if ends.len() < MOST {
            ends.push(i64::MIN);
        }
        ends.len() - 1
    });
    ends[number] = ends[number].max(event.end_ns);
    number as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: Source, events: &[(u32, &str, i64, i64)], expected: &[u32]) {
        let mut lanes = Lanes::default();
        let found: Vec<Lane> = events
            .iter()
            .filter_map(|(pid, device, start_ns, end_ns)| {
                let event = KernelEvent {
                    device: Some(device),
                    start_ns: *start_ns,
                    end_ns: *end_ns,
                    ..KernelEvent::of(source, "read", *pid, *pid)
                };
                lanes.of(&event)
            })
            .collect();
        assert_eq!(found.iter().map(|lane| lane.number).collect::<Vec<_>>(), expected, "{events:?}");
        // No two in the same lane of the same process overlap, and no lane has the number of a thread.
        for (place, (lane, event)) in found.iter().zip(events).enumerate() {
            assert!(lane.tid >= FIRST);
            for (other, before) in found.iter().zip(events).take(place) {
                let apart = before.3 <= event.2 || event.3 <= before.2;
                assert!(apart || other.tid != lane.tid || before.0 != event.0, "{before:?} and {event:?}");
            }
        }
    }

    #[test]
    fn requests_that_overlap_have_lanes_of_their_own() {
        check(Source::Block, &[(7, "a", 0, 10), (7, "a", 10, 20), (8, "a", 20, 30)], &[0, 0, 0]);
        check(Source::Block, &[(7, "a", 0, 10), (8, "a", 5, 20), (7, "a", 9, 30), (7, "a", 10, 40)], &[0, 1, 2, 0]);
        check(Source::Block, &[(7, "a", 0, 10), (7, "b", 5, 20)], &[0, 0]);
        check(Source::Uring, &[(7, "", 0, 10), (7, "", 5, 20), (8, "", 5, 20), (7, "", 10, 30)], &[0, 1, 0, 0]);
        // Out of order.
        check(Source::Block, &[(7, "a", 20, 30), (7, "a", 0, 10), (7, "a", 25, 26)], &[0, 1, 1]);
        check(Source::Call, &[(7, "a", 0, 10), (7, "a", 5, 20)], &[]);
    }
}
