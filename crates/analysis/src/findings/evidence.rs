//! What the rules look at: sums per process, file and operation, lifetimes, and the parts of a training job (`roles`).
//!
//! One parallel fold over all events. Every sum is an integer and every interval keeps its ends, so that the result does not depend on
//! which thread saw which event.

use std::sync::{Mutex, PoisonError};

use arrow_array::Array as _;
use rustc_hash::FxHashMap;
use weftline_format::Phase;
use weftline_index::column::phase_code;
use weftline_index::{Batch, Column, Dictionary, Request, Run};

use super::calls::{Call, Meanings, Role};
use super::roles::{self, RoleTime, Roles};
use super::thresholds::{Config, Limit};

/// An operation as rules tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Op {
    Read,
    /// Below `small-reads.size`.
    SmallRead,
    Write,
    SmallWrite,
    Copy,
    StreamRead,
    StreamWrite,
    Flush,
    /// A stream was told to have no buffer, or one below a page.
    NoBuffer,
    Open,
    /// May make the file, which takes far longer.
    OpenCreate,
    OpenFailed,
    /// Opened so that every write waits for the disk.
    OpenSync,
    Close,
    StatPath,
    StatOpen,
    Seek,
    Sync,
    Metadata,
}

impl Op {
    pub(crate) const READS: &'static [Op] = &[Op::Read, Op::SmallRead, Op::StreamRead, Op::Copy];
    pub(crate) const WRITES: &'static [Op] = &[Op::Write, Op::SmallWrite, Op::StreamWrite, Op::Copy];
    pub(crate) const OPENS: &'static [Op] = &[Op::Open, Op::OpenCreate, Op::OpenFailed, Op::OpenSync];

    pub(crate) fn is_metadata(self) -> bool {
        Op::OPENS.contains(&self) || matches!(self, Op::Close | Op::StatPath | Op::StatOpen | Op::Seek | Op::Metadata)
    }
}

/// Calls, together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    pub calls: u64,
    pub bytes: u64,
    pub ns: u64,
    pub start: i64,
    pub end: i64,
}

impl Default for Tally {
    fn default() -> Self {
        Tally { calls: 0, bytes: 0, ns: 0, start: i64::MAX, end: i64::MIN }
    }
}

impl Tally {
    pub(crate) fn add(&mut self, other: &Tally) {
        self.calls += other.calls;
        self.bytes += other.bytes;
        self.ns += other.ns;
        self.start = self.start.min(other.start);
        self.end = self.end.max(other.end);
    }

    /// A part of it, for what only some of its calls did.
    pub(crate) fn part(&self, calls: u64, bytes: u64) -> Tally {
        let ns =
            if self.calls == 0 { 0 } else { (u128::from(self.ns) * u128::from(calls) / u128::from(self.calls)) as u64 };
        Tally { calls, bytes, ns, ..*self }
    }
}

/// From the first event to the end of the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Life {
    pub start: i64,
    pub end: i64,
    /// Whether it made calls on files.
    pub io: bool,
}

impl Life {
    const NONE: Life = Life { start: i64::MAX, end: i64::MIN, io: false };

    fn add(&mut self, start: i64, end: i64, io: bool) {
        self.start = self.start.min(start);
        self.end = self.end.max(end);
        self.io |= io;
    }

    pub(crate) fn ns(&self) -> u64 {
        self.end.saturating_sub(self.start).max(0) as u64
    }
}

type Sums = FxHashMap<(u32, u32, Op), Tally>;
/// Sums that a thread keeps to itself. There may be millions; to have all of them once per thread took most of a report's memory.
const LOCAL_SUMS: usize = 1 << 16;

fn add_sums(all: &mut Sums, more: impl IntoIterator<Item = ((u32, u32, Op), Tally)>) {
    more.into_iter().for_each(|(key, tally)| all.entry(key).or_default().add(&tally));
}

/// Calls on files by slice of the run, program and operation.
type Slices = FxHashMap<(u32, u32, Op), Tally>;

