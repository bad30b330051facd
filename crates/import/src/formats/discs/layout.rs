//! The columns of a bpftrace file: found from its header and, since headers of the older scripts are wrong, from its rows.

use super::fields::{Words, integer};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Column {
    Stamp,
    Pid,
    Tid,
    Comm,
    Fd,
    Offset,
    Requested,
    Result,
    Latency,
    Queued,
    Address,
    Disk,
    Direction,
    Bytes,
    Sector,
    DonePid,
    DoneComm,
    Function,
    Mode,
    FullPath,
    FileName,
    /// Something that a header names and nobody knows; its place in [`Layout::others`].
    Other(usize),
}

use Column::*;

/// What a file traces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Open,
    Close,
    CreateDelete,
    Block,
    /// Reads and writes in one file, told apart by a column.
    ReadWrite,
}

impl Kind {
    /// By the file's name first: headers of reads and writes are alike.
    pub(super) fn of(name: &str, headers: &[Vec<u8>]) -> Option<Kind> {
        let name = name.to_ascii_lowercase();
        let word = |text: &str| name.contains(text);
        let columns: Vec<Vec<Vec<u8>>> = headers.iter().map(|header| header_words(header)).collect();
        let has = |wanted: &[u8]| columns.iter().flatten().any(|column| column == wanted);
        Some(if has(b"DISK") || (word("bio") && !has(b"FILENAME")) {
            Kind::Block
        } else if has(b"FUNCTION") || word("create_del") {
            Kind::CreateDelete
        } else if word("vfs") || word("readwrite") || (has(b"T") || has(b"TYPE") || has(b"RW")) {
            Kind::ReadWrite
        } else if word("write") {
            Kind::Write
        } else if word("read") {
            Kind::Read
        } else if word("open") || has(b"FULLPATH") {
            Kind::Open
        } else if word("close") || (has(b"FD") && !has(b"RET")) {
            Kind::Close
        } else if has(b"BUFFER") || has(b"REQ") {
            Kind::Write
        } else if has(b"RET") {
            Kind::Read
        } else {
            return None;
        })
    }

    /// Rows as the scripts print them.
    fn known(self) -> &'static [&'static [Column]] {
        match self {
            Kind::Read => &[
                &[Stamp, Pid, Comm, Result, Latency, FileName],
                &[Stamp, Pid, Offset, Result, Latency, FileName],
                &[Stamp, Pid, Comm, Offset, Result, Latency, FileName],
                &[Stamp, Pid, Comm, Offset, Result, FileName],
                &[Stamp, Pid, Tid, Comm, Offset, Result, Latency, FileName],
            ],
            Kind::Write => &[
                &[Stamp, Pid, Comm, Address, Offset, Requested, Result, Latency, FileName],
                &[Stamp, Pid, Offset, Result, Latency, FileName],
                &[Stamp, Pid, Comm, Offset, Result, Latency, FileName],
                &[Stamp, Pid, Comm, Result, Latency, FileName],
                &[Stamp, Pid, Tid, Comm, Latency, FileName],
            ],
            Kind::Open => &[
                &[Stamp, Pid, Comm, Latency, FullPath, FileName],
                &[Stamp, Pid, Tid, Comm, Latency, FullPath],
                &[Stamp, Pid, Comm, Fd, Latency, FullPath, FileName],
            ],
            Kind::Close => &[
                &[Stamp, Pid, Fd, Latency, FileName],
                &[Stamp, Pid, Comm, Latency, FileName],
                &[Stamp, Pid, Comm, Fd, Latency, FileName],
                &[Stamp, Pid, Tid, Comm, Latency, FileName],
            ],
            Kind::CreateDelete => &[
                &[Stamp, Pid, Function, Mode, Latency, FullPath],
                &[Stamp, Pid, Function, Latency, FileName, FullPath],
                &[Stamp, Pid, Function, Tid, Mode, Latency, FullPath],
            ],
            Kind::Block => &[
                &[Stamp, Pid, Comm, DonePid, DoneComm, Disk, Direction, Bytes, Latency],
                &[Stamp, Pid, Comm, Disk, Direction, Bytes, Sector, Latency],
                &[Stamp, Pid, Comm, Disk, Direction, Bytes, Sector, Queued, Latency],
                &[Stamp, Pid, Comm, Disk, Direction, Bytes, Queued, Latency],
                &[Stamp, Pid, Comm, Disk, Direction, Bytes, Latency],
            ],
            Kind::ReadWrite => &[
                &[Stamp, Pid, Comm, Direction, Bytes, Latency, FileName],
                &[Stamp, Pid, Tid, Comm, Direction, Bytes, Latency, FileName],
                &[Stamp, Pid, Direction, Bytes, Latency, FileName],
                &[Stamp, Pid, Comm, Direction, Offset, Bytes, Latency, FileName],
            ],
        }
    }
}

