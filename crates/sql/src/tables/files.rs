//! The table `files`.

use std::collections::{BTreeMap, HashSet};

use datafusion::arrow::array::Array as _;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use weftline_analysis::group::directory_of;
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
    words.paths()?;
    let counter = Counter::new(words);
    let mut columns = Counter::COLUMNS.to_vec();
    columns.extend([Column::File, Column::Process]);
    let count = words.dictionary.files.len();
    let request = Request::of(columns).with(all_but_metadata());
    let (states, _) = words
        .run
        .scan(
            &request,
            || State { usage: vec![Usage::default(); count], users: HashSet::new() },
            |state, batch| {
                let (files, people) = (batch.ids(Column::File), batch.ids(Column::Process));
                for row in (0..batch.rows()).filter(|row| files.is_valid(*row)) {
                    let file = files.value(row);
                    counter.event(&mut state.usage[file as usize], batch, row);
                    state.users.insert((file, people.value(row)));
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
        sheet.add(&[
            Cell::Text(path),
            Cell::some(directory_of(path)),
            Cell::Int(usage.events),
            Cell::Int(usage.io_calls),
            Cell::Int(usage.opens),
            Cell::Int(usage.reads),
            Cell::Int(usage.writes),
            Cell::Int(usage.metadata_calls),
            Cell::Int(usage.syncs),
            Cell::Int(usage.read_bytes),
            Cell::Int(usage.write_bytes),
            Cell::Int(usage.read_ns),
            Cell::Int(usage.write_ns),
            Cell::Int(usage.metadata_ns),
            Cell::Int(usage.io_ns),
            Cell::Int(users.len() as i64),
            usage.first(),
            usage.last(),
        ])?;
    }
    sheet.finish()
}
