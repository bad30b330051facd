//! The tables `processes`, `threads` and `hosts`.

use std::collections::{BTreeMap, HashMap};

use datafusion::arrow::array::Array as _;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use weftline_format::quick::members;
use weftline_format::{Phase, Value};
use weftline_index::column::phase_code;
use weftline_index::{Column, Filter, Request};

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
            let (people, tids) = (batch.ids(Column::Process), batch.ints(Column::Tid));
            for row in 0..batch.rows() {
                counter.event(state.entry((people.value(row), tids.value(row))).or_default(), batch, row);
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
            let (people, tids, rest) = (batch.ids(Column::Process), batch.ints(Column::Tid), batch.texts(Column::Rest));
            for row in (0..batch.rows()).filter(|row| rest.is_valid(*row)) {
                let name = members(rest.value(row)).find(|(key, _)| key == "name");
                if let Some((_, Value::Str(name))) = name {
                    names.insert((people.value(row), tids.value(row)), name);
                }
            }
        })
        .map_err(external)?;
    Ok(names)
}

/// Processes in the order of their host and pid.
fn in_order(words: &Vocabulary) -> Vec<u32> {
    let people = &words.dictionary.processes;
    let mut order: Vec<u32> = (0..people.len() as u32).collect();
    order.sort_by_key(|id| {
        let process = &people[*id as usize];
        (&process.host, &process.hhash, process.pid, process.start, &process.nonce)
    });
    order
}

fn of_process(threads: &Threads, process: u32) -> impl Iterator<Item = (i64, &Usage)> {
    threads.range((process, i64::MIN)..=(process, i64::MAX)).map(|((_, tid), usage)| (*tid, usage))
}

pub(super) fn processes(words: &Vocabulary, mut sheet: Sheet) -> Result<RecordBatch> {
    let threads = usage_of_threads(words)?;
    for id in in_order(words) {
        let process = words.dictionary.process(id);
        let mut usage = Usage::default();
        of_process(&threads, id).for_each(|(_, more)| usage.join(more));
        let command = process.command.join(" ");
        let mut row = vec![
            Cell::Int(i64::from(id)),
            Cell::Int(process.pid),
            Cell::some(host_text(process).unwrap_or_default()),
            Cell::some(&process.hhash),
            Cell::maybe(process.rank),
            Cell::maybe(process.ppid),
            Cell::some(&process.name),
            Cell::some(&process.exe),
            Cell::some(&command),
            Cell::some(&process.cwd),
            Cell::some(&process.nonce),
            Cell::some(&process.boot),
            process.start.map_or(Cell::Null, Cell::from),
            Cell::Int(of_process(&threads, id).count() as i64),
        ];
        row.extend(usage.tail());
        sheet.add(&row)?;
    }
    sheet.finish()
}

pub(super) fn threads(words: &Vocabulary, mut sheet: Sheet) -> Result<RecordBatch> {
    let (threads, names) = (usage_of_threads(words)?, thread_names(words)?);
    for id in in_order(words) {
        let process = words.dictionary.process(id);
        for (tid, usage) in of_process(&threads, id) {
            let mut row = vec![
                Cell::Int(i64::from(id)),
                Cell::Int(process.pid),
                Cell::Int(tid),
                Cell::some(host_text(process).unwrap_or_default()),
                Cell::maybe(process.rank),
                names.get(&(id, tid)).map_or(Cell::Null, |name| Cell::some(name)),
            ];
            row.extend(usage.tail());
            sheet.add(&row)?;
        }
    }
    sheet.finish()
}

pub(super) fn hosts(words: &Vocabulary, mut sheet: Sheet) -> Result<RecordBatch> {
    let threads = usage_of_threads(words)?;
    let mut hosts: BTreeMap<Option<&str>, (&str, i64, i64, Usage)> = BTreeMap::new();
    for id in in_order(words) {
        let process = words.dictionary.process(id);
        let (hash, people, count, usage) = hosts.entry(host_text(process)).or_default();
        *hash = if hash.is_empty() { &process.hhash } else { hash };
        *people += 1;
        for (_, more) in of_process(&threads, id) {
            *count += 1;
            usage.join(more);
        }
    }
    for (host, (hash, people, count, usage)) in &hosts {
        let mut row =
            vec![Cell::some(host.unwrap_or_default()), Cell::some(hash), Cell::Int(*people), Cell::Int(*count)];
        row.extend(usage.tail());
        sheet.add(&row)?;
    }
    sheet.finish()
}
