//! Helper for scalar functions: argument types, result type, and a closure.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::ScalarValue;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility};

use crate::schema::FUNCTIONS;

/// What an argument may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parameter {
    /// A number; taken as an integer.
    Integer,
    /// A text.
    Text,
    /// A text, or a number that is taken as one.
    TextOrInteger,
}

type Body = dyn Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync;

/// The function.
#[derive(Clone)]
pub(super) struct Helper {
    name: &'static str,
    parameters: &'static [Parameter],
    returns: DataType,
    signature: Signature,
    body: Arc<Body>,
}

impl Helper {
    /// A function. `body` gets a column per parameter and the number of rows.
    pub(super) fn new(
        name: &'static str,
        parameters: &'static [Parameter],
        returns: DataType,
        body: impl Fn(&[ArrayRef], usize) -> Result<ArrayRef> + Send + Sync + 'static,
    ) -> Helper {
        // Immutable: constants are folded, so that conditions with them can be pushed down.
        let signature = match parameters {
            [] => Signature::nullary(Volatility::Immutable),
            _ => Signature::user_defined(Volatility::Immutable),
        };
        Helper { name, parameters, returns, signature, body: Arc::new(body) }
    }
}

/// The error for arguments that do not fit.
pub(super) fn misused(name: &str) -> DataFusionError {
    let usage = FUNCTIONS.iter().find(|function| function.name == name).map_or(name, |function| function.usage);
    DataFusionError::Plan(format!("{name} is used as {usage}"))
}

impl fmt::Debug for Helper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Helper").field("name", &self.name).finish_non_exhaustive()
    }
}

// There is one function of a name in a session.
impl PartialEq for Helper {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Helper {}

impl Hash for Helper {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Helper {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.returns.clone())
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        if given.len() != self.parameters.len() {
            return Err(misused(self.name));
        }
        given
            .iter()
            .zip(self.parameters)
            .map(|(given, parameter)| coerced(given, *parameter).ok_or_else(|| misused(self.name)))
            .collect()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let constant = args.args.iter().all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let columns = args.args.into_iter().map(|arg| arg.into_array(rows)).collect::<Result<Vec<_>>>()?;
        let result = (self.body)(&columns, rows)?;
        if constant {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&result, 0)?))
        } else {
            Ok(ColumnarValue::Array(result))
        }
    }
}

fn is_text(given: &DataType) -> bool {
    match given {
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => true,
        DataType::Dictionary(_, values) => is_text(values),
        _ => false,
    }
}

fn coerced(given: &DataType, parameter: Parameter) -> Option<DataType> {
    let number = given.is_numeric() || given.is_null();
    match parameter {
        Parameter::Integer if number => Some(DataType::Int64),
        Parameter::Text | Parameter::TextOrInteger if is_text(given) || given.is_null() => Some(DataType::Utf8),
        Parameter::TextOrInteger if given.is_integer() => Some(DataType::Utf8),
        _ => None,
    }
}
