//! Conditions in SQL syntax: `weft report --where "name = 'read' AND path LIKE '/data/%' AND dur_ns > 1000000"`.
//!
//! `weft` does not link an SQL engine; this is the part of the language that selects events. Comparisons, `IN`, `LIKE`, `BETWEEN`, `IS NULL`,
//! `AND`, `OR`, `NOT`, brackets; three-valued as in SQL: a comparison with an absent value is neither true nor false.
//! [`Condition::filter`] turns it into an index filter: required tests of names, categories, paths and processes prune row groups.

mod evaluate;
mod parse;

use std::sync::Arc;

use thiserror::Error;
use weftline_index::Filter;
use weftline_index::filter::RowTest;
use weftline_index::schema::{self, ColumnKind, EVENTS, EventColumn, Source};

/// A condition that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{why} at character {at} of {text:?}")]
pub struct ConditionError {
    /// The condition.
    pub text: String,
    /// Where, counted from 1.
    pub at: usize,
    /// What is wrong.
    pub why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, PartialEq)]
enum Node {
    And(Vec<Node>),
    Or(Vec<Node>),
    Not(Box<Node>),
    Text(Source, TextTest),
    Number(Source, NumberTest),
}

#[derive(Debug, Clone, PartialEq)]
enum TextTest {
    Compare(Comparison, String),
    In(Vec<String>),
    Like(String),
    IsNull,
}

#[derive(Debug, Clone, PartialEq)]
enum NumberTest {
    Compare(Comparison, f64),
    In(Vec<f64>),
    Between(f64, f64),
    IsNull,
}

/// A condition that was understood.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    node: Node,
}

/// The columns that a condition may speak of.
pub fn columns() -> Vec<&'static str> {
    EVENTS.iter().chain([&END]).filter(|column| operand(column).is_some()).map(|column| column.name).collect()
}

/// The end of a span is not among the columns of all events.
const END: EventColumn = schema::column("end_ns");

/// What a column is to a condition; nothing for those that are a whole JSON object.
fn operand(column: &EventColumn) -> Option<Operand> {
    match column.kind {
        ColumnKind::Word => Some(Operand::Text(column.source)),
        ColumnKind::Integer => Some(Operand::Number(column.source)),
        ColumnKind::Real | ColumnKind::Text => None,
    }
}

/// What is compared.
enum Operand {
    Text(Source),
    Number(Source),
}

impl Condition {
    /// Reads a condition.
    pub fn parse(text: &str) -> Result<Condition, ConditionError> {
        parse::parse(text).map(|node| Condition { node })
    }

    /// The condition as a filter of an index, together with what `filter` asks already.
    pub fn filter(&self, mut filter: Filter) -> Filter {
        for node in self.must_hold() {
            let Node::Text(column, test) = node else { continue };
            let test = test.clone();
            match column {
                Source::Name => filter.names = Some(Arc::new(move |text| test.holds(Some(text)) == Some(true))),
                Source::Cat => {
                    filter.cats = Some(Arc::new(move |text| test.holds(Some(&text.to_lowercase())) == Some(true)));
                }
                Source::Path => filter.files = Some(Arc::new(move |path| test.holds(path) == Some(true))),
                Source::Host => {
                    filter.processes = Some(Arc::new(move |process| {
                        test.holds((!process.host.is_empty()).then_some(process.host.as_str())) == Some(true)
                    }));
                }
                _ => {}
            }
        }
        let node = self.node.clone();
        let columns = evaluate::columns(&node);
        filter.rows = Some(RowTest {
            columns,
            test: Arc::new(move |batch, dictionary| evaluate::rows(&node, batch, dictionary)),
        });
        filter
    }

    /// Parts that must all hold.
    fn must_hold(&self) -> Vec<&Node> {
        match &self.node {
            Node::And(parts) => parts.iter().collect(),
            one => vec![one],
        }
    }
}

impl Comparison {
    fn holds(self, order: std::cmp::Ordering) -> bool {
        match self {
            Comparison::Equal => order.is_eq(),
            Comparison::Unequal => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        }
    }
}

impl TextTest {
    fn holds(&self, text: Option<&str>) -> Option<bool> {
        if *self == TextTest::IsNull {
            return Some(text.is_none());
        }
        let text = text?;
        Some(match self {
            TextTest::Compare(comparison, other) => comparison.holds(text.cmp(other)),
            TextTest::In(others) => others.iter().any(|other| other == text),
            TextTest::Like(pattern) => like(pattern.as_bytes(), text.as_bytes()),
            TextTest::IsNull => false,
        })
    }
}

impl NumberTest {
    fn holds(&self, number: Option<i64>) -> Option<bool> {
        if *self == NumberTest::IsNull {
            return Some(number.is_none());
        }
        let number = number? as f64;
        let order = |other: &f64| number.partial_cmp(other);
        Some(match self {
            NumberTest::Compare(comparison, other) => order(other).is_some_and(|order| comparison.holds(order)),
            NumberTest::In(others) => others.iter().any(|other| order(other).is_some_and(std::cmp::Ordering::is_eq)),
            NumberTest::Between(from, to) => number >= *from && number <= *to,
            NumberTest::IsNull => false,
        })
    }
}

/// SQL's LIKE: `%` is any text, `_` any one character.
fn like(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'%') => {
                star = Some((p + 1, t));
                p += 1;
            }
            Some(b'_') => {
                // One character, however many bytes.
                p += 1;
                t += 1;
                while text.get(t).is_some_and(|byte| byte & 0xC0 == 0x80) {
                    t += 1;
                }
            }
            Some(byte) if *byte == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((after, from)) => {
                    star = Some((after, from + 1));
                    (p, t) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn likes() {
        for (pattern, text, expected) in [
            ("%", "", true),
            ("a%c", "abbbc", true),
            ("a%c", "abbbd", false),
            ("_é_", "aéb", true),
            ("__", "é", false),
            ("/data/%.npz", "/data/x/y.npz", true),
            ("", "a", false),
            ("%a%a%", "banana", true),
        ] {
            assert_eq!(like(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_named() {
        for (text, expected) in [
            ("name = ", "a quoted string was expected at character 8"),
            ("nam = 'x'", "there is no column nam"),
            ("name > 5", "a quoted string was expected at character 8"),
            ("dur_ns = 'x'", "a number was expected at character 10"),
            ("(name = 'x'", "a closing bracket was expected"),
            ("name = 'x' name", "the condition should end here"),
            ("name = 'x", "a string is not closed"),
            ("pid IN ()", "a number was expected"),
            ("", "a column was expected"),
        ] {
            let error = Condition::parse(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