/// The words of a header without units: `RET (B)` is `RET`, `BUFFER ADDR` is `BUFFER`.
fn header_words(header: &[u8]) -> Vec<Vec<u8>> {
    let mut depth = 0_u32;
    let bare: Vec<u8> = header
        .iter()
        .map(|byte| match byte {
            b'(' => {
                depth += 1;
                b' '
            }
            b')' => {
                depth = depth.saturating_sub(1);
                b' '
            }
            _ if depth > 0 => b' ',
            byte => byte.to_ascii_uppercase(),
        })
        .collect();
    let mut words: Vec<Vec<u8>> = Words::new(&bare).take(64).map(<[u8]>::to_vec).collect();
    let address = words.windows(2).position(|pair| pair[0] == b"BUFFER" && pair[1] == b"ADDR");
    if let Some(place) = address {
        words.remove(place + 1);
    }
    words
}

fn named(word: &[u8], others: usize) -> Column {
    match word {
        b"TIMESTAMP" | b"TIME" | b"TS" => Stamp,
        b"PID" => Pid,
        b"TID" => Tid,
        b"COMM" | b"COMMAND" | b"PROCESS" => Comm,
        b"FD" => Fd,
        b"OFFSET" => Offset,
        b"REQ" => Requested,
        b"RET" | b"RETURN" => Result,
        b"LAT" | b"LATENCY" => Latency,
        b"QLAT" | b"QUEUE" | b"QUEUED" | b"Q_LAT" | b"QUEUELAT" => Queued,
        b"BUFFER" | b"ADDR" | b"ADDRESS" => Address,
        b"DISK" | b"DEV" | b"DEVICE" => Disk,
        b"T" | b"TYPE" | b"RW" | b"R/W" => Direction,
        b"BYTES" | b"SIZE" => Bytes,
        b"SECTOR" => Sector,
        b"DONEPID" => DonePid,
        b"DONECOMM" => DoneComm,
        b"FUNCTION" | b"FUNC" => Function,
        b"MODE" => Mode,
        b"FULLPATH" | b"PATH" => FullPath,
        b"FILENAME" | b"FILE" => FileName,
        _ => Other(others),
    }
}

/// The columns of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Layout {
    pub columns: Vec<Column>,
    /// What a header calls the columns that nobody knows.
    pub others: Vec<String>,
}

impl Layout {
    fn of_header(header: &[u8]) -> Layout {
        let mut layout = Layout::default();
        for word in header_words(header) {
            let column = named(&word, layout.others.len());
            // A name that comes again is of something else.
            let again = layout.columns.contains(&column);
            let column = if again { Other(layout.others.len()) } else { column };
            if let Other(_) = column {
                layout.others.push(String::from_utf8_lossy(&word).to_lowercase());
            }
            layout.columns.push(column);
        }
        layout
    }

    /// The layout that fits most rows, and of those the one that the header names best. None where none fits any.
    pub(super) fn choose(kind: Kind, header: &[u8], rows: &[Vec<u8>]) -> Option<Layout> {
        let told = Layout::of_header(header);
        let mut candidates = Vec::new();
        if told.columns.starts_with(&[Stamp, Pid]) {
            candidates.push(told.clone());
            // A header that says FD where the row has the program's name; one that leaves out the last column.
            let comm = if told.columns.contains(&Comm) { Fd } else { Comm };
            let renamed = told.columns.iter().map(|column| if *column == Fd { comm } else { *column });
            let renamed = Layout { columns: renamed.collect(), others: told.others.clone() };
            if !told.columns.iter().any(|column| matches!(column, FileName | FullPath)) {
                let mut longer = renamed.clone();
                longer.columns.push(FileName);
                candidates.push(longer);
            }
            candidates.push(renamed);
        }
        candidates.extend(kind.known().iter().map(|columns| Layout { columns: columns.to_vec(), others: Vec::new() }));
        let named = |layout: &Layout| {
            let here = layout.columns.iter().filter(|column| told.columns.contains(column)).count() as i64;
            let missing = told.columns.iter().filter(|column| !layout.columns.contains(column)).count() as i64;
            here * 2 - missing * 3
        };
        let scored = candidates.into_iter().map(|layout| {
            let fit = rows.iter().filter(|row| Row::parse(row, &layout).is_some()).count();
            (fit, named(&layout), layout)
        });
        // The first of equals.
        let best = scored.reduce(|best, next| if (next.0, next.1) > (best.0, best.1) { next } else { best });
        best.filter(|(fit, ..)| *fit > 0).map(|(.., layout)| layout)
    }
}

/// A row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Row<'a> {
    pub stamp: i64,
    pub pid: u32,
    pub tid: Option<u32>,
    pub comm: &'a [u8],
    pub fd: Option<i64>,
    pub offset: Option<i64>,
    pub requested: Option<i64>,
    pub result: Option<i64>,
    pub latency: Option<i64>,
    pub queued: Option<i64>,
    pub address: &'a [u8],
    pub disk: &'a [u8],
    pub direction: u8,
    pub bytes: Option<i64>,
    pub sector: Option<i64>,
    pub done_pid: Option<i64>,
    pub done_comm: &'a [u8],
    pub function: &'a [u8],
    pub mode: Option<i64>,
    pub full_path: Option<&'a [u8]>,
    pub file_name: Option<&'a [u8]>,
    pub others: Vec<(usize, &'a [u8])>,
}

