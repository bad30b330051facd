//! The work of one thread: inflate, scan, collect, pass on.

use std::collections::BTreeMap;

use weftline_format::Phase;
use weftline_format::damage::{Damage, Place, What};
use weftline_format::dialect::{Dialect, Reading};
use weftline_format::member::{InflateError, inflate_torn};
use weftline_format::quick::{Aside, Quick, fields};
use weftline_format::sequences::Sequences;
use weftline_format::source::{Block, Packed, Source};

use super::{FileInfo, Maps, Shared, Sink, columns_of};
use crate::inflate;
use crate::rows::{Collector, GROUP_ROWS, Loose, Stitcher, Wanted};
use crate::source::{self, MAX_CARRY, TraceFile, Work};
use crate::{IndexError, Result};

/// Text of arguments that makes a row group full, whatever its rows: offsets have 31 bits.
const GROUP_TEXT: usize = 256 << 20;

/// What is known of a file only when all its tasks are done.
#[derive(Default)]
pub(super) struct Stitching {
    sequences: BTreeMap<usize, Sequences>,
    spans: Stitcher,
    /// Files whose members were not what they seemed: from where they are to be read again.
    pub(super) broken: BTreeMap<usize, u64>,
}

impl Stitching {
    pub(super) fn judge(&mut self, files: &[TraceFile], info: &mut [FileInfo]) {
        for (file, sequences) in std::mem::take(&mut self.sequences) {
            sequences.judge(files[file].from == 0, &mut info[file].damage);
        }
    }
}

/// What a task found out about a file.
#[derive(Default)]
struct Seen {
    file: usize,
    dialect: Option<Dialect>,
    events: u64,
    definitions: u64,
    damage: Damage,
    sequences: Sequences,
    /// A file's header was seen: pairs outside of objects belong to it.
    header: bool,
    unreadable: Option<String>,
}

pub(super) struct Worker<'a, S: Sink> {
    files: &'a [TraceFile],
    wanted: Wanted,
    shared: &'a Shared,
    sink: &'a S,
    state: S::State,
    collector: Collector,
    maps: Maps,
    quick: Quick,
    seen: Seen,
    inflater: inflate::Inflater,
    /// Where members are inflated to.
    room: Vec<u8>,
}

