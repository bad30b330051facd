//! The command line.

use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Parser, ValueEnum};

/// Ask questions about a run in SQL.
///
/// The tables are events, spans, io, files, processes, threads, hosts, counters, system, metadata and damage; `--schema` describes them.
#[derive(Debug, Parser)]
#[command(name = "weft-sql", version, max_term_width = 100, after_help = EXAMPLES)]
pub(crate) struct Options {
    /// How to print the result
    #[arg(long, value_enum, default_value_t = Format::Table, hide_default_value = true)]
    pub(crate) format: Format,
    /// Write the result to a file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Read the traces without an index; nothing is written
    #[arg(long)]
    pub(crate) no_index: bool,
    /// Show how the query would be answered
    #[arg(long)]
    pub(crate) explain: bool,
    /// Only this group of a directory with a manifest.json (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Vec<String>,
    /// Threads to use [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Memory that the query itself may take, in MiB [default: three quarters of what is free]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(16..))]
    pub(crate) memory: Option<u32>,
    /// Describe all tables, columns and functions (Markdown) and stop
    #[arg(long)]
    pub(crate) schema: bool,
    /// Run directories, trace files or globs, and behind them the query; `-` reads the query from stdin
    #[arg(value_name = "RUN... SQL", required_unless_present = "schema")]
    pub(crate) words: Vec<OsString>,
}

const EXAMPLES: &str = "Examples:
  weft-sql runs/baseline \"SELECT op, count(*), human_size(sum(bytes)) FROM io GROUP BY op\"
  weft-sql --format csv -o slow.csv trace.pfw.gz \"SELECT * FROM spans ORDER BY dur_ns DESC LIMIT 100\"
  weft-sql --explain runs/baseline \"SELECT count(*) FROM io WHERE path LIKE '/scratch/%'\"";

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Columns for people
    Table,
    /// Comma-separated values with a header
    Csv,
    /// An array of objects, one per line
    Json,
    /// A Parquet file
    Parquet,
    /// An Arrow IPC stream
    Arrow,
}

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
    pub(crate) fn of(options: Options) -> anyhow::Result<Order> {
        if options.schema {
            return Ok(Order::Schema);
        }
        let binary = matches!(options.format, Format::Parquet | Format::Arrow);
        if binary && options.output.is_none() && std::io::stdout().is_terminal() {
            bail!("this format is not for terminals; send it to a file with -o FILE or to another program");
        }
        let mut runs: Vec<PathBuf> = options.words.into_iter().map(PathBuf::from).collect();
        let sql = match (runs.pop(), runs.len()) {
            (Some(word), 0) => {
                bail!("name a run and then the query: weft-sql RUN... SQL (there is only {})", word.display())
            }
            (Some(word), _) if word.as_os_str() == "-" => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).context("cannot read the query from stdin")?;
                text
            }
            (Some(word), _) => word.into_os_string().into_string().ok().context("the query is not UTF-8")?,
            (None, _) => bail!("name a run and then the query: weft-sql RUN... SQL"),
        };
        Ok(Order::Query(Query {
            runs,
            sql,
            format: options.format,
            output: options.output,
            no_index: options.no_index,
            explain: options.explain,
            groups: options.group,
            threads: options.threads.map(usize::from),
            memory: options.memory.map(|mebibytes| (mebibytes as usize) << 20),
        }))
    }
}
