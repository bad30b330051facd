//! Error messages in one sentence: what, where, what to do.

use std::io::ErrorKind;

use datafusion::common::{Column, SchemaError};
use datafusion::error::DataFusionError;
use datafusion::sql::sqlparser::parser::ParserError;

use crate::schema::TABLES;
use crate::session::{CATALOG, SCHEMA};

/// A statement that is not let through.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    #[error("{0} is refused: use a read-only query (SELECT, EXPLAIN, DESCRIBE, SHOW TABLES)")]
    Statement(String),
    #[error("the query is refused because it does more than read the run: {0}")]
    Plan(String),
    #[error("give exactly one query")]
    NotOne,
}

/// Whether the one who reads the output has gone.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe)
            || matches!(cause.downcast_ref::<DataFusionError>().map(DataFusionError::find_root),
                Some(DataFusionError::IoError(error)) if error.kind() == ErrorKind::BrokenPipe)
    })
}

/// The sentence.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    let mut out = String::new();
    for cause in error.chain() {
        let text = match cause.downcast_ref::<DataFusionError>() {
            Some(error) => of_query(error),
            None => cause.to_string(),
        };
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if out.is_empty() {
            out = text;
        } else if !out.contains(&text) {
            out.push_str(": ");
            out.push_str(&text);
        }
        if cause.downcast_ref::<DataFusionError>().is_some() {
            break;
        }
    }
    out
}

fn of_query(error: &DataFusionError) -> String {
    match error.find_root() {
        DataFusionError::SQL(parser, _) => {
            let (ParserError::ParserError(text) | ParserError::TokenizerError(text)) = parser.as_ref() else {
                return "the query is nested too deeply".to_owned();
            };
            format!("the query is not SQL: {}", with_place(text))
        }
        DataFusionError::SchemaError(schema, _) => match schema.as_ref() {
            SchemaError::FieldNotFound { field, valid_fields } => {
                // Of the table that was named, where one was.
                let here = |other: &&Column| field.relation.is_none() || other.relation == field.relation;
                let mut known: Vec<&str> = Vec::new();
                for name in valid_fields.iter().filter(here).map(|field| field.name.as_str()) {
                    if !known.contains(&name) {
                        known.push(name);
                    }
                }
                let known = if known.is_empty() { "none here".to_owned() } else { known.join(", ") };
                format!("there is no column {}; there are: {known}", field.flat_name())
            }
            SchemaError::AmbiguousReference { field } => {
                format!("the column {} is in several tables of the query; write TABLE.{}", field.name, field.name)
            }
            other => other.to_string(),
        },
        DataFusionError::Plan(text) | DataFusionError::Execution(text) | DataFusionError::NotImplemented(text) => {
            of_plan(text)
        }
        DataFusionError::ResourcesExhausted(_) => {
            "the query exceeds its memory limit; select fewer rows or groups, or raise the limit with --memory MIB"
                .to_owned()
        }
        DataFusionError::External(error) => error.to_string(),
        DataFusionError::ArrowError(error, _) => error.to_string(),
        other => other.strip_backtrace(),
    }
}

/// `… at Line: 1, Column: 8` → `… (line 1, column 8)`.
fn with_place(text: &str) -> String {
    let Some((what, place)) = text.rsplit_once(" at Line: ") else { return text.to_owned() };
    match place.split_once(", Column: ") {
        Some((line, column)) => format!("{what} (line {line}, column {column})"),
        None => text.to_owned(),
    }
}

fn of_plan(text: &str) -> String {
    let missing = text.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found"));
    if let Some(table) = missing {
        let name = table.strip_prefix(&format!("{CATALOG}.{SCHEMA}.")).unwrap_or(table);
        let known: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        return format!("there is no table {name}; there are: {}", known.join(", "));
    }
    // A function of ours says how it is used; DataFusion wraps that into what it knows, which is less.
    let own = text.split_once("coercion failed with: Error during planning: ");
    own.map_or(text, |(_, rest)| rest.split("No function matches").next().unwrap_or(rest).trim_end_matches(['.', ' ']))
        .to_owned()
}