#[derive(Default)]
struct State {
    sums: Sums,
    threads: FxHashMap<(u32, i64), Life>,
    roles: roles::Seen,
    slices: Slices,
}

/// Everything.
pub(crate) struct Evidence {
    pub dictionary: std::sync::Arc<Dictionary>,
    pub meanings: Meanings,
    pub sums: Vec<((u32, u32, Op), Tally)>,
    /// By the process's id; nothing for those without an event that has a time.
    pub lives: Vec<Option<Life>>,
    /// Time that a process's threads had, at least its own.
    pub work_ns: Vec<u64>,
    pub roles: Roles,
    pub slices: Vec<((u32, u32, Op), Tally)>,
    /// Per process: a number for its program.
    pub programs: Vec<u32>,
    pub slice_ns: i64,
    pub wall_ns: u64,
}

/// What the fold needs to know.
struct How {
    columns: Columns,
    small: [u64; 2],
    origin: i64,
    slice_ns: i64,
    programs: Vec<u32>,
    /// Whether the ranges of a training job's parts are few enough to be kept.
    few_ranges: bool,
}

struct Columns {
    fd_ret: Column,
    size: Column,
    flags: Column,
    mode: Column,
}

/// Set by `O_SYNC` as well; the same on all Linux machines that Weftline runs on.
const O_DSYNC: i64 = 0o10000;
const O_CREAT: i64 = 0o100;
/// glibc's number of "no buffer".
const IONBF: i64 = 2;

fn operation(
    call: Call,
    size: Option<i64>,
    ret: Option<i64>,
    flags: i64,
    mode: Option<i64>,
    small: [u64; 2],
) -> Option<Op> {
    let moved = ret.unwrap_or(0).max(0) as u64;
    // What was asked for where it is known: the last piece of a file is not a small read.
    let asked = size.map_or(moved, |size| (size.max(0) as u64).max(moved));
    Some(match call {
        // The end of the file, or an error.
        Call::Read | Call::Write if moved == 0 => return None,
        Call::Read if asked < small[0] => Op::SmallRead,
        Call::Read => Op::Read,
        Call::Write if asked < small[1] => Op::SmallWrite,
        Call::Write => Op::Write,
        Call::Copy => Op::Copy,
        Call::StreamRead => Op::StreamRead,
        Call::StreamWrite => Op::StreamWrite,
        Call::Flush => Op::Flush,
        Call::Buffering if mode == Some(IONBF) || size.is_some_and(|size| (1..4096).contains(&size)) => Op::NoBuffer,
        Call::Buffering => return None,
        Call::Open if ret.is_some_and(|ret| ret < 0) => Op::OpenFailed,
        Call::Open if flags & O_DSYNC != 0 => Op::OpenSync,
        Call::Open if flags & O_CREAT != 0 => Op::OpenCreate,
        Call::Open => Op::Open,
        Call::Close => Op::Close,
        Call::StatPath => Op::StatPath,
        Call::StatOpen => Op::StatOpen,
        Call::Seek => Op::Seek,
        Call::Sync => Op::Sync,
        Call::Metadata => Op::Metadata,
    })
}

/// Numbers programs in the order of the processes.
fn programs(dictionary: &Dictionary) -> Vec<u32> {
    let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
    let mut number = |process: &weftline_index::Process| {
        let next = numbers.len() as u32;
        *numbers.entry(super::weigh::program(process)).or_insert(next)
    };
    dictionary.processes.iter().map(&mut number).collect()
}

fn integer(name: &str) -> Column {
    // The names are those of the format's own list; a wrong one would be found by the first test.
    Column::integer(name).unwrap_or(Column::Id)
}

