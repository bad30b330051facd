//! `percentile`: exact, and always one of the values.

use std::sync::Arc;

use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Float64Array, Int64Array, ListArray};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Int64Type};
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{Accumulator, AggregateUDFImpl, Signature, Volatility};

use super::helper::misused;

/// The aggregate.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Percentile {
    signature: Signature,
}

impl Percentile {
    pub(super) fn new() -> Percentile {
        Percentile { signature: Signature::user_defined(Volatility::Immutable) }
    }
}

impl AggregateUDFImpl for Percentile {
    fn name(&self) -> &'static str {
        "percentile"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, given: &[DataType]) -> Result<DataType> {
        given.first().cloned().ok_or_else(|| misused("percentile"))
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let [x, q] = given else { return Err(misused("percentile")) };
        if !(q.is_numeric() && (x.is_numeric() || x.is_null())) {
            return Err(misused("percentile"));
        }
        let x = if x.is_integer() || x.is_null() { DataType::Int64 } else { DataType::Float64 };
        Ok(vec![x, DataType::Float64])
    }

    fn accumulator(&self, args: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>> {
        if args.is_distinct {
            return Err(DataFusionError::Plan("percentile has no DISTINCT".to_owned()));
        }
        let values = match args.return_field.data_type() {
            DataType::Int64 => Values::Integers(Vec::new()),
            _ => Values::Reals(Vec::new()),
        };
        Ok(Box::new(Collected { values, share: None }))
    }

    fn state_fields(&self, args: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>> {
        let item = Field::new_list_field(args.return_type().clone(), true);
        Ok(vec![
            Arc::new(Field::new_list(format_state_name(args.name, "values"), item, true)),
            Arc::new(Field::new(format_state_name(args.name, "share"), DataType::Float64, true)),
        ])
    }
}

#[derive(Debug)]
enum Values {
    Integers(Vec<i64>),
    Reals(Vec<f64>),
}

#[derive(Debug)]
struct Collected {
    values: Values,
    share: Option<f64>,
}

impl Collected {
    fn add(&mut self, column: &ArrayRef) {
        match &mut self.values {
            Values::Integers(values) => values.extend(column.as_primitive::<Int64Type>().iter().flatten()),
            Values::Reals(values) => {
                values.extend(column.as_primitive::<Float64Type>().iter().flatten().filter(|value| !value.is_nan()));
            }
        }
    }

    fn set_share(&mut self, column: &ArrayRef) -> Result<()> {
        for share in column.as_primitive::<Float64Type>().iter().flatten() {
            if !(0.0..=1.0).contains(&share) {
                return Err(DataFusionError::Execution(format!(
                    "percentile needs a share from 0 to 1, such as 0.95; {share} is not one"
                )));
            }
            if self.share.is_some_and(|known| known.total_cmp(&share).is_ne()) {
                return Err(DataFusionError::Execution("percentile needs the same share in all rows".to_owned()));
            }
            self.share = Some(share);
        }
        Ok(())
    }
}

/// The place of the smallest value that at least the share does not exceed.
fn place(count: usize, share: f64) -> usize {
    ((share * count as f64).ceil() as usize).clamp(1, count) - 1
}

impl Accumulator for Collected {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.set_share(&values[1])?;
        self.add(&values[0]);
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let share = self.share.unwrap_or(0.5);
        Ok(match &mut self.values {
            Values::Integers(values) if values.is_empty() => ScalarValue::Int64(None),
            Values::Reals(values) if values.is_empty() => ScalarValue::Float64(None),
            Values::Integers(values) => {
                let place = place(values.len(), share);
                ScalarValue::Int64(Some(*values.select_nth_unstable(place).1))
            }
            Values::Reals(values) => {
                let place = place(values.len(), share);
                ScalarValue::Float64(Some(*values.select_nth_unstable_by(place, f64::total_cmp).1))
            }
        })
    }

    fn size(&self) -> usize {
        let values = match &self.values {
            Values::Integers(values) => values.capacity(),
            Values::Reals(values) => values.capacity(),
        };
        size_of_val(self) + values * 8
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values: ArrayRef = match &mut self.values {
            Values::Integers(values) => Arc::new(Int64Array::from(std::mem::take(values))),
            Values::Reals(values) => Arc::new(Float64Array::from(std::mem::take(values))),
        };
        Ok(vec![ScalarValue::List(list_of(values)), ScalarValue::Float64(self.share)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.set_share(&states[1])?;
        let lists = states[0].as_list::<i32>();
        for row in (0..lists.len()).filter(|row| lists.is_valid(*row)) {
            self.add(&lists.value(row));
        }
        Ok(())
    }
}

/// A list column with one row.
pub(super) fn list_of(values: ArrayRef) -> Arc<ListArray> {
    let item = Arc::new(Field::new_list_field(values.data_type().clone(), true));
    Arc::new(ListArray::new(item, OffsetBuffer::from_lengths([values.len()]), values, None))
}
