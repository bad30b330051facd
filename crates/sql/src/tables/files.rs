//! The table `files`.

use std::collections::{BTreeMap, HashSet};

use datafusion::arrow::array::Array as _;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use weftline_analysis::group::directory_of;
use weftline_calls::Side;
use weftline_index::{Column, Request};

use super::external;
use super::gathered::{Cell, Sheet};
use super::usage::{Counter, Usage, all_but_metadata};
use super::vocabulary::Vocabulary;

#[derive(Default)]
struct State {
    /// By the id of the file.
    usage: Vec<Usage>,
    /// Which process used which file.
    users: HashSet<(u32, u32)>,
}

pub(super) fn gather(words: &Vocabulary, mut sheet: Sheet) -> Result<RecordBatch> {
    // Fails when there are more paths than a column can hold.
    words.paths().map_err(external)?;
    let counter = Counter::new(words);
    let mut columns = Counter::COLUMNS.to_vec();
    columns.extend([Column::File, Column::SecondFile, Column::Process]);
    let count = words.dictionary.files.len();
    let identities = &words.identities;
    let request = Request::of(columns).with(all_but_metadata());
    let (states, _) = words
        .run
        .scan(
            &request,
            || State { usage: vec![Usage::default(); count], users: HashSet::new() },
            |state, batch| {
                let (files, processes) = (batch.ids(Column::File), batch.ids(Column::Process));
                let second_files = batch.ids(Column::SecondFile);
                for row in 0..batch.rows() {
                    let second = second_files.is_valid(row) && counter.copies(batch, row);
                    let sides = [
                        (Side::File, files.is_valid(row).then(|| files.value(row))),
                        (Side::SecondFile, second.then(|| second_files.value(row))),
                    ];
                    for (side, file) in sides.into_iter().filter_map(|(side, file)| Some((side, file?))) {
                        counter.event(&mut state.usage[file as usize], side, batch, row);
                        state.users.extend(identities[processes.value(row) as usize].map(|process| (file, process)));
                    }
                }
            },
        )
        .map_err(external)?;
    // Two hashes may mean the same path.
    let mut files: BTreeMap<&str, (Usage, HashSet<u32>)> = BTreeMap::new();
    for state in &states {
        for (file, usage) in (0u32..).zip(&state.usage).filter(|(_, usage)| usage.events > 0) {
            files.entry(words.dictionary.file(file)).or_default().0.join(usage);
        }
        for (file, process) in &state.users {
            files.entry(words.dictionary.file(*file)).or_default().1.insert(*process);
        }
    }
    for (path, (usage, users)) in &files {
        let io = &usage.io;
        let calls = [io.calls, io.opens, io.reads, io.writes, io.metadata_calls, io.syncs];
        let moved = [io.read_bytes, io.write_bytes, io.read_ns, io.write_ns, io.metadata_ns, io.time_ns];
        let mut row = vec![Cell::Text(path), Cell::some(directory_of(path)), Cell::Int(usage.events)];
        row.extend(calls.into_iter().chain(moved).map(Cell::from));
        row.extend([Cell::Int(users.len() as i64), usage.first(), usage.last()]);
        sheet.add(&row)?;
    }
    sheet.finish()
}
