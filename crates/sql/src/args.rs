//! The command line.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::Parser;
use weftline_query::QueryArgs;

pub(crate) use weftline_query::Format;

/// Ask questions about a run in SQL.
///
/// The tables are events, spans, io, files, processes, threads, hosts, counters, system, metadata and damage; `--schema` describes them.
#[derive(Debug, Parser)]
#[command(name = "weft-sql", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) query: QueryArgs,
}

const EXAMPLES: &str = "Examples:
  weft-sql runs/baseline \"SELECT op, count(*), human_size(sum(bytes)) FROM io GROUP BY op\"
  weft-sql --format csv -o slow.csv trace.pfw.gz \"SELECT * FROM spans ORDER BY dur_ns DESC LIMIT 100\"
  weft-sql --explain runs/baseline \"SELECT count(*) FROM io WHERE path LIKE '/scratch/%'\"";

/// What is to be done.
pub(crate) enum Order {
    /// Print the schema.
    Schema,
    /// Answer a query.
    Query(Query),
}

/// A query, and where its answer goes.
pub(crate) struct Query {
    pub(crate) runs: Vec<PathBuf>,
    pub(crate) sql: String,
    pub(crate) format: Format,
    pub(crate) output: Option<PathBuf>,
    pub(crate) no_index: bool,
    pub(crate) explain: bool,
    pub(crate) groups: Vec<String>,
    pub(crate) threads: Option<usize>,
    /// In bytes.
    pub(crate) memory: Option<usize>,
}

impl Order {
    /// What the command line says. Errors are those of usage.
    pub(crate) fn of(options: QueryArgs) -> anyhow::Result<Order> {
        let format = options.format.unwrap_or(Format::Table);
        if options.schema {
            return Ok(Order::Schema);
        }
        let binary = matches!(format, Format::Parquet | Format::Arrow);
        if binary && options.output.is_none() && std::io::stdout().is_terminal() {
            bail!("this format is binary; write it to a file with -o FILE, or pipe it to a program");
        }
        let mut runs: Vec<PathBuf> = options.words.into_iter().map(PathBuf::from).collect();
        let sql = match (runs.pop(), runs.len()) {
            (Some(word), 0) => {
                bail!("give a run and then the query: weft-sql RUN... SQL (got only {})", word.display())
            }
            (Some(word), _) if word.as_os_str() == "-" => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).context("cannot read the query from stdin")?;
                text
            }
            (Some(word), _) => word.into_os_string().into_string().ok().context("the query is not UTF-8")?,
            (None, _) => bail!("give a run and then the query: weft-sql RUN... SQL"),
        };
        Ok(Order::Query(Query {
            runs,
            sql,
            format,
            output: options.output,
            no_index: options.no_index,
            explain: options.explain,
            groups: options.group,
            threads: options.threads.map(usize::from),
            memory: options.memory.map(|mebibytes| (mebibytes as usize) << 20),
        }))
    }
}
