//! Output of results: one report in many forms.
//!
//! A [`Report`] is a headline, properties, findings and sections (each a table). [`mod@make`] builds it from an analysis, [`head`] the properties that supervisors
//! recorded; the other modules write it.
//!
//! | module | for |
//! |---|---|
//! | [`text`] | terminals |
//! | [`html`] | browsers: one file that loads nothing from the network |
//! | [`json`] | scripts |
//! | [`csv`], [`sqlite`], [`parquet`] | other tools: every section is a table, with full precision |
//! | [`kept`] | a list of runs: the verdict in short, beside the index |
//! | [`listing`] | one row of the list of runs: what is known of a run without its events |
//! | [`sampled`] | the sections made from samples |
//! | `sparkline` | numbers as a line of bars |
//!
//! Every column of a table has a unit; `weftline_analysis::units` formats numbers.
#![forbid(unsafe_code)]

pub mod csv;
mod error;
pub mod head;
pub mod html;
pub mod json;
pub mod kept;
pub mod listing;
pub mod make;
pub mod parquet;
pub mod sampled;
mod signals;
mod sparkline;
pub mod sqlite;
pub mod text;

use weftline_analysis::Table;
use weftline_analysis::findings::{Finding, WallTime};
use weftline_analysis::table::{Column, Field};

pub use error::{ReportError, Result};

/// Something that is known of the whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct Property {
    /// A name for scripts, such as `events` or `time_ns`.
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

impl Property {
    /// One that only scripts see.
    pub fn hidden(name: &'static str, value: impl Into<serde_json::Value>) -> Property {
        Property { name, label: "", value: value.into(), shown: String::new(), alarming: false }
    }
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
    /// Rows that people see in a terminal; 0 for a section that is for scripts alone.
    pub rows: usize,
    /// The rows that people see, where these are not all.
    pub shown_rows: Option<Vec<usize>>,
    /// What must be known to read it.
    pub note: Option<String>,
}

impl Section {
    /// Whether people see it.
    pub fn is_shown(&self) -> bool {
        self.rows > 0 && self.shown_rows().next().is_some()
    }

    /// The rows that people see.
    pub fn shown_rows(&self) -> Box<dyn Iterator<Item = usize> + '_> {
        match &self.shown_rows {
            Some(rows) => Box::new(rows.iter().copied()),
            None => Box::new(0..self.table.rows),
        }
    }

    /// The columns that people see: those that hold something.
    pub fn shown_columns(&self) -> impl Iterator<Item = &Column> {
        let holds = |column: &&Column| self.shown_rows().any(|row| column.values.get(row) != Field::Null);
        self.columns.iter().filter_map(|name| self.table.column(name)).filter(holds)
    }
}

/// What people read above a column.
pub fn heading(column: &Column) -> String {
    let known = SHORT.iter().find(|(name, _)| *name == column.name);
    known.map_or_else(|| column.heading(), |(_, short)| (*short).to_owned())
}

/// Columns whose names are for scripts.
const SHORT: [(&str, &str); 25] = [
    ("time_sum", "time"),
    ("time_union", "wall"),
    ("time_unoverlapped", "not hidden by compute"),
    ("time_self", "self"),
    ("time_mean", "mean"),
    ("time_p50", "p50"),
    ("time_p99", "p99"),
    ("metadata_calls", "metadata"),
    ("read_bytes", "read"),
    ("written_bytes", "written"),
    ("file_name", "file"),
    ("file_dir", "directory"),
    ("cpu_ns", "CPU"),
    ("file_io_ns", "file I/O"),
    ("longest_ns", "lived"),
    ("read_bps", "read"),
    ("written_bps", "written"),
    ("cat", "category"),
    ("z_score", "deviations"),
    ("points", "over time"),
    ("cpu_points", "CPU over time"),
    ("cpu_average_pct", "CPU average"),
    ("cpu_peak_pct", "CPU peak"),
    ("memory_points", "memory over time"),
    ("memory_peak_bytes", "memory"),
];

/// A whole report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// What was analysed.
    pub title: String,
    /// The same, each run or file by itself: what `weft query` is to be asked about.
    pub runs: Vec<String>,
    /// The verdict in one sentence; of samples alone, which nobody judges, what was sampled; else nothing.
    pub headline: Option<String>,
    /// Where the wall time went.
    pub wall: Option<WallTime>,
    /// How many rules were asked.
    pub checked: usize,
    /// The job.
    pub properties: Vec<Property>,
    /// The tables.
    pub sections: Vec<Section>,
    /// What is wrong, the worst first.
    pub findings: Vec<Finding>,
    /// Rules that could not be judged, and why.
    pub skipped: Vec<String>,
}
