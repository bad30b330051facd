//! Describes the tables: every column with its type, unit and meaning. Columns of events are those of `weftline_index::schema`. The providers take
//! their schemas from here, and `docs/schema.md` is printed from here, so the two cannot differ.

mod functions;
mod markdown;
mod tables;

use std::sync::Arc;

use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};
use weftline_analysis::events::arrow_type;
use weftline_index::schema::{ColumnKind, Source, Unit};

pub(crate) use functions::FUNCTIONS;
pub(crate) use markdown::markdown;
pub(crate) use tables::TABLES;

/// What SQL calls a type.
fn sql_type(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Integer => "BIGINT",
        ColumnKind::Real => "DOUBLE",
        ColumnKind::Word | ColumnKind::Text => "VARCHAR",
    }
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: ColumnKind,
    /// What its numbers measure.
    pub(crate) unit: Unit,
    /// Whether it may be null.
    pub(crate) nullable: bool,
    pub(crate) about: &'static str,
    /// Where it comes from, where rows are events.
    pub(crate) source: Option<Source>,
}

/// One table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) columns: &'static [Column],
    /// Columns whose conditions decide which row groups are read.
    pub(crate) pruned_by: &'static [&'static str],
    /// A query on it that makes sense on any trace.
    pub(crate) example: &'static str,
}

impl Table {
    /// Its Arrow schema.
    pub(crate) fn schema(&self) -> SchemaRef {
        let field = |column: &Column| Field::new(column.name, arrow_type(column.kind), column.nullable);
        Arc::new(Schema::new(self.columns.iter().map(field).collect::<Vec<_>>()))
    }
}

/// One function that DataFusion does not have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function {
    pub(crate) name: &'static str,
    /// How it is called.
    pub(crate) usage: &'static str,
    pub(crate) about: &'static str,
    /// A query.
    pub(crate) example: &'static str,
    /// What the query gives.
    pub(crate) result: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name that the table does not have would prune nothing, in silence.
    #[test]
    fn tables_are_pruned_by_columns_that_they_have() {
        for table in TABLES {
            for name in table.pruned_by {
                assert!(table.columns.iter().any(|column| column.name == *name), "{}: {name}", table.name);
            }
        }
    }
}
