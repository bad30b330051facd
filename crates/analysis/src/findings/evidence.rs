//! What the rules look at: sums per process, file and operation (`tally`), times of threads (`times`), and the parts of a training job (`roles`).
//!
//! [`Gathering`] is a part of the one pass over the events that a report makes (`crate::pass`). Every sum is an integer and every interval keeps its
//! ends, so that the result does not depend on which thread saw which event; what depends on order goes to `sequences`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::Array as _;
use rustc_hash::{FxHashMap, FxHashSet};
use serde::{Deserialize, Serialize};
use weftline_calls::{Activity, Flow};
use weftline_format::Phase;
use weftline_index::column::phase_code;
use weftline_index::{Batch, Column, Dictionary, Filter, Request, Run, Shard};

use super::calls::{NameTable, Role};
use super::gathered::Gathered;
use super::roles::{self, RoleTime, Roles};
use super::rules::{random_access, small_transfers, unaligned_io};
use super::sequences::{FOLLOWED, SEEK_END, STREAMS, Sequencer, Sequences, Step};
use super::tally::{LOCAL_SUMS, Sums, Tallies, add_sums, operation};
pub(crate) use super::tally::{Op, Tally};
use super::thresholds::Config;
use super::times::{Family, Life, Threads, Waits};
use super::training::{self, StepSpan, Training};
use crate::breakdown::Breakdown;
use crate::summary::{Ranges, SPANS_AT_ONCE};
use crate::{coverage, program};

/// What one thread has gathered.
#[derive(Default)]
pub(crate) struct State {
    sums: Tallies,
    threads: Threads,
    waits: Waits,
    /// Spans of category `compute`, and whole steps of loops that have none.
    computing: training::Steps,
    stepping: training::Steps,
    marks: training::Marks,
    roles: roles::Seen,
    /// Calls on files by slice of the run, program and operation.
    slices: Tallies,
    /// Of the row group that is being read: what must be followed in order.
    steps: Vec<Step>,
}

/// Everything.
pub(crate) struct Evidence {
    pub dictionary: Arc<Dictionary>,
    pub name_table: NameTable,
    pub sums: Vec<((u32, u32, Op), Tally)>,
    /// By the process's id; nothing for those without an event that has a time.
    pub lives: Vec<Option<Life>>,
    /// The processes behind the ids, and where their wall time went.
    pub family: Family,
    pub breakdown: Breakdown,
    pub waits: Waits,
    pub training: Option<Training>,
    pub roles: Roles,
    pub slices: Vec<((u32, u32, Op), Tally)>,
    /// Per process: the first one that runs its program.
    pub programs: Vec<u32>,
    pub slice_ns: i64,
    pub wall_ns: u64,
    /// Only some of the events were looked at, whatever their time.
    pub partial: bool,
}

/// What the fold needs to know.
struct How {
    small: [u64; 2],
    origin: i64,
    slice_ns: i64,
    programs: Vec<u32>,
    /// Only this part of the time counts.
    window: (i64, i64),
}

/// Whether a filter leaves out events for anything but their time.
fn is_partial(filter: &Filter) -> bool {
    let Filter { from_ns: _, to_ns: _, phases, names, cats, files, processes, rows } = filter;
    let of_names = names.is_some() || cats.is_some() || files.is_some();
    of_names || phases.is_some() || processes.is_some() || rows.is_some()
}

/// Per process: the first one that runs the same program.
fn programs(dictionary: &Dictionary) -> Vec<u32> {
    let mut firsts: FxHashMap<String, u32> = FxHashMap::default();
    let first = |(process, id): (&weftline_index::Process, u32)| {
        *firsts.entry(program::label(&process.command, &process.exe, &process.name)).or_insert(id)
    };
    dictionary.processes.iter().zip(0..).map(first).collect()
}

/// Whether an entry is a process of the run, or a device of it.
fn takes_part(dictionary: &Dictionary, identities: &[Option<u32>], id: u32) -> bool {
    identities[id as usize].is_some() || dictionary.process(id).is_host_or_device()
}

/// Lives by entry. What the kernel reported of a process that recorded itself is no life beside those of its execs: nobody knows the program of that entry.
fn lives(dictionary: &Dictionary, identities: &[Option<u32>], threads: &Threads) -> Vec<Option<Life>> {
    let is_exec = |id: usize| !dictionary.processes[id].nonce.is_empty();
    let recorded: FxHashSet<u32> =
        identities.iter().enumerate().filter(|(id, _)| is_exec(*id)).filter_map(|(_, identity)| *identity).collect();
    let mut lives: Vec<Option<Life>> = vec![None; dictionary.processes.len()];
    for ((id, _), life) in threads {
        let place = *id as usize;
        if is_exec(place) || identities[place].is_none_or(|process| !recorded.contains(&process)) {
            lives[place].get_or_insert_default().join(life);
        }
    }
    lives
}

