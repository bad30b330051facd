//! `arg`.

use std::sync::Arc;

use datafusion::arrow::array::{AsArray as _, StringArray};
use datafusion::arrow::datatypes::DataType;
use weftline_format::quick::fields;

use super::helper::{Helper, Parameter};
use crate::tables::as_text;

pub(super) fn arg() -> Helper {
    Helper::new("arg", &[Parameter::Text, Parameter::Text], DataType::Utf8, |columns, _| {
        let (objects, keys) = (columns[0].as_string::<i32>(), columns[1].as_string::<i32>());
        let found = objects.iter().zip(keys).map(|(object, key)| one(object?, key?));
        Ok(Arc::new(found.collect::<StringArray>()))
    })
}

fn one(object: &str, key: &str) -> Option<String> {
    let inside = object.trim().strip_prefix('{')?.strip_suffix('}')?;
    let (_, value) = fields(inside).find(|(found, _)| found == key)?;
    as_text(&value)
}
