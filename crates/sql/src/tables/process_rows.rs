//! The tables `processes`, `execs`, `threads` and `hosts`.

use std::collections::{BTreeMap, HashMap, HashSet};

use datafusion::arrow::array::Array as _;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use weftline_analysis::group::process_labels;
use weftline_calls::Side;
use weftline_format::quick::fields;
use weftline_format::{Phase, Value};
use weftline_index::column::phase_code;
use weftline_index::{Column, Filter, Process, Request};

use super::external;
use super::gathered::{Cell, Sheet};
use super::usage::{Counter, Usage, all_but_metadata};
use super::vocabulary::{Vocabulary, host_text};

/// By process and thread.
type Threads = BTreeMap<(u32, i64), Usage>;

fn usage_of_threads(words: &Vocabulary) -> Result<Threads> {
    let counter = Counter::new(words);
    let mut columns = Counter::COLUMNS.to_vec();
    columns.extend([Column::Process, Column::Tid]);
    let request = Request::of(columns).with(all_but_metadata());
    let (states, _) = words
        .run
        .scan(&request, HashMap::new, |state: &mut HashMap<(u32, i64), Usage>, batch| {
            let (processes, tids) = (batch.ids(Column::Process), batch.ints(Column::Tid));
            for row in 0..batch.rows() {
                counter.event(state.entry((processes.value(row), tids.value(row))).or_default(), Side::All, batch, row);
            }
        })
        .map_err(external)?;
    let mut threads = Threads::new();
    for (thread, usage) in states.into_iter().flatten() {
        threads.entry(thread).or_default().join(&usage);
    }
    Ok(threads)
}

/// Names that metadata lines give to threads.
fn thread_names(words: &Vocabulary) -> Result<HashMap<(u32, i64), String>> {
    let mut filter = Filter::default().with_phases(&[phase_code(Phase::Metadata)]);
    filter.names = Some(std::sync::Arc::new(|name| name == "thread_name"));
    let request = Request::of([Column::Process, Column::Tid, Column::Rest]).with(filter);
    let mut names = HashMap::new();
    words
        .run
        .scan_in_order(&request, |batch| {
            let (processes, tids, rest) =
                (batch.ids(Column::Process), batch.ints(Column::Tid), batch.texts(Column::Rest));
            for row in (0..batch.rows()).filter(|row| rest.is_valid(*row)) {
                let name = fields(rest.value(row)).find(|(key, _)| key == "name");
                if let Some((_, Value::Str(name))) = name {
                    names.insert((processes.value(row), tids.value(row)), name);
                }
            }
        })
        .map_err(external)?;
    Ok(names)
}

/// Entries of the process table in the order of their host and pid.
fn in_order(words: &Vocabulary) -> Vec<u32> {
    let processes = &words.dictionary.processes;
    let mut order: Vec<u32> = (0..processes.len() as u32).collect();
    order.sort_by_key(|id| {
        let process = &processes[*id as usize];
        (&process.host, &process.hhash, &process.file, process.pid, process.start, &process.nonce)
    });
    order
}

/// The entries of each process, those of the host and of devices left out; processes in the order of their host and pid, entries in that of the trace.
fn by_process(words: &Vocabulary) -> Vec<(u32, Vec<u32>)> {
    let mut places: HashMap<u32, usize> = HashMap::new();
    let mut all: Vec<(u32, Vec<u32>)> = Vec::new();
    for id in in_order(words) {
        let Some(process) = words.identities[id as usize] else { continue };
        let place = *places.entry(process).or_insert_with(|| {
            all.push((process, Vec::new()));
            all.len() - 1
        });
        all[place].1.push(id);
    }
    all.iter_mut().for_each(|(_, entries)| entries.sort_unstable());
    all
}

fn of_entry(threads: &Threads, id: u32) -> impl Iterator<Item = (i64, &Usage)> {
    threads.range((id, i64::MIN)..=(id, i64::MAX)).map(|((_, tid), usage)| (*tid, usage))
}

/// The usage of several entries by thread.
fn of_process<'t>(threads: &'t Threads, entries: &'t [u32]) -> BTreeMap<i64, Usage> {
    let mut all: BTreeMap<i64, Usage> = BTreeMap::new();
    for (tid, usage) in entries.iter().flat_map(|id| of_entry(threads, *id)) {
        all.entry(tid).or_default().join(usage);
    }
    all
}

