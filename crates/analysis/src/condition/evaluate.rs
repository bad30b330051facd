//! Tree × batch → which rows hold. Tests of texts are done once per id, not per row.

use arrow_array::Array as _;
use weftline_index::{Batch, Column, Dictionary};

use super::{Node, NumberColumn, TextColumn, TextTest};

/// What a row says: neither when a value is absent.
type Truth = Option<bool>;

/// The columns that a condition needs.
pub(super) fn columns(node: &Node) -> Vec<Column> {
    match node {
        Node::And(parts) | Node::Or(parts) => parts.iter().flat_map(columns).collect(),
        Node::Not(part) => columns(part),
        Node::Text(column, _) => vec![match column {
            TextColumn::Name => Column::Name,
            TextColumn::Cat => Column::Cat,
            TextColumn::Path => Column::File,
            TextColumn::Host => Column::Process,
            TextColumn::Phase => Column::Phase,
        }],
        Node::Number(column, _) => match column {
            NumberColumn::Stored(column) => vec![*column],
            NumberColumn::End => vec![Column::Ts, Column::Dur],
            NumberColumn::Pid | NumberColumn::Rank => vec![Column::Process],
        },
    }
}

/// The rows for which a condition is true.
pub(super) fn rows(node: &Node, batch: &Batch, dictionary: &Dictionary) -> Vec<bool> {
    truths(node, batch, dictionary).into_iter().map(|truth| truth == Some(true)).collect()
}

fn truths(node: &Node, batch: &Batch, dictionary: &Dictionary) -> Vec<Truth> {
    let all = |parts: &[Node], join: fn(Truth, Truth) -> Truth| {
        let mut parts = parts.iter().map(|part| truths(part, batch, dictionary));
        let first = parts.next().unwrap_or_default();
        parts.fold(first, |sum, part| sum.into_iter().zip(part).map(|(a, b)| join(a, b)).collect())
    };
    match node {
        Node::And(parts) => all(parts, |a, b| match (a, b) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        }),
        Node::Or(parts) => all(parts, |a, b| match (a, b) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (Some(false), Some(false)) => Some(false),
            _ => None,
        }),
        Node::Not(part) => truths(part, batch, dictionary).into_iter().map(|truth| truth.map(|truth| !truth)).collect(),
        Node::Text(column, test) => text(*column, test, batch, dictionary),
        Node::Number(column, test) => {
            numbers(*column, batch, dictionary).into_iter().map(|number| test.holds(number)).collect()
        }
    }
}

/// The truth of every id that occurs, found out when it is first met.
fn by_id(batch: &Batch, column: Column, none: Truth, truth: impl Fn(u32) -> Truth) -> Vec<Truth> {
    let ids = batch.ids(column);
    let mut known: Vec<Option<Truth>> = Vec::new();
    (0..batch.rows())
        .map(|row| {
            if ids.is_null(row) {
                return none;
            }
            let id = ids.value(row);
            if known.len() <= id as usize {
                known.resize(id as usize + 1, None);
            }
            *known[id as usize].get_or_insert_with(|| truth(id))
        })
        .collect()
}

fn text(column: TextColumn, test: &TextTest, batch: &Batch, dictionary: &Dictionary) -> Vec<Truth> {
    match column {
        TextColumn::Name => by_id(batch, Column::Name, None, |id| test.holds(Some(dictionary.name(id)))),
        TextColumn::Cat => by_id(batch, Column::Cat, None, |id| test.holds(Some(&dictionary.cat(id).to_lowercase()))),
        TextColumn::Path => by_id(batch, Column::File, test.holds(None), |id| test.holds(dictionary.path(id))),
        TextColumn::Host => by_id(batch, Column::Process, None, |id| test.holds(dictionary.host(id))),
        TextColumn::Phase => {
            let letter = |code: &u8| test.holds(Some(char::from(*code).encode_utf8(&mut [0; 4])));
            batch.phases().values().iter().map(letter).collect()
        }
    }
}

fn numbers(column: NumberColumn, batch: &Batch, dictionary: &Dictionary) -> Vec<Option<i64>> {
    match column {
        NumberColumn::Stored(column) => batch.ints(column).iter().collect(),
        NumberColumn::End => {
            let (ts, dur) = (batch.ints(Column::Ts), batch.ints(Column::Dur));
            ts.iter().zip(dur).map(|(ts, dur)| Some(ts?.saturating_add(dur?))).collect()
        }
        NumberColumn::Pid => {
            batch.ids(Column::Process).values().iter().map(|id| Some(dictionary.process(*id).pid)).collect()
        }
        NumberColumn::Rank => {
            batch.ids(Column::Process).values().iter().map(|id| dictionary.process(*id).rank).collect()
        }
    }
}
