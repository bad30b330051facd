//! `io_op`.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, StringArray};
use datafusion::arrow::datatypes::DataType;

use super::helper::{Helper, Parameter};
use crate::tables::Vocabulary;

pub(super) fn io_op(words: Arc<Vocabulary>) -> Helper {
    Helper::new("io_op", &[Parameter::Text], DataType::Utf8, move |columns, _| {
        let names = columns[0].as_string::<i32>();
        let op = |name: &str| words.ops.value(words.op_of_name(name) as usize);
        Ok(Arc::new(names.iter().map(|name| name.map(op)).collect::<StringArray>()))
    })
}
