//! Tree × batch → which rows match. Tests of strings are done once per id, not per row.

use arrow_array::Array as _;
use weftline_index::schema::Source;
use weftline_index::{Batch, Column, Dictionary};

use super::{Node, TextTest};

/// What a row says: neither when a value is absent.
type Truth = Option<bool>;

/// The columns that a condition needs.
pub(super) fn columns(node: &Node) -> Vec<Column> {
    match node {
        Node::And(parts) | Node::Or(parts) => parts.iter().flat_map(columns).collect(),
        Node::Not(part) => columns(part),
        Node::Text(source, _) | Node::Number(source, _) => source.needs(),
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

fn text(source: Source, test: &TextTest, batch: &Batch, dictionary: &Dictionary) -> Vec<Truth> {
    match source {
        Source::Name => by_id(batch, Column::Name, None, |id| test.holds(Some(dictionary.name(id)))),
        Source::Cat => by_id(batch, Column::Cat, None, |id| test.holds(Some(&dictionary.cat(id).to_lowercase()))),
        Source::Path => by_id(batch, Column::File, test.holds(None), |id| test.holds(dictionary.path(id))),
        Source::Host => by_id(batch, Column::Process, None, |id| test.holds(dictionary.host(id))),
        Source::Phase => {
            let letter = |code: &u8| test.holds(Some(char::from(*code).encode_utf8(&mut [0; 4])));
            batch.phases().values().iter().map(letter).collect()
        }
        other => unreachable!("{other:?} is not a column of words"),
    }
}

fn numbers(source: Source, batch: &Batch, dictionary: &Dictionary) -> Vec<Option<i64>> {
    let processes = || batch.ids(Column::Process).values().iter();
    match source {
        Source::Stored(column) => batch.ints(column).iter().collect(),
        Source::End => {
            let (ts, dur) = (batch.ints(Column::Ts), batch.ints(Column::Dur));
            ts.iter().zip(dur).map(|(ts, dur)| Some(ts?.saturating_add(dur?.max(0)))).collect()
        }
        Source::Pid => processes().map(|id| Some(dictionary.process(*id).pid)).collect(),
        Source::Rank => processes().map(|id| dictionary.process(*id).rank).collect(),
        Source::Process => {
            let identities = dictionary.identities();
            processes().map(|id| identities[*id as usize].map(i64::from)).collect()
        }
        other => unreachable!("{other:?} is not a column of integers"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::condition::Condition;
    use crate::condition::columns as all;
    use crate::findings::tests::builder::Trace;

    #[test]
    fn every_column_can_be_compared() {
        let directory = Trace::new().span(1, "POSIX", "read", 1_000, 10, "").write();
        let options = weftline_index::OpenOptions::default();
        let run = weftline_index::Run::open(&[directory.path().to_owned()], &options).expect("opened");
        for name in all() {
            let condition = Condition::parse(&format!("{name} IS NULL OR {name} IS NOT NULL")).expect(name);
            let request = weftline_index::Request::of([Column::Phase]).with(condition.filter(Default::default()));
            let mut rows = 0;
            run.scan_in_order(&request, |batch| rows += batch.rows()).expect(name);
            let all: u64 = run.times().per_phase.iter().map(|(_, count)| count).sum();
            assert_eq!(rows as u64, all, "{name}");
        }
    }
}
