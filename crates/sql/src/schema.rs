//! What the tables are: every column with its type and meaning. The providers take their schemas from here, and `docs/schema.md` is
//! printed from here, so the two cannot differ.

mod functions;
mod markdown;
mod tables;

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};

pub(crate) use functions::FUNCTIONS;
pub(crate) use markdown::markdown;
pub(crate) use tables::TABLES;

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A 64-bit integer.
    Integer,
    /// A 64-bit float.
    Real,
    /// Text from a small set: a dictionary whose values all batches share.
    Word,
    /// Text that is different in every row.
    Text,
}

impl Kind {
    /// The Arrow type.
    pub(crate) fn arrow(self) -> DataType {
        match self {
            Kind::Integer => DataType::Int64,
            Kind::Real => DataType::Float64,
            Kind::Word => DataType::Dictionary(Box::new(DataType::UInt32), Box::new(DataType::Utf8)),
            Kind::Text => DataType::Utf8,
        }
    }

    /// What SQL calls it.
    pub(crate) fn sql(self) -> &'static str {
        match self {
            Kind::Integer => "BIGINT",
            Kind::Real => "DOUBLE",
            Kind::Word | Kind::Text => "VARCHAR",
        }
    }
}

/// One column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// Whether it may be null.
    pub(crate) nullable: bool,
    pub(crate) about: &'static str,
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
        let field = |column: &Column| Field::new(column.name, column.kind.arrow(), column.nullable);
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
