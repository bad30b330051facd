//! The table `metadata`.

use std::collections::BTreeMap;

use datafusion::arrow::array::Array as _;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::error::Result;
use weftline_analysis::arguments;
use weftline_format::quick::fields;
use weftline_format::{Phase, Value};
use weftline_index::column::phase_code;
use weftline_index::{Column, Filter, Request};

use super::external;
use super::gathered::{Cell, Sheet};
use super::vocabulary::{Vocabulary, host_text};

pub(super) fn gather(words: &Vocabulary, mut sheet: Sheet) -> Result<RecordBatch> {
    let dictionary = &words.dictionary;
    let mut columns = weftline_index::schema::Source::Args.needs();
    columns.extend([Column::Name, Column::Ts, Column::Process, Column::Tid]);
    let request = Request::of(columns).with(Filter::default().with_phases(&[phase_code(Phase::Metadata)]));
    let mut failure = Ok(());
    words
        .run
        .scan_in_order(&request, |batch| {
            let (ts, tids) = (batch.ints(Column::Ts), batch.ints(Column::Tid));
            let (names, processes, rest) =
                (batch.ids(Column::Name), batch.ids(Column::Process), batch.texts(Column::Rest));
            let args = arguments::objects(batch);
            for row in 0..batch.rows() {
                let process = processes.value(row);
                let inside = if rest.is_valid(row) { rest.value(row) } else { "" };
                let text = fields(inside).find(|(key, _)| key == "name").and_then(|(_, value)| match value {
                    Value::Str(text) => Some(text),
                    _ => None,
                });
                let added = sheet.add(&[
                    Cell::Text("event"),
                    Cell::some(dictionary.name(names.value(row))),
                    text.as_deref().map_or(Cell::Null, Cell::Text),
                    Cell::maybe(ts.is_valid(row).then(|| ts.value(row))),
                    Cell::some(host_text(dictionary.process(process)).unwrap_or_default()),
                    Cell::Int(dictionary.process(process).pid),
                    Cell::Int(tids.value(row)),
                    Cell::maybe(words.identities[process as usize].map(i64::from)),
                    if args.is_valid(row) { Cell::Text(args.value(row)) } else { Cell::Null },
                ]);
                if failure.is_ok() {
                    failure = added;
                }
            }
        })
        .map_err(external)?;
    failure?;
    let texts: BTreeMap<&String, &String> = dictionary.texts.iter().collect();
    for (hash, text) in texts {
        let none = Cell::Null;
        sheet.add(&[Cell::Text("text"), Cell::Text(hash), Cell::Text(text), none, none, none, none, none, none])?;
    }
    sheet.finish()
}
