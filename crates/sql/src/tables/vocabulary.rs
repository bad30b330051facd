//! Shared by all tables: the run, its strings as Arrow arrays, and the processes and calls of its ids.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::error::Result;
use weftline_analysis::events::Words;
pub(crate) use weftline_analysis::events::{host_text, words};
use weftline_index::Run;

use super::external;

/// A run and its words.
pub(crate) struct Vocabulary {
    pub(crate) run: Arc<Run>,
    pub(crate) words: Arc<Words>,
}

impl fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.words.fmt(f)
    }
}

impl Vocabulary {
    /// Of an opened run whose dictionary is known.
    pub(crate) fn new(run: Arc<Run>) -> Result<Vocabulary> {
        let words = Arc::new(Words::new(run.dictionary()).map_err(external)?);
        Ok(Vocabulary { run, words })
    }
}

impl Deref for Vocabulary {
    type Target = Words;

    fn deref(&self) -> &Words {
        &self.words
    }
}

/// A column of integers.
pub(crate) fn integers(values: Vec<Option<i64>>) -> ArrayRef {
    Arc::new(Int64Array::from(values))
}
