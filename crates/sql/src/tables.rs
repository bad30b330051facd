//! The tables over a run.
//!
//! | module | holds |
//! |---|---|
//! | [`vocabulary`] | shared by all tables: strings of the run as Arrow arrays, processes and calls |
//! | [`event_rows`] | tables with events as rows: `events`, `spans`, `io`, `counters`, `system`; `weftline_analysis::events` makes their columns |
//! | [`values`] | counters: one row per value |
//! | [`pushdown`] | conditions of a query → a filter of the index |
//! | [`scan`] | the plan node that reads row groups |
//! | [`leaf`] | the common part of plan nodes without children |
//! | [`gathered`] | tables that a pass over the run gathers on demand |
//! | [`usage`] | counts per file, process, thread and host |
//! | [`files`], [`process_rows`], [`metadata`], [`damage`] | the gathered tables |

mod damage;
mod event_rows;
mod files;
mod gathered;
mod leaf;
mod metadata;
mod process_rows;
mod pushdown;
mod scan;
mod usage;
mod values;
mod vocabulary;

use std::sync::Arc;

use datafusion::catalog::TableProvider;
use datafusion::error::DataFusionError;

use crate::schema::{TABLES, Table};
pub(crate) use values::as_text;
pub(crate) use vocabulary::Vocabulary;

/// All tables of a run, by their names.
pub(crate) fn all(words: &Arc<Vocabulary>) -> Vec<(&'static str, Arc<dyn TableProvider>)> {
    TABLES.iter().map(|table| (table.name, provider(table, words))).collect()
}

fn provider(table: &'static Table, words: &Arc<Vocabulary>) -> Arc<dyn TableProvider> {
    let gather: gathered::Gather = match table.name {
        "files" => files::gather,
        "processes" => process_rows::processes,
        "execs" => process_rows::execs,
        "threads" => process_rows::threads,
        "hosts" => process_rows::hosts,
        "metadata" => metadata::gather,
        "damage" => damage::gather,
        _ => return Arc::new(event_rows::EventRows::new(table, Arc::clone(words))),
    };
    Arc::new(gathered::Gathered::new(table, Arc::clone(words), gather))
}

/// An error of ours on its way through DataFusion.
fn external(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    DataFusionError::External(Box::new(error))
}
