//! Network interfaces, under DFTracer's names for their values; names of interfaces come without the padding that `/proc/net/dev` gives them.

use crate::read::{Kept, growth, lines, number, words};
use crate::sample::{Interval, Sink, Subject, Value};

const FIELDS: usize = 16;

/// Where a value is in the line, and what it is called.
const VALUES: [(usize, &str); 10] = [
    (0, "bytes_recv"),
    (1, "packets_recv"),
    (2, "rx_errors"),
    (3, "rx_dropped"),
    (7, "multicast_recv"),
    (8, "bytes_sent"),
    (9, "packets_sent"),
    (10, "tx_errors"),
    (11, "tx_dropped"),
    (13, "collisions"),
];

#[derive(Debug)]
struct Interface {
    name: String,
    before: [u64; FIELDS],
}

#[derive(Debug)]
pub(super) struct Network {
    file: Kept,
    interfaces: Vec<Interface>,
}

impl Network {
    pub(super) fn new(file: Kept) -> Network {
        Network { file, interfaces: Vec::new() }
    }

    pub(super) fn sample(&mut self, at: Interval, buffer: &mut Vec<u8>, sink: &mut dyn Sink) {
        let Ok(text) = self.file.read_short_records(buffer) else { return };
        for line in lines(text) {
            // `eth0: 12`, or `eth0:12` where the number is long. Aliases (`eth0:1`) have no counters of their own.
            let Some(colon) = memchr::memchr(b':', line) else { continue };
            let Ok(name) = std::str::from_utf8(line[..colon].trim_ascii()) else { continue };
            let mut now = [0; FIELDS];
            let mut known = 0;
            for (field, word) in now.iter_mut().zip(words(&line[colon + 1..])) {
                let Some(value) = number(word) else { break };
                *field = value;
                known += 1;
            }
            // Interfaces without any traffic are left out.
            if known < FIELDS || (now[1] == 0 && now[9] == 0) {
                continue;
            }
            let Some(place) = self.interfaces.iter().position(|interface| interface.name == name) else {
                self.interfaces.push(Interface { name: name.to_owned(), before: now });
                continue;
            };
            let interface = &mut self.interfaces[place];
            let mut values = [("", Value::Unsigned(0)); VALUES.len()];
            for (value, (place, name)) in values.iter_mut().zip(VALUES) {
                *value = (name, Value::Unsigned(growth(now[place], interface.before[place])));
            }
            sink.counter(Subject::Host, "net", &interface.name, at, &values);
            interface.before = now;
        }
    }
}