/// The kernel's names of programs are this long at most.
const LONGEST_COMM: usize = 15;
/// Blanks at which two paths may be told apart.
const MOST_BLANKS: usize = 64;

impl<'a> Row<'a> {
    /// Takes a row apart; none where it is not one of this layout.
    pub(super) fn parse(line: &'a [u8], layout: &Layout) -> Option<Row<'a>> {
        let mut row = Row::default();
        row.fill(Words::new(line), &layout.columns)?;
        Some(row)
    }

    fn fill(&mut self, mut words: Words<'a>, columns: &[Column]) -> Option<()> {
        for (place, column) in columns.iter().enumerate() {
            let next = columns.get(place + 1).copied();
            match *column {
                FileName | FullPath if next.is_none_or(|next| matches!(next, FileName | FullPath)) => {
                    self.paths(words.rest(), *column, next);
                    return Some(());
                }
                Comm | DoneComm => return self.program(words, *column, &columns[place + 1..]),
                column => self.set(column, words.next()?)?,
            }
        }
        words.rest().is_empty().then_some(())
    }

    /// The name of a program, which may hold blanks: it is as short as the columns behind it allow.
    fn program(&mut self, mut words: Words<'a>, column: Column, behind: &[Column]) -> Option<()> {
        let from = words.rest();
        let others = self.others.len();
        loop {
            let rest = words.rest();
            let word = words.next()?;
            let end = from.len() - rest.len() + word.len();
            if end > LONGEST_COMM || integer(word).is_some() {
                return None;
            }
            match column {
                Comm => self.comm = &from[..end],
                _ => self.done_comm = &from[..end],
            }
            self.others.truncate(others);
            if self.fill(words.clone(), behind).is_some() {
                return Some(());
            }
        }
    }

    fn set(&mut self, column: Column, word: &'a [u8]) -> Option<()> {
        match column {
            Stamp => self.stamp = integer(word).filter(|stamp| *stamp > 0)?,
            Pid => self.pid = super::fields::id(word)?,
            Tid => self.tid = Some(super::fields::id(word)?),
            Fd => self.fd = Some(integer(word)?),
            Offset => self.offset = Some(integer(word)?),
            Requested => self.requested = Some(integer(word)?),
            Result => self.result = Some(integer(word)?),
            Latency => self.latency = Some(integer(word)?),
            Queued => self.queued = Some(integer(word)?),
            Bytes => self.bytes = Some(integer(word)?),
            Sector => self.sector = Some(integer(word)?),
            DonePid => self.done_pid = Some(integer(word)?),
            Mode => self.mode = Some(integer(word)?),
            Address => self.address = word.starts_with(b"0x").then_some(word)?,
            // Devices have letters in their names.
            Disk => {
                self.disk = word.first().is_some_and(|byte| !byte.is_ascii_digit() && *byte != b'-').then_some(word)?;
            }
            Direction => {
                let letters = word.len() <= 6 && word.iter().all(u8::is_ascii_uppercase);
                self.direction = (letters && b"RWDFN".contains(&word[0])).then_some(word[0])?;
            }
            Function => self.function = word.strip_suffix(b"()").unwrap_or(word),
            FullPath => self.full_path = Some(word),
            FileName => self.file_name = Some(word),
            Other(place) => self.others.push((place, word)),
            Comm | DoneComm => return None,
        }
        Some(())
    }

    /// One or two paths at the end of a row. They may hold blanks; the second may be missing.
    fn paths(&mut self, rest: &'a [u8], first: Column, second: Option<Column>) {
        let mut put = |column: Column, path: &'a [u8]| match column {
            FullPath => self.full_path = Some(path),
            _ => self.file_name = Some(path),
        };
        let Some(second) = second else { return put(first, rest) };
        let blanks = || memchr::memchr_iter(b' ', rest).take(MOST_BLANKS);
        let last_of = |path: &'a [u8]| path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
        let belongs = |at: usize| {
            let (one, other) = (rest[..at].trim_ascii(), rest[at..].trim_ascii());
            let (full, name) = if first == FullPath { (one, other) } else { (other, one) };
            last_of(full) == name
        };
        let Some(at) = blanks().find(|at| belongs(*at)).or_else(|| blanks().next()) else {
            // One path alone is what it looks like.
            return put(if memchr::memchr(b'/', rest).is_some() { FullPath } else { first }, rest);
        };
        put(first, rest[..at].trim_ascii());
        put(second, rest[at..].trim_ascii());
    }
}

#[cfg(test)]
mod tests;