/// What is known before events are read; it depends on the run, the question and the limits alone.
pub(crate) struct Setting {
    dictionary: Arc<Dictionary>,
    pub(super) name_table: NameTable,
    how: How,
    wall_ns: u64,
    pub(super) filter: Filter,
}

/// What of it all who gather shards of one run must agree on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Agreed {
    small: [u64; 2],
    streams: u64,
    gap: u64,
    block: u64,
    origin: i64,
    slice_ns: i64,
}

/// The findings' part of the pass over the events: what it needs of every batch, and what it makes of it.
pub(crate) struct Gathering<'s> {
    setting: &'s Setting,
    /// Spans of a training job's parts whose ranges are kept, at most and so far.
    most: u64,
    kept: AtomicU64,
    shared: Mutex<Sums>,
    sequencer: Sequencer,
}

impl Setting {
    /// For the events of a prepared run that pass a filter.
    pub(crate) fn new(run: &Run, config: &Config, filter: Filter) -> Setting {
        let (dictionary, times) = (run.dictionary(), run.times());
        let name_table = NameTable::new(&dictionary);
        let (origin, end) = times.spans.or(times.all).unwrap_or((0, 0));
        let first = filter.from_ns.map_or(origin, |from| from.max(origin));
        let last = filter.to_ns.map_or(end, |to| to.min(end));
        let wall_ns = last.saturating_sub(first).max(0) as u64;
        let how = How {
            small: [config.count(small_transfers::READ_SIZE), config.count(small_transfers::WRITE_SIZE)],
            origin: first,
            // At most about 200 slices, of a second at least.
            slice_ns: (wall_ns / 200).max(1_000_000_000) as i64,
            programs: programs(&dictionary),
            window: (filter.from_ns.unwrap_or(i64::MIN), filter.to_ns.unwrap_or(i64::MAX)),
        };
        Setting { dictionary, name_table, how, wall_ns, filter }
    }

    pub(crate) fn agreed(&self, config: &Config) -> Agreed {
        Agreed {
            small: self.how.small,
            streams: config.count(STREAMS),
            gap: config.count(random_access::GAP),
            block: config.count(unaligned_io::BLOCK),
            origin: self.how.origin,
            slice_ns: self.how.slice_ns,
        }
    }

    /// Gathers a whole run in a pass of its own.
    pub(crate) fn alone(&self, run: &Run, config: &Config) -> weftline_index::Result<Gathered> {
        let (shard, ranges) = (Shard::whole(), Ranges::of(run, &Shard::whole(), SPANS_AT_ONCE));
        let gathering = Gathering::new(self, config, SPANS_AT_ONCE);
        let (states, _) = run.scan_groups(
            &Request::of(Gathering::COLUMNS).with(self.filter.clone()),
            State::default,
            |state, batch| gathering.take(state, batch),
            |state, group| gathering.end_of_group(state, group),
        )?;
        gathering.finish(states, run, &shard, &ranges)
    }

    /// What the rules look at, when all shards are together. `gathered` has the ids of the dictionary.
    pub(crate) fn conclude(self, run: &Run, mut gathered: Gathered) -> (Evidence, Sequences) {
        let Setting { dictionary, name_table, how, wall_ns, filter } = self;
        let identities = dictionary.identities();
        gathered.threads.retain(|(id, _), _| takes_part(&dictionary, &identities, *id));
        let lives = lives(&dictionary, &identities, &gathered.threads);
        let marks = gathered.marks.settled();
        let mut sums: Vec<_> = gathered.sums.into_iter().collect();
        sums.sort_unstable_by_key(|(key, _)| *key);
        let roles = Roles::of(gathered.roles);
        let records: Vec<_> = coverage::records(run).into_iter().flatten().collect();
        let family = Family::of(&dictionary, &gathered.threads, &roles, &records, how.window);
        let breakdown = Breakdown::of(&family.processes);
        // The first process of a program may have had another number elsewhere.
        let first = |((slice, program, op), tally)| ((slice, how.programs[program as usize], op), tally);
        let mut slices: Vec<_> = gathered.slices.into_iter().map(first).collect();
        slices.sort_unstable_by_key(|(key, _)| *key);
        slices.dedup_by(|(key, tally), (before, sum): &mut ((u32, u32, Op), Tally)| {
            let same = key == before;
            if same {
                sum.merge(tally);
            }
            same
        });
        let evidence = Evidence {
            dictionary,
            name_table,
            sums,
            lives,
            family,
            breakdown,
            waits: gathered.waits,
            training: Training::of(gathered.computing, &marks).or_else(|| Training::of(gathered.stepping, &marks)),
            roles,
            slices,
            slice_ns: how.slice_ns,
            programs: how.programs,
            wall_ns,
            partial: is_partial(&filter),
        };
        (evidence, gathered.sequences)
    }
}

