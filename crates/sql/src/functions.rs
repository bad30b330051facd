//! Functions that DataFusion does not have. `schema::FUNCTIONS` describes them.

mod args;
mod helper;
mod human;
mod intervals;
mod io;
mod percentile;
mod time;

use std::sync::Arc;

use datafusion::logical_expr::{AggregateUDF, ScalarUDF};

use crate::tables::Vocabulary;

/// All functions of one row.
pub(crate) fn scalars(words: &Arc<Vocabulary>) -> Vec<ScalarUDF> {
    let origin = words.run.times().origin().unwrap_or(0);
    let mut all = time::functions(origin);
    all.extend(human::functions());
    all.push(intervals::overlap());
    all.push(io::io_op(Arc::clone(words)));
    all.push(args::arg());
    all.into_iter().map(ScalarUDF::new_from_impl).collect()
}

/// All functions of many rows.
pub(crate) fn aggregates() -> Vec<AggregateUDF> {
    vec![
        AggregateUDF::new_from_impl(percentile::Percentile::new()),
        AggregateUDF::new_from_impl(intervals::SpanUnion::new()),
    ]
}
