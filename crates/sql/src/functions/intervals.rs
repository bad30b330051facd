//! `overlap` and `span_union`.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Int64Array};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::Result;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};

use super::helper::{Helper, Parameter, misused};
use super::percentile::list_of;

pub(super) fn overlap() -> Helper {
    Helper::new("overlap", &[Parameter::Integer; 4], DataType::Int64, |columns, rows| {
        let column = |place: usize| columns[place].as_primitive::<Int64Type>();
        let value = |place: usize, row: usize| column(place).is_valid(row).then(|| column(place).value(row));
        let both = (0..rows).map(|row| {
            let (start, end) = (value(0, row)?.max(value(2, row)?), value(1, row)?.min(value(3, row)?));
            Some(end.saturating_sub(start).max(0))
        });
        Ok(Arc::new(both.collect::<Int64Array>()))
    })
}

/// The aggregate `span_union`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct SpanUnion {
    signature: Signature,
}

impl SpanUnion {
    pub(super) fn new() -> SpanUnion {
        SpanUnion { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for SpanUnion {
    fn name(&self) -> &'static str {
        "span_union"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        match given {
            [start, end] if [start, end].iter().all(|kind| kind.is_integer() || kind.is_null()) => {
                Ok(vec![DataType::Int64; 2])
            }
            _ => Err(misused("span_union")),
        }
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Union::default()))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let list = |name: &str| {
            let item = Field::new_list_field(DataType::Int64, true);
            Arc::new(Field::new_list(format_state_name(args.name, name), item, true))
        };
        Ok(vec![list("starts"), list("ends")])
    }
}

/// Intervals that are joined now and then: memory follows the number of gaps, not of spans.
#[derive(Debug, Default)]
struct Union {
    intervals: Vec<(i64, i64)>,
    /// How many there were when they were last joined.
    joined: usize,
}

impl Union {
    fn add(&mut self, starts: &Int64Array, ends: &Int64Array) {
        for (start, end) in starts.iter().zip(ends) {
            if let (Some(start), Some(end)) = (start, end)
                && start <= end
            {
                self.intervals.push((start, end));
            }
        }
        if self.intervals.len() > 2 * self.joined.max(4096) {
            self.join();
        }
    }

    fn join(&mut self) {
        self.intervals.sort_unstable();
        self.intervals.dedup_by(|next, kept| {
            let touches = next.0 <= kept.1;
            if touches {
                kept.1 = kept.1.max(next.1);
            }
            touches
        });
        self.joined = self.intervals.len();
    }
}

impl Accumulator for Union {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.add(values[0].as_primitive(), values[1].as_primitive());
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        if self.intervals.is_empty() {
            return Ok(ScalarValue::Int64(None));
        }
        self.join();
        let total =
            self.intervals.iter().fold(0i64, |sum, (start, end)| sum.saturating_add(end.saturating_sub(*start)));
        Ok(ScalarValue::Int64(Some(total)))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.intervals.capacity() * size_of::<(i64, i64)>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        self.join();
        let part = |ends: fn(&(i64, i64)) -> i64| {
            let values: Int64Array = self.intervals.iter().map(|interval| Some(ends(interval))).collect();
            ScalarValue::List(list_of(Arc::new(values)))
        };
        Ok(vec![part(|interval| interval.0), part(|interval| interval.1)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        let (starts, ends) = (states[0].as_list::<i32>(), states[1].as_list::<i32>());
        for row in (0..starts.len()).filter(|row| starts.is_valid(*row) && ends.is_valid(*row)) {
            self.add(starts.value(row).as_primitive(), ends.value(row).as_primitive());
        }
        Ok(())
    }
}
