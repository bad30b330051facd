//! Results out: one report, in the form that its reader takes.
//!
//! A [`Report`] is facts, sections (each a table) and findings. [`mod@make`] builds it from an analysis; the other modules write it.
//!
//! | module | for |
//! |---|---|
//! | [`text`] | people at a terminal |
//! | [`html`] | people with a browser: one file, nothing loaded from elsewhere |
//! | [`json`] | scripts |
//! | [`csv`], [`sqlite`], [`parquet`] | other tools: every section is a table, with full precision |
//! | [`units`] | how numbers are shown; which unit a column has follows from its name |
#![forbid(unsafe_code)]

pub mod csv;
mod error;
pub mod html;
pub mod json;
pub mod make;
pub mod parquet;
pub mod sqlite;
pub mod text;
pub mod units;

use weftline_analysis::Table;
use weftline_analysis::findings::Finding;

pub use error::{ReportError, Result};

/// Something that is known of the whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// A name for scripts, such as `events`; its ending tells the unit (see [`units`]).
    pub name: &'static str,
    /// What people read before it.
    pub label: &'static str,
    /// Its value, where it is one number or text.
    pub value: serde_json::Value,
    /// What people read.
    pub shown: String,
    /// Something is wrong.
    pub alarming: bool,
}

/// How a section is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Rows and columns.
    Table,
    /// A line over time per column, the first column being the bucket.
    Timeline,
    /// Bars: the first column names them, the second is their length.
    Bars,
}

/// A part of a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// A name for files, tables and scripts.
    pub key: String,
    /// The heading.
    pub title: String,
    /// How it is drawn.
    pub shape: Shape,
    /// All its rows and columns.
    pub table: Table,
    /// The columns that people see, in this order; all of them are in the other forms.
    pub columns: Vec<&'static str>,
    /// Rows that people see in a terminal.
    pub rows: usize,
    /// What must be known to read it.
    pub note: Option<String>,
}

/// A whole report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// What was analysed.
    pub title: String,
    /// The job.
    pub facts: Vec<Fact>,
    /// The tables.
    pub sections: Vec<Section>,
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
    /// Rules that could not be judged, and why.
    pub skipped: Vec<String>,
}
