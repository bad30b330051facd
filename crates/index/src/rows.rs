//! Collects the columns of events: one collector per thread, with local ids until its rows are committed.

mod columns;
mod file_keys;
mod pairs;
mod process_table;

use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type};
use rustc_hash::FxHashMap;
use weftline_format::dialect::Reading;
use weftline_format::quick::{INTEGERS, Record, Unread};
use weftline_format::{Phase, Value};

use crate::column::{Column, mark, phase_code};
use crate::dictionary::{DefinitionKind, Strings};
use crate::part::Columns;

use columns::{Ids, Sparse, Texts, memory_of};
use file_keys::FileKeys;
pub(crate) use file_keys::{Meaning, key_of, meaning_of, open_key};
use pairs::Pairs;
pub(crate) use pairs::{Late, Loose, Stitcher};
pub(crate) use process_table::OfFile;
use process_table::ProcessTable;

/// Rows that are handed on at once: a row group.
pub(crate) const GROUP_ROWS: usize = 256 << 10;

/// Columns of a stretch of a trace, with the collector's own ids.
#[derive(Default)]
pub(crate) struct Rows {
    pub phase: Vec<u8>,
    pub ts: Sparse,
    pub dur: Sparse,
    pub name: Vec<u32>,
    pub cat: Vec<u32>,
    pub process: Vec<u32>,
    pub tid: Vec<i64>,
    pub file: Ids,
    pub second_file: Ids,
    pub id: Sparse,
    pub integers: [Sparse; INTEGERS.len()],
    pub rest: Texts,
    pub extra: Texts,
    pub marks: Vec<u16>,
}

impl Rows {
    pub(crate) fn len(&self) -> usize {
        self.phase.len()
    }

    /// No rows yet, but room for as many as these columns hold.
    fn in_memory_of(columns: Columns) -> Rows {
        let mut rows = Rows::default();
        for (column, array) in Column::all().zip(columns) {
            match column {
                Column::Phase => rows.phase = memory_of::<UInt8Type>(array),
                Column::Ts => rows.ts = Sparse::in_memory(memory_of::<Int64Type>(array)),
                Column::Dur => rows.dur = Sparse::in_memory(memory_of::<Int64Type>(array)),
                Column::Name => rows.name = memory_of::<UInt32Type>(array),
                Column::Cat => rows.cat = memory_of::<UInt32Type>(array),
                Column::Process => rows.process = memory_of::<UInt32Type>(array),
                Column::Tid => rows.tid = memory_of::<Int64Type>(array),
                Column::File => rows.file = Ids::in_memory(memory_of::<UInt32Type>(array)),
                Column::SecondFile => rows.second_file = Ids::in_memory(memory_of::<UInt32Type>(array)),
                Column::Id => rows.id = Sparse::in_memory(memory_of::<Int64Type>(array)),
                Column::Integer(place) => {
                    rows.integers[usize::from(place)] = Sparse::in_memory(memory_of::<Int64Type>(array));
                }
                Column::Marks => rows.marks = memory_of::<UInt16Type>(array),
                Column::Rest | Column::Extra => {}
            }
        }
        rows
    }
}

/// How the argument that names a second file begins.
const SECOND_FILE: &str = "\"fhash2\":\"";

/// A definition of a hash.
pub(crate) struct Definition {
    /// The number of the file that it stands in; nothing where it holds everywhere.
    pub file: Option<usize>,
    pub kind: DefinitionKind,
    pub hash: String,
    pub name: String,
}

/// Which columns are collected; the others stay empty. Phase, name and category are always there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub ts: bool,
    pub dur: bool,
    /// Process and thread; spans of two events need them to find their other half.
    pub process: bool,
    pub file: bool,
    pub second_file: bool,
    /// By their places in [`INTEGERS`].
    pub integers: u32,
    pub id: bool,
    pub rest: bool,
    pub extra: bool,
    /// The metadata of a row group, and the marks of its rows.
    pub meta: bool,
}

impl Wanted {
    pub(crate) const ALL: Wanted = Wanted {
        second_file: true,
        integers: u32::MAX,
        id: true,
        rest: true,
        extra: true,
        meta: true,
        ..Wanted::SURVEY
    };

    /// For a pass that only finds out what there is: times, and what is numbered.
    pub(crate) const SURVEY: Wanted = Wanted {
        ts: true,
        dur: true,
        process: true,
        file: true,
        second_file: false,
        integers: 0,
        id: false,
        rest: false,
        extra: false,
        meta: false,
    };

    /// What a question needs. `pairs`: there may be spans of two events.
    pub(crate) fn of(columns: &[Column], pairs: bool) -> Wanted {
        let has = |column| columns.contains(&column);
        let integers = columns.iter().fold(0, |bits, column| match column {
            Column::Integer(place) => bits | 1 << place,
            _ => bits,
        });
        Wanted {
            ts: has(Column::Ts),
            dur: has(Column::Dur),
            process: has(Column::Process) || has(Column::Tid) || pairs,
            file: has(Column::File),
            second_file: has(Column::SecondFile),
            integers,
            id: has(Column::Id),
            rest: has(Column::Rest),
            extra: has(Column::Extra),
            meta: has(Column::Marks),
        }
    }

