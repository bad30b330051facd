//! Tables whose rows are events: `events`, `spans`, `io`, `counters`, `system`.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use weftline_analysis::events::Assembler;
use weftline_format::Phase;
use weftline_index::column::{SPAN_PHASES, phase_code};
use weftline_index::{Filter, Request};

use super::pushdown::{self, subject};
use super::scan::{EventScan, Rows};
use super::values::Values;
use super::vocabulary::Vocabulary;
use crate::schema::Table;

/// A table of events.
#[derive(Debug)]
pub(crate) struct EventRows {
    table: &'static Table,
    schema: SchemaRef,
    words: Arc<Vocabulary>,
}

impl EventRows {
    pub(crate) fn new(table: &'static Table, words: Arc<Vocabulary>) -> EventRows {
        EventRows { table, schema: table.schema(), words }
    }

    /// The rows of the index that the table is about.
    fn filter(&self) -> Filter {
        let phases = |phases: &[Phase]| {
            let codes: Vec<u8> = phases.iter().map(|phase| phase_code(*phase)).collect();
            Filter::default().with_phases(&codes)
        };
        match self.table.name {
            "spans" => phases(&SPAN_PHASES),
            "io" => {
                let categories = self.words.rules.io_categories.clone();
                let mut filter = phases(&SPAN_PHASES);
                filter.cats = Some(Arc::new(move |cat| categories.contains(&cat.to_lowercase())));
                filter
            }
            "counters" => phases(&[Phase::Counter]),
            "system" => {
                let mut filter = phases(&[Phase::Counter]);
                filter.cats = Some(Arc::new(|cat| {
                    weftline_format::metrics::HOST_CATEGORIES.contains(&cat.to_lowercase().as_str())
                }));
                filter.processes = Some(Arc::new(|process| process.pid == 0));
                filter
            }
            _ => Filter::default(),
        }
    }

    fn rows(&self, schema: SchemaRef) -> Result<Rows> {
        let words = Arc::clone(&self.words);
        Ok(match self.table.name {
            "counters" => Rows::Values(Values::new(self.table, words, schema, false)?),
            "system" => Rows::Values(Values::new(self.table, words, schema, true)?),
            name => Rows::Events(assembler(self.table, &words, schema, matches!(name, "spans" | "io"))?),
        })
    }
}

/// Makes some columns of a table.
pub(super) fn assembler(table: &Table, words: &Vocabulary, schema: SchemaRef, spans_only: bool) -> Result<Assembler> {
    let source = |name: &str| {
        let column = table.columns.iter().find(|column| column.name == name);
        let none = || DataFusionError::Internal(format!("the column {name} of {} has no source", table.name));
        column.and_then(|column| column.source).ok_or_else(none)
    };
    let sources = schema.fields().iter().map(|field| source(field.name())).collect::<Result<_>>()?;
    Ok(Assembler::with_schema(Arc::clone(&words.words), schema, sources, spans_only))
}

#[async_trait]
impl TableProvider for EventRows {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let support = |filter: &&Expr| match subject(filter) {
            Some(_) => TableProviderFilterPushDown::Inexact,
            None => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(support).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => Arc::clone(&self.schema),
        };
        let rows = self.rows(schema)?;
        let mut filter = self.filter();
        let pushed = pushdown::push(session, &self.words, filters, &mut filter);
        let whole = self.table.name == "events" && filters.is_empty();
        let request = Request::of(rows.needs()).with(filter);
        let partitions = session.config().target_partitions();
        let mut scan = EventScan::new(self.table.name, Arc::clone(&self.words), rows, request, pushed, partitions);
        if whole {
            let all: u64 = self.words.run.times().per_phase.iter().map(|(_, count)| count).sum();
            scan = scan.with_exact_rows(usize::try_from(all).ok());
            if let Some(limit) = limit {
                scan = scan.with_limit(limit);
            }
        }
        Ok(Arc::new(scan))
    }
}