impl<'a, S: Sink> Worker<'a, S> {
    pub(super) fn new(files: &'a [TraceFile], wanted: Wanted, shared: &'a Shared, sink: &'a S) -> Worker<'a, S> {
        let mut quick = Quick::new(Reading::default());
        quick.set_unread(wanted.unread());
        Worker {
            files,
            wanted,
            shared,
            sink,
            state: sink.begin(),
            collector: Collector::new(wanted),
            maps: Maps::default(),
            quick,
            seen: Seen::default(),
            inflater: inflate::Inflater::default(),
            room: Vec::new(),
        }
    }

    pub(super) fn finish(self) -> S::State {
        self.state
    }

    /// Does a task; errors end the whole pipeline.
    pub(super) fn task(&mut self, number: u64, work: Work) {
        let done = match work {
            Work::Files(files) => {
                files.into_iter().try_for_each(|file| self.whole_file(number, file, self.files[file].from))
            }
            Work::Members { file, members } => {
                self.begin(file);
                self.set_reading(Reading::own());
                members.iter().for_each(|member| self.member(member));
                self.end_of_file(number)
            }
            Work::Gzip { file, reading, at, bytes, last } => {
                self.begin(file);
                self.set_reading(reading);
                self.seen.dialect = Some(reading.dialect);
                self.gzip(number, file, at, &bytes, last)
            }
            Work::Rest { file, from } => self.whole_file(number, file, from),
            Work::Text { file, reading, pieces } => {
                self.begin(file);
                self.set_reading(reading);
                for (text, place) in pieces {
                    self.text(&text, place, true);
                    self.shared.spare.give(text);
                }
                self.end_of_file(number)
            }
        };
        if let Err(error) = done.and_then(|()| self.end_of_task(number)) {
            self.shared.fail(error);
        }
    }

    fn begin(&mut self, file: usize) {
        self.seen = Seen { file, ..Seen::default() };
        self.collector.begin_file(file, &self.files[file].path.to_string_lossy());
    }

    fn set_reading(&mut self, reading: Reading) {
        self.quick.set_reading(reading);
        self.collector.set_reading(reading);
    }

    fn whole_file(&mut self, task: u64, file: usize, from: u64) -> Result<()> {
        self.begin(file);
        match self.read_file(task, file, from) {
            Err(IndexError::Io { source, .. }) => self.seen.unreadable = Some(source.to_string()),
            other => other?,
        }
        self.end_of_file(task)
    }

    fn read_file(&mut self, task: u64, number: usize, from: u64) -> Result<()> {
        let file = &self.files[number];
        let wrap = || IndexError::io(&file.path);
        let input = source::open(file)?;
        let mut source = Source::new(&input).map_err(wrap())?;
        let reading = source.reading().map_err(wrap())?;
        self.seen.dialect = Some(reading.dialect);
        source.skip_to(from);
        let mut carry = Vec::new();
        while let Some(block) = source.next_block(std::mem::take(&mut carry)).map_err(wrap())? {
            match block {
                Block::Members(members) => {
                    self.seen.dialect = Some(Dialect::Weftline);
                    self.set_reading(Reading::own());
                    members.iter().for_each(|member| self.member(member));
                }
                Block::Text { mut bytes, place, last } => {
                    self.set_reading(reading);
                    let used = self.text(&bytes, place, last || bytes.len() > MAX_CARRY);
                    bytes.drain(..used);
                    carry = bytes;
                }
            }
            self.hand_on_if_full(task)?;
        }
        self.seen.damage.join(source.damage);
        Ok(())
    }

    /// Foreign members one after the other. Where they are not what they seemed, the file is read again from there, later and in one go.
    fn gzip(&mut self, task: u64, file: usize, start: u64, bytes: &[u8], last: bool) -> Result<()> {
        let mut room = std::mem::take(&mut self.room);
        let mut at = 0;
        let mut broken = false;
        while at < bytes.len() && !broken {
            let inflated = inflate::member(&bytes[at..], &mut room, &mut self.inflater);
            match inflated {
                // The next member must not begin within a line.
                Ok((len, text)) if text.ends_with(b"\n") || text.is_empty() || last && at + len == bytes.len() => {
                    let place = Place::Member { member: start + at as u64, text: 0 };
                    let text: &[u8] = text;
                    Self::scan_text(&mut self.quick, &mut self.collector, &mut self.seen, text, place, true);
                    at += len;
                }
                _ => broken = true,
            }
            if !broken {
                // If an earlier task gave up before this member, the thread that continues there reads it.
                self.hand_on_gzip_if_full(task, file)?;
            }
        }
        self.room = room;
        let Some(mut state) = self.shared.turn_of(task) else { return Ok(()) };
        if state.stitching.broken.contains_key(&file) {
            drop(state);
            self.collector.discard();
            self.seen = Seen::default();
            return Ok(());
        }
        if broken {
            state.stitching.broken.insert(file, start + at as u64);
        }
        drop(state);
        self.end_of_file(task)
    }

    fn hand_on_gzip_if_full(&mut self, task: u64, file: usize) -> Result<()> {
        if self.is_full() {
            let Some(state) = self.shared.turn_of(task) else { return Ok(()) };
            let skip = state.stitching.broken.contains_key(&file);
            drop(state);
            if skip {
                self.collector.discard();
            } else {
                self.hand_on(task)?;
            }
        }
        Ok(())
    }

    fn member(&mut self, member: &Packed) {
        let mut room = std::mem::take(&mut self.room);
        let inflated = inflate::own_member(&member.bytes, &mut room, &mut self.inflater);
        let torn = if let Err(InflateError::Cut) = inflated { inflate_torn(&member.bytes) } else { Vec::new() };
        match inflated {
            Err(InflateError::Cut) => self.own_text(member, &torn),
            Err(error) => {
                let size = member.bytes.len() as u64;
                self.seen.damage.add(Place::File(member.at), What::BadGzip, size, error.to_string());
            }
            Ok(text) => self.own_text(member, text),
        }
        self.room = room;
    }

    fn own_text(&mut self, member: &Packed, text: &[u8]) {
        let place = Place::File(member.at);
        let (before, image) = (self.seen.events, image_of(text));
        self.text(text, Place::Member { member: member.at, text: 0 }, true);
        let (found, announced) = (self.seen.events - before, u64::from(member.header.count));
        if member.torn {
            let note = format!("{found} of {announced} events could be read, {} bytes of text", text.len());
            self.seen.damage.add(place, What::TornMember, member.bytes.len() as u64, note);
            return;
        }
        if found != announced {
            self.seen.damage.add(place, What::WrongCount, 0, format!("{announced} announced, {found} found"));
        }
        self.seen.sequences.note(&image, member.header.seq, member.at);
    }

    /// Scans a text; how much of it was used.
    fn text(&mut self, text: &[u8], place: Place, last: bool) -> usize {
        Self::scan_text(&mut self.quick, &mut self.collector, &mut self.seen, text, place, last)
    }

    fn scan_text(
        quick: &mut Quick,
        collector: &mut Collector,
        seen: &mut Seen,
        text: &[u8],
        place: Place,
        last: bool,
    ) -> usize {
        let mut events = 0;
        let lines = collector.definition_lines;
        let Seen { damage, header, .. } = seen;
        let mut asides = Vec::new();
        let used = quick.scan(
            text,
            last,
            &mut |record| {
                events += u64::from(record.phase != Phase::Metadata);
                collector.push(record);
            },
            &mut |aside| match aside {
                Aside::Header(fields) => {
                    *header = true;
                    asides.extend(fields.into_iter().map(|(key, value)| (key.into_owned(), value)));
                }
                Aside::Pair { key, value, .. } if *header => asides.push((key.into_owned(), value)),
                Aside::Pair { at, len, .. } => {
                    damage.add(place.shifted(at as u64), What::BadLine, len as u64, "a value outside of any event");
                }
                Aside::Flaw { at, len, what, note } => {
                    damage.add(place.shifted(at as u64), what, len as u64, note);
                }
            },
        );
        asides.iter().for_each(|(key, value)| collector.aside(key, value));
        seen.events += events;
        seen.definitions += collector.definition_lines - lines;
        used
    }

    fn is_full(&self) -> bool {
        let rows = &self.collector.rows;
        rows.len() >= GROUP_ROWS || rows.rest.size() + rows.extra.size() >= GROUP_TEXT
    }

    fn hand_on_if_full(&mut self, task: u64) -> Result<()> {
        if self.is_full() { self.hand_on(task) } else { Ok(()) }
    }

    /// Hands on the rows of the collector.
    fn hand_on(&mut self, task: u64) -> Result<()> {
        if self.collector.rows.len() == 0 && self.collector.definitions.is_empty() {
            return Ok(());
        }
        let (group, columns, meta) = {
            let Some(mut state) = self.shared.turn_of(task) else { return Ok(()) };
            state.tables.merge(&mut self.collector, &mut self.maps);
            if self.collector.rows.len() == 0 {
                return Ok(());
            }
            let group = state.groups;
            state.groups += 1;
            drop(state);
            let (columns, meta, loose) = columns_of(&mut self.collector, &self.maps, self.wanted);
            if !loose.is_empty() {
                self.stitch(task, group, loose);
            }
            (group, columns, meta)
        };
        let done_with = self.sink.take(&mut self.state, group, columns, meta)?;
        self.collector.reuse(done_with);
        Ok(())
    }

    fn stitch(&self, task: u64, group: usize, loose: Loose) {
        let Some(mut state) = self.shared.turn_of(task) else { return };
        let state = &mut *state;
        let late = &mut state.late;
        state.stitching.spans.group(group, loose, &self.maps.processes, &mut |found| late.push(found));
    }

    /// Tells what was seen of a file.
    fn end_of_file(&mut self, task: u64) -> Result<()> {
        self.hand_on_if_full(task)?;
        let seen = std::mem::take(&mut self.seen);
        let Some(mut state) = self.shared.turn_of(task) else { return Ok(()) };
        let state = &mut *state;
        let info = &mut state.files[seen.file];
        info.dialect = seen.dialect.unwrap_or(info.dialect);
        info.events += seen.events;
        info.definitions += seen.definitions;
        info.damage.join(seen.damage);
        info.unreadable = info.unreadable.take().or(seen.unreadable);
        state.stitching.sequences.entry(seen.file).or_default().absorb(seen.sequences);
        Ok(())
    }

    fn end_of_task(&mut self, task: u64) -> Result<()> {
        self.hand_on(task)?;
        let Some(mut state) = self.shared.turn_of(task) else { return Ok(()) };
        state.turn += 1;
        drop(state);
        self.shared.turn.notify_all();
        Ok(())
    }
}

/// The nonce in the identity line that a member starts with.
fn image_of(text: &[u8]) -> String {
    let line = text.split(|byte| *byte == b'\n').find(|line| line.starts_with(b"{")).unwrap_or_default();
    let mut image = String::new();
    Quick::new(Reading::own()).scan(
        line,
        true,
        &mut |record| {
            if record.cat == weftline_format::identity::CATEGORY
                && let Some((_, value)) = fields(record.rest).find(|(key, _)| key == "nonce")
            {
                image = value.as_str().unwrap_or_default().to_owned();
            }
        },
        &mut |_| {},
    );
    image
}