    /// Whether a pass that collects this leaves nothing to be found out.
    pub(crate) fn is_survey(self) -> bool {
        self.ts && self.dur && self.process && self.file
    }

    /// What the scanner need not work out.
    pub(crate) fn unread(self) -> Unread {
        let unread = Unread::arguments(!self.integers);
        // Halves of spans find each other by process and thread, or by their id.
        match (self.process, self.id) {
            (true, _) => unread,
            (false, true) => unread.and_process(),
            (false, false) => unread.and_process().and_id(),
        }
    }

    /// Whether anybody will ask what a hash means.
    fn needs_definitions(self) -> bool {
        self.process || self.file || self.second_file || self.rest
    }
}

/// Collects rows, and what they refer to.
pub(crate) struct Collector {
    wanted: Wanted,
    pub rows: Rows,
    pub names: Strings,
    pub cats: Strings,
    /// Hashes of files, with what they mean where they stand.
    pub files: FileKeys,
    pub process_table: ProcessTable,
    /// Definitions that were not seen before by this collector; taken when rows are handed on.
    pub definitions: Vec<Definition>,
    defined: [FxHashMap<String, String>; 3],
    pairs: Pairs,
    reading_marks: u16,
    /// Lines that defined hashes, which are no rows.
    pub definition_lines: u64,
}

impl Collector {
    pub(crate) fn new(wanted: Wanted) -> Collector {
        Collector {
            wanted,
            rows: Rows::default(),
            names: Strings::default(),
            cats: Strings::default(),
            files: FileKeys::default(),
            process_table: ProcessTable::default(),
            definitions: Vec::new(),
            defined: Default::default(),
            pairs: Pairs::default(),
            reading_marks: 0,
            definition_lines: 0,
        }
    }

    /// Another file begins, or a stretch of one: what its lines do not say is not to be taken from what was read before.
    pub(crate) fn begin_file(&mut self, number: usize, name: &str) {
        self.process_table.begin_file(name);
        self.files.begin(number);
        self.pairs.begin_file(number);
    }

    /// Facts about the whole file, from its header or from the fields after its list of events.
    pub(crate) fn aside(&mut self, key: &str, value: &Value) {
        if key == "distributedInfo" {
            self.process_table.rank_of_file(value);
        }
    }

    /// How the lines that follow are read.
    pub(crate) fn set_reading(&mut self, reading: Reading) {
        let unit = match reading.unit_ns {
            1 => 0,
            1_000 => 1,
            1_000_000 => 2,
            _ => 3,
        };
        self.reading_marks = unit << mark::UNIT | if reading.dialect.is_own() { mark::OWN } else { 0 };
        self.files.set_own(reading.dialect.is_own());
    }

    /// Takes up an event.
    pub(crate) fn push(&mut self, record: &Record<'_>) {
        if record.phase == Phase::Metadata && self.define(record) {
            return;
        }
        let row = self.rows.len();
        let wanted = self.wanted;
        let process = if wanted.process { self.process_table.of(record) } else { 0 };
        let rows = &mut self.rows;
        rows.phase.push(phase_code(record.phase));
        let name = self.names.intern(record.name);
        rows.name.push(name);
        let cat = self.cats.intern(record.cat);
        rows.cat.push(cat);
        if wanted.process {
            rows.process.push(process);
            rows.tid.push(record.tid);
        }
        if let Some(ts) = record.start_ns.filter(|_| wanted.ts) {
            rows.ts.set(row, ts);
        }
        if let Some(dur) = record.dur_ns.filter(|_| wanted.dur) {
            rows.dur.set(row, dur);
        }
        if let Some(id) = record.id.filter(|_| wanted.id) {
            rows.id.set(row, id);
        }
        if let Some(hash) = record.fhash.filter(|_| wanted.file) {
            rows.file.set(row, self.files.key(hash));
        }
        // A caller that needs files needs all of them.
        if (wanted.file || wanted.second_file) && record.rest.contains(SECOND_FILE) {
            self.second_file(record, row);
        }
        let rows = &mut self.rows;
        let mut present = record.present & wanted.integers;
        while present != 0 {
            let place = present.trailing_zeros() as usize;
            present &= present - 1;
            rows.integers[place].set(row, record.integers[place]);
        }
        if wanted.rest {
            rows.rest.set(row, record.rest);
        }
        if wanted.extra {
            rows.extra.set(row, record.extra);
        }
        if wanted.meta {
            rows.marks.push(self.reading_marks | marks_of(record));
        }
        match record.phase {
            Phase::Complete | Phase::Counter | Phase::Aggregated | Phase::Instant => {}
            _ if !wanted.process => {}
            Phase::Metadata => self.process_table.learn(process, record),
            _ => self.pair(record, row, process, cat),
        }
        // Old DFTracer traces name files in full with every event.
        if wanted.file && record.fhash.is_none() && record.rest.contains("\"fname\":\"") {
            self.file_by_name(record, row);
        }
    }

