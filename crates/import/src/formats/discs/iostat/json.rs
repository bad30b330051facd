//! iostat's JSON as a stream: one report at a time, however the text is laid out. A file that was not closed ends where it ends.

use std::fmt;
use std::io::{self, Read};

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{MOST_DEVICES, MOST_VALUES, Part, Report, date, when};
use crate::input::Input;
use crate::{ImportError, Result};

/// Bytes of one report at most.
const LONGEST: u64 = 16 << 20;

type Act<'a> = dyn FnMut(Part) -> Result<bool> + 'a;

/// What is read, up to a bound between two reports.
struct Bounded<'a, 'i> {
    input: &'a mut Input<'i>,
    left: &'a std::cell::Cell<u64>,
}

impl Read for Bounded<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.get() == 0 {
            return Err(io::Error::other("a report of more than 16 MiB"));
        }
        let room = buffer.len().min(usize::try_from(self.left.get()).unwrap_or(usize::MAX));
        let read = self.input.read(&mut buffer[..room])?;
        self.left.set(self.left.get() - read as u64);
        Ok(read)
    }
}

struct State<'a, 'b> {
    act: &'a mut Act<'b>,
    left: &'a std::cell::Cell<u64>,
    /// Why it stopped: an error of the taker, or because it has enough.
    failed: Option<ImportError>,
    enough: bool,
}

impl State<'_, '_> {
    fn give<E: serde::de::Error>(&mut self, part: Part) -> std::result::Result<(), E> {
        self.left.set(LONGEST);
        match (self.act)(part) {
            Ok(true) => Ok(()),
            Ok(false) => {
                self.enough = true;
                Err(E::custom("enough"))
            }
            Err(error) => {
                self.failed = Some(error);
                Err(E::custom("the taker failed"))
            }
        }
    }
}

/// Gives the parts of a file whose first brace was read.
pub(super) fn parts(input: &mut Input<'_>, act: &mut Act<'_>) -> Result<()> {
    let left = std::cell::Cell::new(LONGEST);
    let mut state = State { act, left: &left, failed: None, enough: false };
    let bounded = Bounded { input, left: &left };
    let mut text = serde_json::Deserializer::from_reader(io::BufReader::new(io::Cursor::new(b"{").chain(bounded)));
    let read = Within { state: &mut state, what: What::Root }.deserialize(&mut text);
    drop(text);
    let (failed, enough) = (state.failed.take(), state.enough);
    match (read, failed) {
        (_, Some(error)) => Err(error),
        (Err(error), None) if !enough => {
            // What the system said about the file itself is an error; the text's end is not.
            if error.classify() == serde_json::error::Category::Io && !error.to_string().contains("16 MiB") {
                return Err(ImportError::Io { name: input.name().to_owned(), source: error.into() });
            }
            act(Part::Skipped("damaged or unfinished JSON: the rest of the file", input.offset())).map(|_| ())
        }
        _ => Ok(()),
    }
}

/// Where in the text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Root,
    Sysstat,
    Hosts,
    Host,
    Statistics,
}

struct Within<'s, 'a, 'b> {
    state: &'s mut State<'a, 'b>,
    what: What,
}

impl<'de> DeserializeSeed<'de> for Within<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, deserializer: D) -> std::result::Result<(), D::Error> {
        match self.what {
            What::Hosts | What::Statistics => deserializer.deserialize_seq(self),
            _ => deserializer.deserialize_map(self),
        }
    }
}

impl<'de> Visitor<'de> for Within<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("iostat's JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        let (mut host, mut day) = (String::new(), None);
        while let Some(key) = map.next_key::<String>()? {
            let deeper = match (self.what, key.as_str()) {
                (What::Root, "sysstat") => What::Sysstat,
                (What::Sysstat, "hosts") => What::Hosts,
                (What::Host, "statistics") => {
                    self.state.give(Part::Banner(std::mem::take(&mut host), day))?;
                    What::Statistics
                }
                (What::Host, "nodename") => {
                    host = map.next_value()?;
                    continue;
                }
                (What::Host, "date") => {
                    day = date(map.next_value::<String>()?.as_bytes());
                    continue;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            map.next_value_seed(Within { state: self.state, what: deeper })?;
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> std::result::Result<(), A::Error> {
        if self.what == What::Hosts {
            while list.next_element_seed(Within { state: self.state, what: What::Host })?.is_some() {}
            return Ok(());
        }
        while let Some(value) = list.next_element::<serde_json::Value>()? {
            self.state.give(Part::Report(report(&value)))?;
        }
        Ok(())
    }
}

fn numbers(value: &serde_json::Value, without: &str) -> Vec<(String, f64)> {
    let Some(map) = value.as_object() else { return Vec::new() };
    let of = |(key, value): (&String, &serde_json::Value)| Some((key.clone(), value.as_f64()?));
    map.iter().filter(|(key, _)| *key != without).filter_map(of).take(MOST_VALUES).collect()
}

fn report(value: &serde_json::Value) -> Report {
    let mut report =
        Report { when: value.get("timestamp").and_then(|text| when(text.as_str()?.as_bytes())), ..Report::default() };
    for disk in value.get("disk").and_then(|disks| disks.as_array()).into_iter().flatten().take(MOST_DEVICES) {
        let name = disk.get("disk_device").or_else(|| disk.get("disk")).and_then(|name| name.as_str());
        if let Some(name) = name {
            report.devices.push((name.to_owned(), numbers(disk, "disk_device")));
        }
    }
    if let Some(shares) = value.get("avg-cpu") {
        report.shares = numbers(shares, "");
    }
    report
}
