//! Every section as a table of one SQLite database.

use std::fs;
use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use weftline_analysis::Table;
use weftline_analysis::statistics::seconds;
use weftline_analysis::table::{Column, Field, ValueKind};

use crate::{Report, ReportError, Result};

/// What SQLite keeps in the file's header for us: the file is ours to replace.
const APPLICATION: i32 = 0x5745_4654;

/// Writes the database. An earlier report in the same file is replaced; any other file is left alone.
pub fn write(report: &Report, path: &Path) -> Result<()> {
    if path.exists() && !is_ours(path) {
        return Err(ReportError::NotOurs { path: path.to_owned() });
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Written beside and renamed: a reader sees the old report or the new one.
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let beside = directory.join(format!(".{name}.{}.new", std::process::id()));
    let written = fill(report, &beside).map_err(ReportError::format(path));
    match written.and_then(|()| fs::rename(&beside, path).map_err(ReportError::io(path))) {
        Ok(()) => Ok(()),
        Err(error) => {
            let _ = fs::remove_file(&beside);
            Err(error)
        }
    }
}

fn is_ours(path: &Path) -> bool {
    let read = |connection: Connection| connection.query_row("PRAGMA application_id", [], |row| row.get::<_, i32>(0));
    let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_ONLY;
    Connection::open_with_flags(path, flags).and_then(read).is_ok_and(|id| id == APPLICATION)
}

fn fill(report: &Report, path: &Path) -> rusqlite::Result<()> {
    let mut connection = Connection::open(path)?;
    connection.pragma_update(None, "application_id", APPLICATION)?;
    let transaction = connection.transaction()?;
    for (key, table) in crate::make::tables(report) {
        for (part, columns) in parts(&table).into_iter().enumerate() {
            let key = if part == 0 { key.clone() } else { format!("{key}_{}", part + 1) };
            fill_table(&transaction, &key, &columns)?;
        }
    }
    transaction.commit()
}

/// Columns of a table at most: SQLite takes 2000.
const MOST_COLUMNS: usize = 1900;

/// A table too wide for SQLite becomes several; each has the first column, by which they can be joined.
fn parts(table: &Table) -> Vec<Table> {
    if table.columns.len() <= MOST_COLUMNS {
        return vec![table.clone()];
    }
    let (first, others) = table.columns.split_at(1);
    let part = |some: &[Column]| Table { columns: [first, some].concat(), rows: table.rows };
    others.chunks(MOST_COLUMNS - 1).map(part).collect()
}

fn fill_table(connection: &Connection, key: &str, table: &Table) -> rusqlite::Result<()> {
    let columns: Vec<String> = table
        .columns
        .iter()
        .map(|column| {
            let kind = match column.values.kind() {
                ValueKind::Int => "INTEGER",
                ValueKind::Float => "REAL",
                // A curve is a JSON array, which SQLite's functions take.
                ValueKind::Text | ValueKind::Curve => "TEXT",
            };
            format!("{} {kind}", quoted(&column.name))
        })
        .collect();
    if columns.is_empty() {
        return Ok(());
    }
    connection.execute(&format!("CREATE TABLE {} ({})", quoted(key), columns.join(", ")), [])?;
    let places = vec!["?"; columns.len()].join(", ");
    let mut insert = connection.prepare(&format!("INSERT INTO {} VALUES ({places})", quoted(key)))?;
    for row in 0..table.rows {
        let values = table.columns.iter().map(|column| match column.values.get(row) {
            Field::Null => Value::Null,
            Field::Int(number) => Value::Integer(number),
            Field::Float(number) | Field::Measured(number, _) => Value::Real(number),
            Field::Time(ns) => Value::Real(seconds(ns.into())),
            Field::Text(text) => Value::Text(text.to_owned()),
            Field::Curve(curve) => Value::Text(crate::json::points(curve).to_string()),
        });
        insert.execute(params_from_iter(values))?;
    }
    Ok(())
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
