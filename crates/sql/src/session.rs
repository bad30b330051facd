//! The run, opened, and DataFusion over it.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::Arc;

use anyhow::Context as _;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use weftline_index::progress::Silent;
use weftline_index::{OpenOptions, Run};

use crate::args::{Format, Query};
use crate::output;
use crate::tables::Vocabulary;
use crate::{functions, guard, tables};

/// Names in front of a table's, as plans show them.
pub(crate) const CATALOG: &str = "weft";
pub(crate) const SCHEMA: &str = "run";

/// Answers a query.
pub(crate) async fn answer(query: Query) -> anyhow::Result<()> {
    let sql = if query.explain { format!("EXPLAIN {}", query.sql) } else { query.sql.clone() };
    // Before the run is opened: a typing error need not wait for the index.
    let statement = guard::parse(&query.sql).and_then(|statement| {
        if query.explain && !guard::explains(&statement) { guard::parse(&sql) } else { Ok(statement) }
    })?;
    let as_plan = guard::explains(&statement) && query.format == Format::Table;
    let (context, run) = open(&query)?;
    let plan = context.state().statement_to_plan(statement).await?;
    guard::verify(&plan)?;
    let result: DataFrame = context.execute_logical_plan(plan).await?;
    let written = match as_plan {
        true => output::plan(result, query.output.as_deref()).await,
        false => output::write(result, query.format, query.output.as_deref()).await,
    };
    // A page may turn out to be damaged when it is read, so this is known only now.
    if let Some(why) = run.refused() {
        let _ = writeln!(std::io::stderr(), "weft-sql: reading the traces without an index: {why}");
    }
    written
}

/// Opens the run and makes its tables known.
fn open(query: &Query) -> anyhow::Result<(SessionContext, Arc<Run>)> {
    let options = OpenOptions {
        no_index: query.no_index,
        groups: query.groups.clone(),
        threads: query.threads,
        // `weft query` has built the index by now, and drawn a bar meanwhile.
        progress: Arc::new(Silent),
    };
    let run = Arc::new(Run::open(&query.runs, &options).context("cannot open the run")?);
    run.prepare().context("cannot read the run")?;
    let words = Arc::new(Vocabulary::new(Arc::clone(&run))?);
    let threads = query.threads.or_else(|| std::thread::available_parallelism().ok().map(usize::from)).unwrap_or(1);
    let config = SessionConfig::new()
        .with_target_partitions(threads)
        .with_information_schema(true)
        .with_default_catalog_and_schema(CATALOG, SCHEMA);
    // A query writes nothing, not even for itself.
    let disk = DiskManagerBuilder::default().with_mode(DiskManagerMode::Disabled);
    let mut runtime = RuntimeEnvBuilder::new().with_disk_manager_builder(disk);
    // Without a bound a query with too many groups would end with the machine out of memory, and perhaps not this process first.
    if let Some(limit) = query.memory.or_else(|| Some(free_memory()? / 4 * 3)) {
        runtime = runtime.with_memory_pool(Arc::new(GreedyMemoryPool::new(limit)));
    }
    let runtime = runtime.build_arc()?;
    let state = SessionStateBuilder::new()
        .with_config(config)
        .with_runtime_env(runtime)
        .with_default_features()
        .with_table_factories(HashMap::new())
        .with_file_formats(Vec::new())
        .build();
    let context = SessionContext::new_with_state(state);
    for (name, table) in tables::all(&words) {
        context.register_table(name, table)?;
    }
    functions::scalars(&words).into_iter().for_each(|function| context.register_udf(function));
    functions::aggregates().into_iter().for_each(|function| context.register_udaf(function));
    Ok((context, run))
}

/// What the machine could give without swapping, in bytes.
fn free_memory() -> Option<usize> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok()?.checked_mul(1024)
}