impl Evidence {
    pub(crate) fn gather(run: &Run, config: &Config) -> weftline_index::Result<Evidence> {
        run.prepare()?;
        let (dictionary, times) = (run.dictionary(), run.times());
        let meanings = Meanings::new(&dictionary);
        let range = times.spans.or(times.all);
        let (origin, end) = range.unwrap_or((0, 0));
        let wall_ns = end.saturating_sub(origin).max(0) as u64;
        // At most about 200 slices, of a second at least.
        let slice_ns = (wall_ns / 200).max(1_000_000_000) as i64;
        let small = [config.count(Limit::SmallRead), config.count(Limit::SmallWrite)];
        let columns =
            Columns { fd_ret: integer("ret"), size: integer("size"), flags: integer("flags"), mode: integer("mode") };
        let request = Request::of([
            Column::Phase,
            Column::Ts,
            Column::Dur,
            Column::Name,
            Column::Cat,
            Column::Process,
            Column::Tid,
            Column::File,
            columns.fd_ret,
            columns.size,
            columns.flags,
            columns.mode,
        ]);
        let few_ranges = Roles::fit(run);
        let shared = Mutex::new(Sums::default());
        let how = How { columns, small, origin, slice_ns, programs: programs(&dictionary), few_ranges };
        let (states, _) = run.scan(&request, State::default, |state, batch| {
            state.take(batch, &meanings, &how);
            if state.sums.len() > LOCAL_SUMS {
                add_sums(&mut shared.lock().unwrap_or_else(PoisonError::into_inner), state.sums.drain());
            }
        })?;
        let sums = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut all = State { sums, ..State::default() };
        states.into_iter().for_each(|state| all.join(state));
        let mut lives: Vec<Option<Life>> = vec![None; dictionary.processes.len()];
        let mut threads = vec![0u64; lives.len()];
        for ((process, _), life) in &all.threads {
            let slot = lives[*process as usize].get_or_insert(Life::NONE);
            slot.add(life.start, life.end, life.io);
            if life.io {
                threads[*process as usize] += life.ns();
            }
        }
        let work_ns =
            lives.iter().zip(threads).map(|(life, threads)| life.map_or(0, |life| life.ns()).max(threads)).collect();
        let mut sums: Vec<_> = all.sums.into_iter().collect();
        sums.sort_unstable_by_key(|(key, _)| *key);
        let roles = Roles::of(all.roles, few_ranges, run, &meanings)?;
        let mut slices: Vec<_> = all.slices.into_iter().collect();
        slices.sort_unstable_by_key(|(key, _)| *key);
        Ok(Evidence {
            dictionary,
            meanings,
            sums,
            lives,
            work_ns,
            roles,
            slices,
            slice_ns,
            programs: how.programs,
            wall_ns,
        })
    }

    /// How long each operation takes on average in each program: its calls, together.
    pub(crate) fn usual(&self) -> FxHashMap<(u32, Op), Tally> {
        let mut usual: FxHashMap<(u32, Op), Tally> = FxHashMap::default();
        for ((process, _, op), tally) in &self.sums {
            usual.entry((self.programs[*process as usize], *op)).or_default().add(tally);
        }
        usual
    }

    /// Sums of some operations per process and file, in the order of their ids.
    pub(crate) fn per_file(&self, ops: &[Op]) -> Vec<(u32, u32, Tally)> {
        let mut out: Vec<(u32, u32, Tally)> = Vec::new();
        for ((process, file, op), tally) in &self.sums {
            if !ops.contains(op) {
                continue;
            }
            match out.last_mut() {
                Some((last, path, sum)) if (*last, *path) == (*process, *file) => sum.add(tally),
                _ => out.push((*process, *file, *tally)),
            }
        }
        out
    }

    /// Sums of some operations per process.
    pub(crate) fn per_process(&self, ops: &[Op]) -> Vec<(u32, Tally)> {
        let mut out: Vec<(u32, Tally)> = Vec::new();
        for (process, _, tally) in self.per_file(ops) {
            match out.last_mut() {
                Some((last, sum)) if *last == process => sum.add(&tally),
                _ => out.push((process, tally)),
            }
        }
        out
    }

    /// One operation of one process on one file.
    pub(crate) fn sum(&self, process: u32, file: u32, op: Op) -> Tally {
        let found = self.sums.binary_search_by_key(&(process, file, op), |(key, _)| *key);
        found.map_or_else(|_| Tally::default(), |place| self.sums[place].1)
    }

