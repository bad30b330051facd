//! Aligned columns: numbers to the right, text to the left. Widths are those of the first rows; wider cells of later rows stick out.

use std::io::Write as _;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};

use super::{Sink, Target};

/// Rows that decide about widths.
const MEASURED: usize = 1000;
/// No column is made wider than this for a few long texts.
const WIDEST: usize = 80;

/// The table.
pub(super) struct Table {
    target: Target,
    names: Vec<String>,
    to_the_right: Vec<bool>,
    waiting: Vec<Vec<String>>,
    /// Once they are decided.
    widths: Option<Vec<usize>>,
}

impl Table {
    pub(super) fn new(target: Target, schema: &SchemaRef) -> Table {
        Table {
            target,
            names: schema.fields().iter().map(|field| printable(field.name())).collect(),
            to_the_right: schema.fields().iter().map(|field| field.data_type().is_numeric()).collect(),
            waiting: Vec::new(),
            widths: None,
        }
    }

    /// Prints the rows that wait, and before the first of them the header.
    fn print(&mut self) -> anyhow::Result<()> {
        let first = self.widths.is_none();
        let widths = self.widths.get_or_insert_with(|| {
            let width = |place: usize| {
                let cells = self.waiting.iter().map(|row| row[place].chars().count());
                cells.max().unwrap_or(0).min(WIDEST).max(self.names[place].chars().count())
            };
            (0..self.names.len()).map(width).collect()
        });
        if first && !self.names.is_empty() {
            print_row(&mut self.target, &self.names, widths, &self.to_the_right)?;
            let lines: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
            print_row(&mut self.target, &lines, widths, &self.to_the_right)?;
        }
        for row in self.waiting.drain(..) {
            print_row(&mut self.target, &row, widths, &self.to_the_right)?;
        }
        Ok(())
    }
}

fn print_row(target: &mut Target, cells: &[String], widths: &[usize], to_the_right: &[bool]) -> anyhow::Result<()> {
    let mut line = String::new();
    for ((cell, width), right) in cells.iter().zip(widths).zip(to_the_right) {
        let gap = if line.is_empty() { "" } else { "  " };
        let fill = " ".repeat(width.saturating_sub(cell.chars().count()));
        line.push_str(gap);
        if *right {
            line.push_str(&fill);
            line.push_str(cell);
        } else {
            line.push_str(cell);
            line.push_str(&fill);
        }
    }
    Ok(writeln!(target, "{}", line.trim_end())?)
}

/// Text that cannot move a terminal's cursor.
fn printable(text: &str) -> String {
    let plain = |c: char| !c.is_control();
    if text.chars().all(plain) {
        return text.to_owned();
    }
    text.chars().flat_map(|c| if plain(c) { vec![c] } else { c.escape_default().collect() }).collect()
}

impl Sink for Table {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let options = FormatOptions::new().with_null("NULL");
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| Ok(printable(&column.value(row).try_to_string()?)));
            self.waiting.push(cells.collect::<anyhow::Result<_>>()?);
            if self.waiting.len() >= MEASURED {
                self.print()?;
            }
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> anyhow::Result<()> {
        self.print()?;
        Ok(self.target.flush()?)
    }
}
