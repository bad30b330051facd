//! `human_size`, `human_time`: numbers as `weft report` prints them.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, StringArray};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use weftline_analysis::units::{bytes, signed, time};

use super::helper::{Helper, Parameter};

pub(super) fn functions() -> Vec<Helper> {
    let function = |name, text: fn(u64) -> String| {
        Helper::new(name, &[Parameter::Integer], DataType::Utf8, move |columns, _| {
            let numbers = columns[0].as_primitive::<Int64Type>();
            Ok(Arc::new(
                numbers.iter().map(|number| number.map(|number| signed(number, text))).collect::<StringArray>(),
            ))
        })
    };
    vec![function("human_size", bytes), function("human_time", time)]
}