    /// A part of a process; nothing when it has no spans of it.
    pub(crate) fn role(&self, process: u32, role: Role) -> Option<&RoleTime> {
        self.roles.get(process, role)
    }

    /// Processes with events, by their ids.
    pub(crate) fn alive(&self) -> impl Iterator<Item = (u32, Life)> + '_ {
        self.lives.iter().enumerate().filter_map(|(id, life)| Some((id as u32, (*life)?)))
    }
}

impl State {
    fn take(&mut self, batch: &Batch, meanings: &Meanings, how: &How) {
        let columns = &how.columns;
        let (phases, ts, dur) = (batch.phases(), batch.ints(Column::Ts), batch.ints(Column::Dur));
        let (names, cats) = (batch.ids(Column::Name), batch.ids(Column::Cat));
        let (processes, files, tids) = (batch.ids(Column::Process), batch.ids(Column::File), batch.ints(Column::Tid));
        let (ret, size) = (batch.ints(columns.fd_ret), batch.ints(columns.size));
        let (flags, mode) = (batch.ints(columns.flags), batch.ints(columns.mode));
        let spans = [phase_code(Phase::Complete), phase_code(Phase::Begin)];
        let moments = [phase_code(Phase::Instant), phase_code(Phase::End)];
        let value = |column: &arrow_array::Int64Array, row: usize| column.is_valid(row).then(|| column.value(row));
        // Events of one thread follow each other; most rows find their thread without a look-up.
        let mut current: Option<((u32, i64), Life)> = None;
        for row in 0..batch.rows() {
            let phase = phases.value(row);
            let is_span = spans.contains(&phase);
            if !is_span && !moments.contains(&phase) || !ts.is_valid(row) {
                continue;
            }
            let start = ts.value(row);
            let length = if is_span { value(dur, row).unwrap_or(0).max(0) } else { 0 };
            let end = start.saturating_add(length);
            let (process, name, cat) = (processes.value(row), names.value(row), cats.value(row));
            let file = files.is_valid(row).then(|| files.value(row)).filter(|file| meanings.is_regular(*file));
            let call = if is_span { meanings.call(name, cat) } else { None };
            let thread = (process, tids.value(row));
            match &mut current {
                Some((key, life)) if *key == thread => life.add(start, end, call.is_some()),
                _ => {
                    let mut life = Life::NONE;
                    life.add(start, end, call.is_some());
                    self.keep_life(current.replace((thread, life)));
                }
            }
            let (Some(call), Some(file)) = (call, file) else {
                if is_span && let Some(role) = roles::role_of(meanings, name, cat, file) {
                    self.roles.add((process, role), start, end, how.few_ranges);
                }
                continue;
            };
            let result = value(ret, row);
            let flags = value(flags, row).unwrap_or(0);
            let Some(op) = operation(call, value(size, row), result, flags, value(mode, row), how.small) else {
                continue;
            };
            let moves = matches!(call, Call::Read | Call::Write | Call::Copy | Call::StreamRead | Call::StreamWrite);
            let bytes = if moves { result.unwrap_or(0).max(0) as u64 } else { 0 };
            let tally = Tally { calls: 1, bytes, ns: length as u64, start, end };
            self.sums.entry((process, file, op)).or_default().add(&tally);
            let slice = ((start - how.origin).max(0) / how.slice_ns) as u32;
            self.slices.entry((slice, how.programs[process as usize], op)).or_default().add(&tally);
        }
        self.keep_life(current);
    }

    fn keep_life(&mut self, found: Option<((u32, i64), Life)>) {
        if let Some((thread, life)) = found {
            self.threads.entry(thread).or_insert(Life::NONE).add(life.start, life.end, life.io);
        }
    }

    fn join(&mut self, other: State) {
        add_sums(&mut self.sums, other.sums);
        for (key, life) in other.threads {
            self.threads.entry(key).or_insert(Life::NONE).add(life.start, life.end, life.io);
        }
        self.roles.join(other.roles);
        other.slices.into_iter().for_each(|(key, tally)| self.slices.entry(key).or_default().add(&tally));
    }
}
