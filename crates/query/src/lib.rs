//! The command line of `weft query`, which executes `weft-sql`: both take these arguments.
//!
//! A crate of its own, because `weft` must not link DataFusion, and `weft-sql` must not link the command.
#![forbid(unsafe_code)]
#![allow(rustdoc::invalid_html_tags, reason = "comments on arguments are the help text, which is no Markdown")]

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The query, and where its result goes.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct QueryArgs {
    /// How to print the result [default: table]
    #[arg(long, value_enum)]
    pub format: Option<Format>,
    /// Write the result to a file
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Read the traces without an index; write nothing
    #[arg(long)]
    pub no_index: bool,
    /// Show the query plan
    #[arg(long)]
    pub explain: bool,
    /// Only this group of a directory with a manifest.json (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub group: Vec<String>,
    /// Threads to use [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Memory limit of the query in MiB [default: three quarters of the free memory]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(16..))]
    pub memory: Option<u32>,
    /// Only describe all tables, columns and functions (Markdown)
    #[arg(long)]
    pub schema: bool,
    /// Runs, trace files or globs [default: the newest run in weft-runs], then the query; `-` reads the query from stdin
    #[arg(value_name = "RUN... SQL", required_unless_present = "schema")]
    pub words: Vec<OsString>,
}

/// How a result is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Aligned columns
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

impl QueryArgs {
    /// The same arguments as a command line.
    pub fn command_line(&self) -> Vec<OsString> {
        let format = self.format.and_then(|format| Some(format.to_possible_value()?.get_name().to_owned()));
        let mut words: Vec<OsString> = Vec::new();
        let mut option = |name: &str, value: Option<&OsStr>| {
            words.push(name.into());
            words.extend(value.map(OsStr::to_owned));
        };
        if let Some(format) = &format {
            option("--format", Some(format.as_ref()));
        }
        if let Some(output) = &self.output {
            option("--output", Some(output.as_ref()));
        }
        for group in &self.group {
            option("--group", Some(group.as_ref()));
        }
        if let Some(threads) = self.threads {
            option("--threads", Some(threads.to_string().as_ref()));
        }
        if let Some(memory) = self.memory {
            option("--memory", Some(memory.to_string().as_ref()));
        }
        for (name, given) in [("--no-index", self.no_index), ("--explain", self.explain), ("--schema", self.schema)] {
            if given {
                option(name, None);
            }
        }
        option("--", None);
        words.extend(self.words.iter().cloned());
        words
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Given {
        #[command(flatten)]
        query: QueryArgs,
    }

    fn parsed(words: impl IntoIterator<Item = OsString>) -> QueryArgs {
        let words = std::iter::once(OsString::from("query")).chain(words);
        Given::try_parse_from(words).unwrap_or_else(|error| panic!("{error}")).query
    }

    /// What one program was given, the other one is given.
    fn check(line: &str, expected: &str) {
        let args = parsed(line.split(' ').map(OsString::from));
        let handed_on = args.command_line();
        assert_eq!(handed_on.join(OsStr::new(" ")), expected);
        assert_eq!(parsed(handed_on), args, "{line}");
    }

    #[test]
    fn all_arguments_are_handed_on() {
        check("run SELECT", "-- run SELECT");
        check("--schema", "--schema --");
        check("-- --odd-run SELECT", "-- --odd-run SELECT");
        check(
            "--format csv -o x.csv --no-index --explain --group=a --group b --threads 3 --memory 64 r1 r2 -",
            "--format csv --output x.csv --group a --group b --threads 3 --memory 64 --no-index --explain -- r1 r2 -",
        );
    }
}