/// The common columns of the tables `processes` and `execs`.
fn description<'p>(process: &'p Process, command: &'p str) -> [Cell<'p>; 8] {
    [
        Cell::maybe(process.ppid),
        Cell::some(&process.name),
        Cell::some(&process.exe),
        Cell::some(command),
        Cell::some(&process.cwd),
        Cell::some(&process.nonce),
        Cell::some(&process.boot),
        process.start.map_or(Cell::Null, Cell::from),
    ]
}

pub(super) fn processes(words: &Vocabulary, mut sheet: Sheet) -> Result<RecordBatch> {
    let threads = usage_of_threads(words)?;
    let labels = process_labels(&words.dictionary);
    for (id, entries) in by_process(words) {
        // What a process executed last is what it was started for; before that it was its parent's copy.
        let known = entries.iter().rev().find(|id| !words.dictionary.process(**id).exe.is_empty());
        let process = words.dictionary.process(*known.unwrap_or(&id));
        let by_thread = of_process(&threads, &entries);
        let mut usage = Usage::default();
        by_thread.values().for_each(|more| usage.join(more));
        let rank = entries.iter().find_map(|id| words.dictionary.process(*id).rank);
        let execs = entries.iter().filter(|id| !words.dictionary.process(**id).nonce.is_empty()).count();
        let mut row = vec![
            Cell::Int(i64::from(id)),
            Cell::Int(process.pid),
            Cell::some(host_text(process).unwrap_or_default()),
            Cell::some(&process.hhash),
            Cell::some(&labels[id as usize]),
            Cell::maybe(rank),
        ];
        let command = process.command.join(" ");
        row.extend(description(process, &command));
        row.extend([Cell::Int(execs as i64), Cell::Int(by_thread.len() as i64)]);
        row.extend(usage.tail());
        sheet.add(&row)?;
    }
    sheet.finish()
}

pub(super) fn execs(words: &Vocabulary, mut sheet: Sheet) -> Result<RecordBatch> {
    let threads = usage_of_threads(words)?;
    for (id, entries) in by_process(words) {
        for entry in entries.iter().filter(|entry| !words.dictionary.process(**entry).nonce.is_empty()) {
            let process = words.dictionary.process(*entry);
            let mut usage = Usage::default();
            of_entry(&threads, *entry).for_each(|(_, more)| usage.join(more));
            let host = Cell::some(host_text(process).unwrap_or_default());
            let mut row = vec![Cell::Int(i64::from(id)), Cell::Int(process.pid), host];
            let command = process.command.join(" ");
            row.extend(description(process, &command));
            row.extend(usage.tail());
            sheet.add(&row)?;
        }
    }
    sheet.finish()
}

pub(super) fn threads(words: &Vocabulary, mut sheet: Sheet) -> Result<RecordBatch> {
    let (threads, names) = (usage_of_threads(words)?, thread_names(words)?);
    for (id, entries) in by_process(words) {
        let process = words.dictionary.process(id);
        for (tid, usage) in of_process(&threads, &entries) {
            let name = entries.iter().rev().find_map(|entry| names.get(&(*entry, tid)));
            let mut row = vec![
                Cell::Int(i64::from(id)),
                Cell::Int(process.pid),
                Cell::Int(tid),
                Cell::some(host_text(process).unwrap_or_default()),
                Cell::maybe(entries.iter().find_map(|id| words.dictionary.process(*id).rank)),
                name.map_or(Cell::Null, |name| Cell::some(name)),
            ];
            row.extend(usage.tail());
            sheet.add(&row)?;
        }
    }
    sheet.finish()
}

pub(super) fn hosts(words: &Vocabulary, mut sheet: Sheet) -> Result<RecordBatch> {
    let threads = usage_of_threads(words)?;
    #[derive(Default)]
    struct Host<'w> {
        hash: &'w str,
        processes: HashSet<u32>,
        threads: HashSet<(u32, i64)>,
        usage: Usage,
    }
    let mut hosts: BTreeMap<Option<&str>, Host<'_>> = BTreeMap::new();
    for id in in_order(words) {
        let process = words.dictionary.process(id);
        let host = hosts.entry(host_text(process)).or_default();
        host.hash = if host.hash.is_empty() { &process.hhash } else { host.hash };
        let identity = words.identities[id as usize];
        host.processes.extend(identity);
        for (tid, more) in of_entry(&threads, id) {
            host.threads.extend(identity.map(|process| (process, tid)));
            host.usage.join(more);
        }
    }
    for (name, host) in &hosts {
        let mut row = vec![
            Cell::some(name.unwrap_or_default()),
            Cell::some(host.hash),
            Cell::Int(host.processes.len() as i64),
            Cell::Int(host.threads.len() as i64),
        ];
        row.extend(host.usage.tail());
        sheet.add(&row)?;
    }
    sheet.finish()
}
