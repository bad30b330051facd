//! A table as results hold it: columns of one type and one unit each, in which values may be absent.

use crate::units::{self, Unit};

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnValues {
    /// Integers.
    Int(Vec<Option<i64>>),
    /// Numbers.
    Float(Vec<Option<f64>>),
    /// Times in nanoseconds, which programs get as seconds.
    Time(Vec<Option<i64>>),
    /// Texts.
    Text(Vec<Option<String>>),
    /// Numbers whose rows have units of their own.
    Measured(Vec<Option<(f64, Unit)>>),
    /// Curves over time.
    Curve(Vec<Option<Curve>>),
}

/// Numbers at equal distances of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Curve {
    /// The numbers; nothing where none is known.
    pub points: Vec<Option<f64>>,
    /// What is as high as they can get, where that is known.
    pub full: Option<f64>,
}

impl Curve {
    /// The highest point, or 0.
    pub fn most(&self) -> f64 {
        self.points.iter().flatten().copied().fold(0.0, f64::max)
    }

    /// Where a line at the top of the drawing stands.
    pub fn top(&self) -> f64 {
        self.full.unwrap_or(0.0).max(self.most())
    }
}

impl ColumnValues {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            ColumnValues::Int(values) | ColumnValues::Time(values) => values.len(),
            ColumnValues::Float(values) => values.len(),
            ColumnValues::Text(values) => values.len(),
            ColumnValues::Measured(values) => values.len(),
            ColumnValues::Curve(values) => values.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them.
    pub fn get(&self, row: usize) -> Field<'_> {
        match self {
            ColumnValues::Int(values) => values[row].map_or(Field::Null, Field::Int),
            ColumnValues::Float(values) => values[row].map_or(Field::Null, Field::Float),
            ColumnValues::Time(values) => values[row].map_or(Field::Null, Field::Time),
            ColumnValues::Text(values) => values[row].as_deref().map_or(Field::Null, Field::Text),
            ColumnValues::Measured(values) => {
                values[row].map_or(Field::Null, |(number, unit)| Field::Measured(number, unit))
            }
            ColumnValues::Curve(values) => values[row].as_ref().map_or(Field::Null, Field::Curve),
        }
    }

    /// The type of the values that programs get.
    pub fn kind(&self) -> ValueKind {
        match self {
            ColumnValues::Int(_) => ValueKind::Int,
            ColumnValues::Float(_) | ColumnValues::Time(_) | ColumnValues::Measured(_) => ValueKind::Float,
            ColumnValues::Text(_) => ValueKind::Text,
            ColumnValues::Curve(_) => ValueKind::Curve,
        }
    }

    /// The values at these places, in this order; absent where there is no place.
    fn pick(&self, places: &[Option<usize>]) -> ColumnValues {
        fn pick<T: Clone>(values: &[Option<T>], places: &[Option<usize>]) -> Vec<Option<T>> {
            places.iter().map(|place| values[(*place)?].clone()).collect()
        }
        match self {
            ColumnValues::Int(values) => ColumnValues::Int(pick(values, places)),
            ColumnValues::Float(values) => ColumnValues::Float(pick(values, places)),
            ColumnValues::Time(values) => ColumnValues::Time(pick(values, places)),
            ColumnValues::Text(values) => ColumnValues::Text(pick(values, places)),
            ColumnValues::Measured(values) => ColumnValues::Measured(pick(values, places)),
            ColumnValues::Curve(values) => ColumnValues::Curve(pick(values, places)),
        }
    }
}

/// The type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// 64-bit integers.
    Int,
    /// 64-bit floats.
    Float,
    /// Texts.
    Text,
    /// Lists of 64-bit floats.
    Curve,
}

impl ValueKind {
    /// Its name, for programs.
    pub fn name(self) -> &'static str {
        match self {
            ValueKind::Int => "integer",
            ValueKind::Float => "float",
            ValueKind::Text => "text",
            ValueKind::Curve => "list",
        }
    }
}

/// A value of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Field<'t> {
    /// Absent. A number that cannot be computed is absent too, never NaN.
    Null,
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// Nanoseconds, which programs get as seconds.
    Time(i64),
    /// A text.
    Text(&'t str),
    /// A number with a unit of its own.
    Measured(f64, Unit),
    /// A curve over time.
    Curve(&'t Curve),
}

impl Field<'_> {
    /// As a number, where it is one.
    pub fn number(self) -> Option<f64> {
        match self {
            Field::Int(number) => Some(number as f64),
            Field::Float(number) | Field::Measured(number, _) => Some(number),
            Field::Time(ns) => Some(ns as f64 / 1e9),
            Field::Null | Field::Text(_) | Field::Curve(_) => None,
        }
    }
}

