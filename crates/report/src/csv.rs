//! Every section as a file of comma-separated values, with full precision; an absent value is empty.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use weftline_analysis::Table;
use weftline_analysis::statistics::seconds;
use weftline_analysis::table::Field;

use crate::{Report, ReportError, Result};

/// Writes `job.csv`, `findings.csv` and one file per section into a directory, which is made if it is not there.
pub fn write(report: &Report, directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).map_err(ReportError::io(directory))?;
    for (key, table) in crate::make::tables(report) {
        let path = directory.join(format!("{key}.csv"));
        fs::write(&path, text(&table)).map_err(ReportError::io(&path))?;
    }
    Ok(())
}

/// A table as comma-separated values, with a line of names.
pub fn text(table: &Table) -> String {
    let mut out = String::new();
    let names = table.columns.iter().map(|column| quoted(&column.name));
    out.push_str(&names.collect::<Vec<_>>().join(","));
    out.push('\n');
    for row in 0..table.rows {
        for (place, column) in table.columns.iter().enumerate() {
            if place > 0 {
                out.push(',');
            }
            let _ = match column.values.get(row) {
                Field::Null => Ok(()),
                Field::Int(number) => write!(out, "{number}"),
                Field::Float(number) | Field::Measured(number, _) => write!(out, "{number}"),
                Field::Time(ns) => write!(out, "{}", seconds(ns.into())),
                Field::Text(text) => write!(out, "{}", quoted(text)),
                Field::Curve(curve) => write!(out, "{}", quoted(&crate::json::points(curve).to_string())),
            };
        }
        out.push('\n');
    }
    out
}

/// A text with the quotes that it needs.
fn quoted(text: &str) -> String {
    if text.is_empty() || text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weftline_analysis::units::Unit;

    #[test]
    fn what_needs_quotes_has_them() {
        let mut table = Table::with_rows(3);
        table.texts("path", [Some("a,\"b\"".to_owned()), None, Some(String::new())].into_iter());
        table.floats("x", Unit::Number, [Some(0.1), None, Some(1e300)].into_iter());
        table.ints("n", Unit::Count, [Some(-1), Some(2), None].into_iter());
        assert_eq!(text(&table), format!("path,x,n\n\"a,\"\"b\"\"\",0.1,-1\n,,2\n\"\",{},\n", 1e300));
    }
}
