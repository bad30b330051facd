//! A table as results hold it: named columns of one type each, in which values may be absent.

/// The values of a column.
#[derive(Debug, Clone, PartialEq)]
pub enum ColumnValues {
    /// Integers.
    Int(Vec<Option<i64>>),
    /// Numbers.
    Float(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

impl ColumnValues {
    /// How many.
    pub fn len(&self) -> usize {
        match self {
            ColumnValues::Int(values) => values.len(),
            ColumnValues::Float(values) => values.len(),
            ColumnValues::Text(values) => values.len(),
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
            ColumnValues::Text(values) => values[row].as_deref().map_or(Field::Null, Field::Text),
        }
    }
}

/// A value of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Field<'t> {
    /// Absent. A number that cannot be told is absent too, never NaN.
    Null,
    /// An integer.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(&'t str),
}

impl Field<'_> {
    /// As a number, where it is one.
    pub fn number(self) -> Option<f64> {
        match self {
            Field::Int(number) => Some(number as f64),
            Field::Float(number) => Some(number),
            _ => None,
        }
    }
}

/// A table. Its rows are in an order that follows from their values.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Table {
    /// Columns by name, all of the same length.
    pub columns: Vec<(String, ColumnValues)>,
    /// How many rows.
    pub rows: usize,
}

impl Table {
    /// A table of so many rows, without columns.
    pub fn with_rows(rows: usize) -> Table {
        Table { columns: Vec::new(), rows }
    }

    /// A column.
    pub fn column(&self, name: &str) -> Option<&ColumnValues> {
        self.columns.iter().find(|(found, _)| found == name).map(|(_, values)| values)
    }

    /// A value; absent where there is no such column.
    pub fn get(&self, row: usize, column: &str) -> Field<'_> {
        self.column(column).map_or(Field::Null, |values| values.get(row))
    }

    /// Adds a column of integers.
    pub fn ints(&mut self, name: impl Into<String>, values: impl Iterator<Item = Option<i64>>) {
        self.columns.push((name.into(), ColumnValues::Int(values.collect())));
    }

    /// Adds a column of numbers; what is not finite is absent.
    pub fn floats(&mut self, name: impl Into<String>, values: impl Iterator<Item = Option<f64>>) {
        let values = values.map(|value| value.filter(|value| value.is_finite())).collect();
        self.columns.push((name.into(), ColumnValues::Float(values)));
    }

    /// Adds a column of texts.
    pub fn texts(&mut self, name: impl Into<String>, values: impl Iterator<Item = Option<String>>) {
        self.columns.push((name.into(), ColumnValues::Text(values.collect())));
    }

    /// The rows at these places, in this order.
    #[must_use]
    pub fn take(&self, places: &[usize]) -> Table {
        fn pick<T: Clone>(values: &[T], places: &[usize]) -> Vec<T> {
            places.iter().map(|place| values[*place].clone()).collect()
        }
        let columns = self.columns.iter().map(|(name, values)| {
            let values = match values {
                ColumnValues::Int(values) => ColumnValues::Int(pick(values, places)),
                ColumnValues::Float(values) => ColumnValues::Float(pick(values, places)),
                ColumnValues::Text(values) => ColumnValues::Text(pick(values, places)),
            };
            (name.clone(), values)
        });
        Table { columns: columns.collect(), rows: places.len() }
    }
}

/// A sum as a table's integer; one beyond its range stays at the end of it.
pub fn clamp(sum: impl TryInto<i64>) -> i64 {
    sum.try_into().unwrap_or(i64::MAX)
}