/// A column: what it is called, what its numbers measure, and its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name, for programs.
    pub name: String,
    /// What its numbers measure.
    pub unit: Unit,
    /// The values.
    pub values: ColumnValues,
}

impl Column {
    /// A value as people read it.
    pub fn shown(&self, row: usize) -> String {
        units::field(self.unit, self.values.get(row))
    }

    /// Its numbers; 0 where there is none.
    pub fn numbers(&self) -> Vec<f64> {
        (0..self.values.len()).map(|row| self.values.get(row).number().unwrap_or(0.0)).collect()
    }

    /// What people read above it: its name without its unit.
    pub fn heading(&self) -> String {
        let (suffix, instead) = match self.unit {
            Unit::PerSecond => ("_per_s", "/s"),
            Unit::Nanoseconds => ("_ns", ""),
            Unit::BytesPerSecond => ("_bps", ""),
            Unit::Share => ("_frac", ""),
            _ => ("", ""),
        };
        let name = self.name.strip_suffix(suffix).map(|short| format!("{short}{instead}"));
        name.unwrap_or_else(|| self.name.clone()).replace('_', " ")
    }
}

/// A table. Its rows are in an order that follows from their values.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// The columns, all of the same length.
    pub columns: Vec<Column>,
    /// How many rows.
    pub rows: usize,
}

impl Table {
    /// A table of so many rows, without columns.
    pub fn with_rows(rows: usize) -> Table {
        Table { columns: Vec::new(), rows }
    }

    /// A column.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// A value; absent where there is no such column.
    pub fn get(&self, row: usize, column: &str) -> Field<'_> {
        self.column(column).map_or(Field::Null, |column| column.values.get(row))
    }

    fn push(&mut self, name: impl Into<String>, unit: Unit, values: ColumnValues) {
        self.columns.push(Column { name: name.into(), unit, values });
    }

    /// Adds a column of integers.
    pub fn ints(&mut self, name: impl Into<String>, unit: Unit, values: impl Iterator<Item = Option<i64>>) {
        self.push(name, unit, ColumnValues::Int(values.collect()));
    }

    /// Adds a column of numbers; what is not finite is absent.
    pub fn floats(&mut self, name: impl Into<String>, unit: Unit, values: impl Iterator<Item = Option<f64>>) {
        let values = values.map(|value| value.filter(|value| value.is_finite())).collect();
        self.push(name, unit, ColumnValues::Float(values));
    }

    /// Adds a column of times, given in nanoseconds. Programs get seconds, as DFAnalyzer's tables have them.
    pub fn times(&mut self, name: impl Into<String>, values: impl Iterator<Item = Option<i128>>) {
        self.push(name, Unit::Seconds, ColumnValues::Time(values.map(|ns| ns.map(clamp)).collect()));
    }

    /// Adds a column of texts.
    pub fn texts(&mut self, name: impl Into<String>, values: impl Iterator<Item = Option<String>>) {
        self.push(name, Unit::Number, ColumnValues::Text(values.collect()));
    }

    /// Adds a column of numbers with units of their own; what is not finite is absent.
    pub fn measured(&mut self, name: impl Into<String>, values: impl Iterator<Item = Option<(f64, Unit)>>) {
        let values = values.map(|value| value.filter(|(number, _)| number.is_finite())).collect();
        self.push(name, Unit::Number, ColumnValues::Measured(values));
    }

    /// Adds a column of curves.
    pub fn curves(&mut self, name: impl Into<String>, unit: Unit, values: impl Iterator<Item = Option<Curve>>) {
        self.push(name, unit, ColumnValues::Curve(values.collect()));
    }

    /// The rows at these places, in this order.
    #[must_use]
    pub fn take(&self, places: &[usize]) -> Table {
        let places: Vec<Option<usize>> = places.iter().copied().map(Some).collect();
        self.spread(&places)
    }

    /// The rows at these places, in this order; one without values where there is no place.
    #[must_use]
    pub fn spread(&self, places: &[Option<usize>]) -> Table {
        let columns = self.columns.iter().map(|column| Column {
            name: column.name.clone(),
            unit: column.unit,
            values: column.values.pick(places),
        });
        Table { columns: columns.collect(), rows: places.len() }
    }
}

/// A sum as a table's integer; one beyond its range stays at the end of it.
pub fn clamp(sum: impl TryInto<i64>) -> i64 {
    sum.try_into().unwrap_or(i64::MAX)
}
