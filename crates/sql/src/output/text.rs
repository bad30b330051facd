//! CSV and JSON.

use std::io::Write as _;

use datafusion::arrow::array::{Array, AsArray as _};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use serde_json::Value;

use super::{Sink, Target};

/// Comma-separated values: a header, quotes where they are needed, nothing for null.
pub(super) struct Csv(Target);

impl Csv {
    pub(super) fn new(mut target: Target, schema: &SchemaRef) -> anyhow::Result<Csv> {
        let names: Vec<String> = schema.fields().iter().map(|field| quoted(field.name())).collect();
        writeln!(target, "{}", names.join(","))?;
        Ok(Csv(target))
    }
}

fn quoted(text: &str) -> String {
    let needs =
        text.is_empty() || text.contains(['"', ',', '\n', '\r']) || text.starts_with(' ') || text.ends_with(' ');
    if needs { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

impl Sink for Csv {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        let options = FormatOptions::new();
        let columns = batch.columns().iter().map(|column| ArrayFormatter::try_new(column.as_ref(), &options));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            for (place, column) in columns.iter().enumerate() {
                if place > 0 {
                    self.0.write_all(b",")?;
                }
                if batch.column(place).is_valid(row) {
                    self.0.write_all(quoted(&column.value(row).try_to_string()?).as_bytes())?;
                }
            }
            self.0.write_all(b"\n")?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> anyhow::Result<()> {
        Ok(self.0.flush()?)
    }
}

/// An array of objects, one per line.
pub(super) struct Json {
    target: Target,
    names: Vec<String>,
    rows: u64,
}

impl Json {
    pub(super) fn new(mut target: Target, schema: &SchemaRef) -> anyhow::Result<Json> {
        target.write_all(b"[")?;
        let names = schema.fields().iter().map(|field| serde_json::to_string(field.name()));
        Ok(Json { target, names: names.collect::<Result<_, _>>()?, rows: 0 })
    }
}

impl Sink for Json {
    fn write(&mut self, batch: &RecordBatch) -> anyhow::Result<()> {
        for row in 0..batch.num_rows() {
            self.target.write_all(if self.rows == 0 { b"\n{" } else { b",\n{" })?;
            self.rows += 1;
            for (place, (name, column)) in self.names.iter().zip(batch.columns()).enumerate() {
                let comma = if place == 0 { "" } else { "," };
                write!(self.target, "{comma}{name}:{}", value(column.as_ref(), row)?)?;
            }
            self.target.write_all(b"}")?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> anyhow::Result<()> {
        self.target.write_all(if self.rows == 0 { b"]\n" } else { b"\n]\n" })?;
        Ok(self.target.flush()?)
    }
}

/// A cell as JSON. What JSON has no type for becomes text; NaN and infinities become null.
fn value(column: &dyn Array, row: usize) -> anyhow::Result<String> {
    if column.is_null(row) {
        return Ok("null".to_owned());
    }
    let real = |number: f64| serde_json::Number::from_f64(number).map_or(Value::Null, Value::Number).to_string();
    Ok(match column.data_type() {
        DataType::Float64 => real(column.as_primitive::<Float64Type>().value(row)),
        DataType::Float32 => real(f64::from(column.as_primitive::<Float32Type>().value(row))),
        DataType::Boolean => column.as_boolean().value(row).to_string(),
        kind => {
            let text = ArrayFormatter::try_new(column, &FormatOptions::new())?.value(row).try_to_string()?;
            if kind.is_integer() { text } else { serde_json::to_string(&text)? }
        }
    })
}
