//! Tables that a pass over the run gathers when a query first reads them.

use std::fmt;
use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, Float64Builder, Int64Builder, StringBuilder, StringDictionaryBuilder};
use datafusion::arrow::datatypes::{Int32Type, SchemaRef};
use datafusion::arrow::record_batch::RecordBatch;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchReceiverStream;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties, SendableRecordBatchStream,
};
use weftline_index::schema::ColumnKind;

use super::leaf::leaf;
use super::vocabulary::Vocabulary;
use crate::schema::Table;

/// Rows per batch.
const BATCH_ROWS: usize = 8192;

/// How a table is gathered.
pub(super) type Gather = fn(&Vocabulary, Sheet) -> Result<RecordBatch>;

/// A table that is gathered at most once per query.
pub(super) struct Gathered {
    table: &'static Table,
    words: Arc<Vocabulary>,
    gather: Gather,
    rows: Arc<OnceLock<std::result::Result<RecordBatch, String>>>,
}

impl Gathered {
    pub(super) fn new(table: &'static Table, words: Arc<Vocabulary>, gather: Gather) -> Gathered {
        Gathered { table, words, gather, rows: Arc::default() }
    }
}

impl fmt::Debug for Gathered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gathered").field("table", &self.table.name).finish_non_exhaustive()
    }
}

#[async_trait]
impl TableProvider for Gathered {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let all = self.table.schema();
        let columns = projection.cloned().unwrap_or_else(|| (0..all.fields().len()).collect());
        let schema = Arc::new(all.project(&columns)?);
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Arc::new(GatherRows {
            table: self.table,
            words: Arc::clone(&self.words),
            gather: self.gather,
            rows: Arc::clone(&self.rows),
            columns,
            properties: Arc::new(properties),
        }))
    }
}

/// The plan node.
struct GatherRows {
    table: &'static Table,
    words: Arc<Vocabulary>,
    gather: Gather,
    rows: Arc<OnceLock<std::result::Result<RecordBatch, String>>>,
    columns: Vec<usize>,
    properties: Arc<PlanProperties>,
}

impl fmt::Debug for GatherRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatherRows").field("table", &self.table.name).finish_non_exhaustive()
    }
}

impl DisplayAs for GatherRows {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "GatherRows: table={}", self.table.name)
    }
}

impl ExecutionPlan for GatherRows {
    fn name(&self) -> &'static str {
        "GatherRows"
    }

    leaf!();

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let mut builder = RecordBatchReceiverStream::builder(self.schema(), 2);
        let send = builder.tx();
        let (table, words, gather) = (self.table, Arc::clone(&self.words), self.gather);
        let (rows, columns) = (Arc::clone(&self.rows), self.columns.clone());
        builder.spawn_blocking(move || {
            let gathered = rows.get_or_init(|| gather(&words, Sheet::new(table)).map_err(|error| error.to_string()));
            let all = gathered.as_ref().map_err(|why| DataFusionError::Execution(why.clone()))?.project(&columns)?;
            let mut first = 0;
            while first < all.num_rows() {
                let some = all.slice(first, BATCH_ROWS.min(all.num_rows() - first));
                first += some.num_rows();
                if send.blocking_send(Ok(some)).is_err() {
                    break;
                }
            }
            Ok(())
        });
        Ok(builder.build())
    }
}

/// One value of a gathered row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Cell<'a> {
    Null,
    Int(i64),
    Text(&'a str),
}

impl<'a> Cell<'a> {
    /// Text, or null where it is empty.
    pub(super) fn some(text: &'a str) -> Cell<'a> {
        if text.is_empty() { Cell::Null } else { Cell::Text(text) }
    }

    /// A number that may not be there.
    pub(super) fn maybe(number: Option<i64>) -> Cell<'a> {
        number.map_or(Cell::Null, Cell::Int)
    }
}

impl From<u64> for Cell<'_> {
    fn from(number: u64) -> Self {
        Cell::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// Collects rows of a table.
pub(super) struct Sheet {
    table: &'static Table,
    columns: Vec<Builder>,
}

enum Builder {
    Integer(Int64Builder),
    Real(Float64Builder),
    Word(StringDictionaryBuilder<Int32Type>),
    Text(StringBuilder),
}

impl Sheet {
    fn new(table: &'static Table) -> Sheet {
        let builder = |kind| match kind {
            ColumnKind::Integer => Builder::Integer(Int64Builder::new()),
            ColumnKind::Real => Builder::Real(Float64Builder::new()),
            ColumnKind::Word => Builder::Word(StringDictionaryBuilder::new()),
            ColumnKind::Text => Builder::Text(StringBuilder::new()),
        };
        Sheet { table, columns: table.columns.iter().map(|column| builder(column.kind)).collect() }
    }

    /// Adds a row: a cell per column.
    pub(super) fn add(&mut self, cells: &[Cell<'_>]) -> Result<()> {
        if cells.len() != self.columns.len() {
            let message = format!("a row of {} has {} cells", self.table.name, cells.len());
            return Err(DataFusionError::Internal(message));
        }
        for (column, cell) in self.columns.iter_mut().zip(cells) {
            match (column, cell) {
                (Builder::Integer(column), Cell::Int(number)) => column.append_value(*number),
                (Builder::Integer(column), _) => column.append_null(),
                (Builder::Real(column), Cell::Int(number)) => column.append_value(*number as f64),
                (Builder::Real(column), _) => column.append_null(),
                (Builder::Word(column), Cell::Text(text)) => drop(column.append(text)?),
                (Builder::Word(column), _) => column.append_null(),
                (Builder::Text(column), Cell::Text(text)) => column.append_value(text),
                (Builder::Text(column), _) => column.append_null(),
            }
        }
        Ok(())
    }

    /// The rows.
    pub(super) fn finish(self) -> Result<RecordBatch> {
        let columns = self.columns.into_iter().map(|column| -> ArrayRef {
            match column {
                Builder::Integer(mut column) => Arc::new(column.finish()),
                Builder::Real(mut column) => Arc::new(column.finish()),
                Builder::Word(mut column) => Arc::new(column.finish()),
                Builder::Text(mut column) => Arc::new(column.finish()),
            }
        });
        Ok(RecordBatch::try_new(self.table.schema(), columns.collect())?)
    }
}
