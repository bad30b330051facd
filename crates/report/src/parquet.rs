//! Every section as a Parquet file.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::Float64Type;
use arrow_array::{ArrayRef, Float64Array, Int64Array, ListArray, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use weftline_analysis::Table;
use weftline_analysis::statistics::seconds;
use weftline_analysis::table::ColumnValues;

use crate::{Report, ReportError, Result};

/// Writes one file per table into a directory, which is made if it is not there.
pub fn write(report: &Report, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).map_err(ReportError::io(directory))?;
    for (key, table) in crate::make::tables(report) {
        let path = directory.join(format!("{key}.parquet"));
        let batch = batch(&table).map_err(ReportError::format(&path))?;
        let file = File::create(&path).map_err(ReportError::io(&path))?;
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::default())).build();
        let mut writer =
            ArrowWriter::try_new(file, batch.schema(), Some(properties)).map_err(ReportError::format(&path))?;
        writer.write(&batch).map_err(ReportError::format(&path))?;
        writer.close().map_err(ReportError::format(&path))?;
    }
    Ok(())
}

/// A table as an Arrow batch; every value may be absent. Fields carry their unit as metadata.
pub fn batch(table: &Table) -> std::result::Result<RecordBatch, arrow_schema::ArrowError> {
    let mut fields = Vec::with_capacity(table.columns.len());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(table.columns.len());
    for column in &table.columns {
        let (kind, array): (DataType, ArrayRef) = match &column.values {
            ColumnValues::Int(values) => (DataType::Int64, Arc::new(Int64Array::from(values.clone()))),
            ColumnValues::Float(values) => (DataType::Float64, Arc::new(Float64Array::from(values.clone()))),
            ColumnValues::Time(values) => {
                let seconds = values.iter().map(|ns| ns.map(|ns| seconds(ns.into())));
                (DataType::Float64, Arc::new(seconds.collect::<Float64Array>()))
            }
            ColumnValues::Text(values) => (DataType::Utf8, Arc::new(StringArray::from(values.clone()))),
            ColumnValues::Measured(values) => {
                let numbers = values.iter().map(|value| value.map(|(number, _)| number));
                (DataType::Float64, Arc::new(numbers.collect::<Float64Array>()))
            }
            ColumnValues::Curve(values) => {
                let curves = values.iter().map(|curve| curve.as_ref().map(|curve| curve.points.clone()));
                let lists = ListArray::from_iter_primitive::<Float64Type, _, _>(curves);
                (arrow_array::Array::data_type(&lists).clone(), Arc::new(lists))
            }
        };
        let metadata = HashMap::from([("unit".to_owned(), column.unit.name().to_owned())]);
        fields.push(Field::new(&column.name, kind, true).with_metadata(metadata));
        columns.push(array);
    }
    let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(table.rows));
    RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), columns, &options)
}