    /// It stays among the other arguments, from which lines are made again.
    fn second_file(&mut self, record: &Record<'_>, row: usize) {
        let found = weftline_format::quick::fields(record.rest).find(|(key, _)| key == "fhash2");
        if let Some((_, Value::Str(hash))) = found {
            let id = self.files.key(&hash);
            if self.wanted.second_file {
                self.rows.second_file.set(row, id);
            }
        }
    }

    fn file_by_name(&mut self, record: &Record<'_>, row: usize) {
        let name = weftline_format::quick::fields(record.rest).find(|(key, _)| key == "fname");
        if let Some((_, Value::Str(path))) = name {
            // No hash looks like this.
            let hash = format!("={path}");
            self.rows.file.set(row, self.files.everywhere(&hash));
            self.note_definition(None, DefinitionKind::Path, hash, path);
        }
    }

    fn pair(&mut self, record: &Record<'_>, row: usize, process: u32, cat: u32) {
        let Some(ts) = record.start_ns else { return };
        match record.phase {
            Phase::Begin => self.pairs.begin((process, record.tid), row, ts),
            Phase::End => {
                if let Some((start, dur)) = self.pairs.end((process, record.tid), ts) {
                    self.rows.dur.set(start, dur);
                }
            }
            Phase::AsyncBegin | Phase::AsyncEnd => {
                let (cat, id) = (self.cats.get(cat), async_id(record));
                if record.phase == Phase::AsyncBegin {
                    self.pairs.async_begin(cat, id, row, ts);
                } else if let Some((start, dur)) = self.pairs.async_end(cat, id, ts) {
                    self.rows.dur.set(start, dur);
                }
            }
            _ => {}
        }
    }

    /// Takes up the definition of a hash, if the event is one.
    fn define(&mut self, record: &Record<'_>) -> bool {
        let kind = match record.name {
            "FH" => DefinitionKind::Path,
            "HH" => DefinitionKind::Host,
            "SH" => DefinitionKind::Text,
            _ => return false,
        };
        let (mut hash, mut name) = (None, None);
        for (key, value) in weftline_format::quick::fields(record.rest) {
            let text = match value {
                Value::Str(text) | Value::Json(text) => text,
                Value::Int(number) => number.to_string(),
                Value::UInt(number) => number.to_string(),
                _ => continue,
            };
            match &*key {
                "value" => hash = Some(text),
                "name" => name = Some(text),
                _ => {}
            }
        }
        let (Some(hash), Some(name)) = (hash, name) else { return false };
        self.definition_lines += 1;
        if self.wanted.needs_definitions() {
            let file = if kind == DefinitionKind::Path { self.files.define(&hash, &name) } else { None };
            self.note_definition(file, kind, hash, name);
        }
        true
    }

    fn note_definition(&mut self, file: Option<usize>, kind: DefinitionKind, hash: String, name: String) {
        let known = &mut self.defined[kind as usize];
        if file.is_some() || known.get(&hash).is_none_or(|known| *known != name) {
            known.insert(hash.clone(), name.clone());
            self.definitions.push(Definition { file, kind, hash, name });
        }
    }

    /// Reuses the memory of columns that are no longer needed, for the next rows: fresh memory costs more than filling it.
    pub(crate) fn reuse(&mut self, columns: Columns) {
        if self.rows.len() == 0 {
            self.rows = Rows::in_memory_of(columns);
        }
    }

    /// Forgets the rows so far; what they refer to stays known.
    pub(crate) fn discard(&mut self) {
        self.rows = Rows::default();
        self.pairs.take();
    }

    /// The rows so far, and the spans among them whose other end is elsewhere. The collector goes on empty.
    pub(crate) fn take(&mut self) -> (Rows, Loose) {
        (std::mem::take(&mut self.rows), self.pairs.take())
    }
}

/// The meaning of a row's marks.
fn marks_of(record: &Record<'_>) -> u16 {
    let mut marks = u16::from(record.form.bits()) << mark::FORM | if record.has_args { mark::ARGS } else { 0 };
    if record.fhash_is_number {
        marks |= mark::FILE_NUMBER;
    }
    if record.hhash.is_some() {
        marks |= if record.hhash_is_number { mark::HOST | mark::HOST_NUMBER } else { mark::HOST };
    }
    marks
}

/// What joins the halves of an asynchronous span, besides their category: id and scope.
fn async_id(record: &Record<'_>) -> String {
    let mut id = record.id.map(|id| id.to_string());
    let mut scope = String::new();
    for (key, value) in weftline_format::quick::fields(record.extra) {
        let text = match value {
            Value::Str(text) => text,
            Value::Int(number) => number.to_string(),
            other => format!("{other:?}"),
        };
        match &*key {
            "id" => id = Some(text),
            "id2" => id = id.or(Some(text)),
            "scope" => scope = text,
            _ => {}
        }
    }
    format!("{}\n{scope}", id.unwrap_or_default())
}
