//! The plan node that reads row groups of the index, distributed over partitions.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::common::stats::Precision;
use datafusion::common::{Statistics, internal_err};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricBuilder, MetricsSet};
use datafusion::physical_plan::statistics::StatisticsArgs;
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, SendableRecordBatchStream,
};
use weftline_analysis::events::Assembler;
use weftline_index::Request;
use weftline_index::scan::{Batch, Pull};

use super::external;
use super::leaf::leaf;
use super::values::Values;
use super::vocabulary::Vocabulary;

/// Batches that wait for the engine, per partition.
const AHEAD: usize = 2;

/// What rows are made of events.
#[derive(Debug)]
pub(crate) enum Rows {
    /// One per event.
    Events(Assembler),
    /// One per value of a counter.
    Values(Values),
}

impl Rows {
    fn schema(&self) -> SchemaRef {
        match self {
            Rows::Events(assembler) => assembler.schema(),
            Rows::Values(values) => Arc::clone(&values.schema),
        }
    }

    pub(crate) fn needs(&self) -> Vec<weftline_index::Column> {
        let mut columns = match self {
            Rows::Events(assembler) => assembler.needs(),
            Rows::Values(values) => values.needs(),
        };
        columns.sort();
        columns.dedup();
        columns
    }

    fn assemble(&self, batch: &Batch) -> Result<RecordBatch> {
        match self {
            Rows::Events(assembler) => Ok(assembler.assemble(batch)?),
            Rows::Values(values) => values.assemble(batch),
        }
    }
}

/// The node.
pub(crate) struct EventScan {
    table: &'static str,
    words: Arc<Vocabulary>,
    rows: Arc<Rows>,
    request: Request,
    /// Conditions that were pushed down, in words.
    pushed: Vec<String>,
    /// Nothing for a run without an index.
    pull: Option<Arc<Pull>>,
    /// Row groups that are read: fewer than there are when a few rows are enough.
    groups: usize,
    /// How many rows there are, where that is known beforehand.
    exact_rows: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl EventScan {
    /// Plans to read what a request asks for.
    pub(crate) fn new(
        table: &'static str,
        words: Arc<Vocabulary>,
        rows: Rows,
        request: Request,
        pushed: Vec<String>,
        partitions: usize,
    ) -> EventScan {
        let pull = words.run.pull(request.clone()).map(Arc::new);
        let groups = pull.as_ref().map_or(0, |pull| pull.effort().groups_read);
        // A run without an index is read by as many threads as there are, into one partition.
        let partitions = if pull.is_some() { partitions.min(groups).max(1) } else { 1 };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(rows.schema()),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        EventScan {
            table,
            words,
            rows: Arc::new(rows),
            request,
            pushed,
            pull,
            groups,
            exact_rows: None,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// So many rows come out.
    #[must_use]
    pub(crate) fn with_exact_rows(mut self, rows: Option<usize>) -> EventScan {
        self.exact_rows = rows;
        self
    }

    /// Only as many row groups as so many rows take. All rows of a group must match.
    #[must_use]
    pub(crate) fn with_limit(mut self, limit: usize) -> EventScan {
        if let Some(pull) = &self.pull {
            let mut rows = 0;
            self.groups = (0..self.groups)
                .take_while(|group| {
                    let more = rows < limit as u64;
                    rows += pull.rows(*group);
                    more
                })
                .count();
            self.exact_rows = None;
        }
        self
    }
}

impl fmt::Debug for EventScan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventScan").field("table", &self.table).field("request", &self.request).finish_non_exhaustive()
    }
}

impl DisplayAs for EventScan {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EventScan: table={}", self.table)?;
        match &self.pull {
            Some(pull) => write!(f, ", row_groups={} of {}", self.groups, pull.effort().groups)?,
            None => write!(f, ", row_groups=all (no index)")?,
        }
        write!(f, ", pushed=[{}]", self.pushed.join(" AND "))?;
        let columns: Vec<&str> = self.request.columns.iter().map(|column| column.name()).collect();
        write!(f, ", reads=[{}]", columns.join(", "))
    }
}

impl ExecutionPlan for EventScan {
    fn name(&self) -> &'static str {
        "EventScan"
    }

    leaf!();

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let partitions = self.properties.partitioning.partition_count();
        if partition >= partitions {
            return internal_err!("there is no partition {partition} of {partitions}");
        }
        let mut builder = RecordBatchReceiverStream::builder(self.rows.schema(), AHEAD);
        let send = builder.tx();
        let rows = Arc::clone(&self.rows);
        let baseline = BaselineMetrics::new(&self.metrics, partition);
        let groups_read = MetricBuilder::new(&self.metrics).counter("row_groups_read", partition);
        // The receiver is gone once the engine has enough: not a failure.
        let hand_on = move |batch: &Batch| -> bool {
            let assembled = rows.assemble(batch);
            if let Ok(assembled) = &assembled {
                baseline.record_output(assembled.num_rows());
            }
            let failed = assembled.is_err();
            send.blocking_send(assembled).is_ok() && !failed
        };
        if let Some(pull) = &self.pull {
            let (pull, groups) = (Arc::clone(pull), self.groups);
            builder.spawn_blocking(move || {
                let mut wanted = true;
                for group in (partition..groups).step_by(partitions) {
                    groups_read.add(1);
                    pull.read(group, &mut |batch| wanted = wanted && hand_on(batch)).map_err(external)?;
                    if !wanted {
                        break;
                    }
                }
                Ok(())
            });
        } else {
            let (run, request) = (Arc::clone(&self.words.run), self.request.clone());
            builder.spawn_blocking(move || {
                let read = run.scan(&request, || true, |wanted, batch| *wanted = *wanted && hand_on(batch));
                groups_read.add(read.map_err(external)?.1.groups_read);
                Ok(())
            });
        }
        Ok(builder.build())
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn statistics_from_inputs(&self, _: &[Arc<Statistics>], args: &StatisticsArgs) -> Result<Arc<Statistics>> {
        let unknown = Statistics::new_unknown(&self.rows.schema());
        Ok(Arc::new(match (self.exact_rows, args.partition()) {
            (Some(rows), None) => unknown.with_num_rows(Precision::Exact(rows)),
            _ => unknown,
        }))
    }
}