impl<'s> Gathering<'s> {
    /// The columns that it looks at.
    pub(crate) const COLUMNS: [Column; 17] = {
        use Column as C;
        [
            C::Phase,
            C::Ts,
            C::Dur,
            C::Name,
            C::Cat,
            C::Process,
            C::Tid,
            C::File,
            C::RET,
            C::SIZE,
            C::FLAGS,
            C::MODE,
            C::FD,
            C::OFFSET,
            C::WHENCE,
            C::EPOCH,
            C::STEP,
        ]
    };

    /// `most`: spans whose ranges are kept at once.
    pub(crate) fn new(setting: &'s Setting, config: &Config, most: u64) -> Gathering<'s> {
        let (shared, sequencer) = (Mutex::default(), Sequencer::new(config));
        Gathering { setting, most, kept: AtomicU64::new(0), shared, sequencer }
    }

    /// Takes up a batch.
    pub(crate) fn take(&self, state: &mut State, batch: &Batch) {
        let (keep, before) = (self.kept.load(Ordering::Relaxed) <= self.most, state.roles.kept);
        state.take(batch, &self.setting.name_table, &self.setting.how, keep);
        self.kept.fetch_add(state.roles.kept - before, Ordering::Relaxed);
        if state.sums.all.len() > LOCAL_SUMS {
            add_sums(&mut self.shared.lock().unwrap_or_else(PoisonError::into_inner), state.sums.drain());
        }
    }

    /// A row group is at its end.
    pub(crate) fn end_of_group(&self, state: &mut State, group: usize) {
        state.steps = self.sequencer.submit(group, std::mem::take(&mut state.steps));
    }

    /// What all threads have gathered of a shard, together.
    pub(crate) fn finish(
        self,
        states: Vec<State>,
        run: &Run,
        shard: &Shard,
        ranges: &Ranges,
    ) -> weftline_index::Result<Gathered> {
        let Gathering { setting, most, shared, sequencer, .. } = self;
        let mut all =
            Gathered { sums: shared.into_inner().unwrap_or_else(PoisonError::into_inner), ..Gathered::default() };
        for mut state in states {
            add_sums(&mut all.sums, state.sums.drain());
            add_sums(&mut all.slices, state.slices.drain());
            state.threads.into_iter().for_each(|(key, life)| all.threads.entry(key).or_default().join(&life));
            all.waits.join(state.waits);
            all.computing.join(state.computing);
            all.stepping.join(state.stepping);
            all.marks.join(state.marks);
            all.roles.join(state.roles);
        }
        all.sequences = sequencer.finish();
        if all.roles.has_given_up() {
            let spans = roles::Spans { run, shard, filter: &setting.filter, name_table: &setting.name_table };
            all.roles.sum_up(&spans, most, ranges.cut.as_deref())?;
        }
        Ok(all)
    }
}

impl Evidence {
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
    fn take(&mut self, batch: &Batch, name_table: &NameTable, how: &How, keep: bool) {
        let (phases, ts, dur) = (batch.phases(), batch.ints(Column::Ts), batch.ints(Column::Dur));
        let (names, cats) = (batch.ids(Column::Name), batch.ids(Column::Cat));
        let (processes, files, tids) = (batch.ids(Column::Process), batch.ids(Column::File), batch.ints(Column::Tid));
        let (ret, size) = (batch.ints(Column::RET), batch.ints(Column::SIZE));
        let (flags, mode) = (batch.ints(Column::FLAGS), batch.ints(Column::MODE));
        let (epoch, step) = (batch.ints(Column::EPOCH), batch.ints(Column::STEP));
        let (fd, offset, whence) = (batch.ints(Column::FD), batch.ints(Column::OFFSET), batch.ints(Column::WHENCE));
        let complete = phase_code(Phase::Complete);
        let spans = batch.spans();
        let instants = [phase_code(Phase::Instant), phase_code(Phase::End)];
        let value = |column: &arrow_array::Int64Array, row: usize| column.is_valid(row).then(|| column.value(row));
        // Events of one thread follow each other; most rows find their thread without a look-up.
        let mut current: Option<((u32, i64), Life)> = None;
        for row in 0..batch.rows() {
            let phase = phases.value(row);
            let is_span = spans.has(row);
            if !is_span && !instants.contains(&phase) || !ts.is_valid(row) {
                continue;
            }
            let length = if is_span { value(dur, row).unwrap_or(0).max(0) } else { 0 };
            // What began before the window or ends behind it counts as far as it lies in it.
            let end = ts.value(row).saturating_add(length).min(how.window.1);
            let start = ts.value(row).max(how.window.0).min(end);
            let length = end.saturating_sub(start);
            let (process, name, cat) = (processes.value(row), names.value(row), cats.value(row));
            let any_file = files.is_valid(row).then(|| files.value(row));
            let file = any_file.filter(|file| name_table.has_content(*file));
            let call = if is_span { name_table.call(name, cat) } else { None };
            let thread = (process, tids.value(row));
            if current.as_ref().is_none_or(|(key, _)| *key != thread) {
                self.keep_life(current.replace((thread, Life::default())));
            }
            let Some((_, life)) = &mut current else { continue };
            life.cover(start, end);
            let result = value(ret, row);
            if is_span && let Some(activity) = name_table.activity(name, cat, any_file) {
                life.sums.add(activity, length as u64);
                if activity.is_waiting() {
                    self.wait(process, activity, any_file, result, length as u64);
                }
            }
            let (Some(call), Some(file)) = (call, file) else {
                if is_span && let Some(role) = roles::role_of(name_table, name, cat, file) {
                    life.runs_the_loop |= matches!(role, Role::Compute | Role::Fetch | Role::Step | Role::Checkpoint);
                    self.roles.add((process, role), start, end, keep);
                    match role {
                        Role::Evaluate => self.marks.add_evaluation(process, start, end),
                        Role::Epoch => self.marks.add_epoch(process, start),
                        _ => {}
                    }
                    if matches!(role, Role::Compute | Role::Step) {
                        let (epoch, step) = (value(epoch, row), value(step, row));
                        let span = StepSpan { process, start, end, epoch, step };
                        let kept = if role == Role::Compute { &mut self.computing } else { &mut self.stepping };
                        kept.add(span);
                    }
                } else if let (Some(call), Some(pipe)) = (call, any_file)
                    && call.flow().writes()
                {
                    self.waits.wrote(pipe, process, result.unwrap_or(0).max(0) as u64);
                }
                continue;
            };
            if phase == complete && FOLLOWED.contains(&call) && !name_table.is_on_stream(name) {
                self.steps.push(Step {
                    call,
                    process,
                    file,
                    tid: tids.value(row),
                    fd: value(fd, row).unwrap_or(-1),
                    result: result.unwrap_or(0),
                    offset: value(offset, row),
                    from_end: value(whence, row) == Some(SEEK_END),
                    ns: length as u64,
                });
            }
            let flags = value(flags, row).unwrap_or(0);
            let Some(op) = operation(call, value(size, row), result, flags, value(mode, row), how.small) else {
                continue;
            };
            let bytes = if call.flow() != Flow::None { result.unwrap_or(0).max(0) as u64 } else { 0 };
            let tally = Tally { calls: 1, bytes, ns: length as u64, start, end };
            self.sums.add((process, file, op), &tally);
            let slice = ((start - how.origin).max(0) / how.slice_ns) as u32;
            self.slices.add((slice, how.programs[process as usize], op), &tally);
        }
        self.keep_life(current);
    }

    fn keep_life(&mut self, found: Option<((u32, i64), Life)>) {
        if let Some((thread, life)) = found {
            self.threads.entry(thread).or_default().join(&life);
        }
    }

    /// Takes up a call that waited.
    fn wait(&mut self, process: u32, activity: Activity, file: Option<u32>, result: Option<i64>, ns: u64) {
        let whom = match activity {
            Activity::Child => result.filter(|pid| *pid > 0).unwrap_or(-1),
            _ => file.map_or(-1, i64::from),
        };
        self.waits.add((process, activity, whom), ns);
    }
}
