//! The record of the job, and the names of files.

use std::collections::HashMap;

use weftline_format::secrets::Arguments;
use weftline_format::text::from_bytes;

use super::bytes::Region;
use super::header::Header;
use crate::Result;

/// A job's record is 4096 bytes; a longer one is not read further.
const RECORD: usize = 16 << 10;
const METADATA: usize = 1024;
/// Processes of one job; a log that tells of more is not believed.
const MOST_PROCESSES: i64 = 1 << 24;

/// Names that are held, and their bytes: what is beyond is counted, and its records have a name made of their number.
pub(super) const MOST_NAMES: usize = 4 << 20;
const MOST_NAME_BYTES: usize = 512 << 20;
/// A path is shorter, and a dataset's name behind it too.
const LONGEST_NAME: usize = 64 << 10;

/// What is known of the job.
#[derive(Debug, Default)]
pub(super) struct Job {
    pub(super) uid: i64,
    pub(super) start_ns: i64,
    pub(super) end_ns: i64,
    pub(super) processes: u32,
    pub(super) id: i64,
    /// `key=value`, a line each.
    pub(super) metadata: String,
    /// The command line, without its secrets.
    pub(super) command: Vec<String>,
    /// Types and paths of file systems.
    pub(super) mounts: Vec<(String, String)>,
}

impl Job {
    pub(super) fn read(region: &mut Region<'_, '_>, header: &Header) -> Result<Job> {
        let mut bytes = vec![0; RECORD];
        let length = region.take(&mut bytes)?;
        bytes.truncate(length);
        let with_ns = header.version.1 >= 41;
        let numbers = if with_ns { 7 } else { 5 };
        if bytes.len() < numbers * 8 + METADATA {
            return Err(region.invalid("it is too short"));
        }
        let number = |place: usize| header.order.i64(&bytes, place * 8);
        let time = |seconds: usize, fraction: Option<usize>| {
            let fraction = fraction.map_or(0, number).clamp(0, 999_999_999);
            number(seconds).checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(fraction))
        };
        let (start, end, rest) = if with_ns {
            (time(1, Some(2)), time(3, Some(4)), [number(5), number(6)])
        } else {
            (time(1, None), time(2, None), [number(3), number(4)])
        };
        let [processes, id] = rest;
        let (Some(start_ns), Some(end_ns)) = (start, end) else {
            return Err(region.invalid("its times are beyond all years"));
        };
        if !(1..=MOST_PROCESSES).contains(&processes) {
            return Err(region.invalid(&format!("a job of {processes} processes is not believed")));
        }
        let (metadata, trailer) = bytes[numbers * 8..].split_at(METADATA);
        let trailer = from_bytes(until_zero(trailer)).into_owned();
        let mut lines = trailer.split('\n');
        let words = lines.next().unwrap_or_default().split_whitespace().map(str::to_owned);
        let mounts = lines.filter_map(|line| {
            let (kind, path) = line.split_once('\t')?;
            Some((kind.to_owned(), path.to_owned()))
        });
        let mut mounts: Vec<(String, String)> = mounts.collect();
        // The longest that a path begins with is where its file lies.
        mounts.sort_by_key(|(_, path)| std::cmp::Reverse(path.len()));
        Ok(Job {
            uid: number(0),
            start_ns,
            // A job that tells no end has its start; whole seconds are of those that began.
            end_ns: if with_ns { end_ns } else { end_ns.saturating_add(1_000_000_000) }.max(start_ns),
            processes: u32::try_from(processes).unwrap_or(1),
            id,
            metadata: from_bytes(until_zero(metadata)).into_owned(),
            command: Arguments::Masked.kept(words),
            mounts,
        })
    }

    /// The pairs of its metadata.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.metadata.lines().filter_map(|line| line.split_once('='))
    }

    /// The file system of a path.
    pub(super) fn mount(&self, path: &[u8]) -> Option<&(String, String)> {
        self.mounts.iter().find(|(_, mount)| path.starts_with(mount.as_bytes()))
    }

    /// The name of the program.
    pub(super) fn program(&self) -> &str {
        let exe = self.command.first().map_or("", String::as_str);
        exe.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or("job")
    }
}

fn until_zero(bytes: &[u8]) -> &[u8] {
    let end = memchr::memchr(0, bytes).unwrap_or(bytes.len());
    &bytes[..end]
}

/// The names of records.
#[derive(Debug, Default)]
pub(super) struct Names {
    places: HashMap<u64, (usize, usize)>,
    text: Vec<u8>,
}

impl Names {
    /// Reads them. Tells of each that there is no more room for.
    pub(super) fn read(region: &mut Region<'_, '_>, header: &Header, mut dropped: impl FnMut(u64)) -> Result<Names> {
        let mut names = Names::default();
        let mut name = Vec::new();
        let mut head = [0; 8];
        while region.next(&mut head)? {
            name.clear();
            if header.version.1 < 10 {
                let mut length = [0; 4];
                region.fill(&mut length)?;
                let length = header.order.u32(&length, 0) as usize;
                if length > LONGEST_NAME {
                    return Err(region.invalid("a name is too long"));
                }
                name.resize(length, 0);
                region.fill(&mut name)?;
            } else if !region.until_zero(&mut name, LONGEST_NAME)? {
                return Err(region.invalid("a name is too long"));
            }
            if !names.add(header.order.u64(&head, 0), &name) {
                dropped(region.offset());
            }
        }
        Ok(names)
    }

    /// Whether there was room. The first name of a record counts.
    fn add(&mut self, id: u64, name: &[u8]) -> bool {
        if self.places.contains_key(&id) {
            return true;
        }
        let room = self.places.len() < MOST_NAMES && self.text.len() + name.len() <= MOST_NAME_BYTES;
        if room {
            self.places.insert(id, (self.text.len(), name.len()));
            self.text.extend_from_slice(name);
        }
        room
    }

    /// The name of a record. One that the log does not name gets its number.
    pub(super) fn of<'a>(&'a self, id: u64, made: &'a mut Vec<u8>) -> &'a [u8] {
        match self.places.get(&id) {
            Some((start, length)) => &self.text[*start..start + length],
            None => {
                *made = format!("record {id}").into_bytes();
                made
            }
        }
    }
}
