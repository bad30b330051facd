//! The arguments of `weft report`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use weftline_analysis::condition::Condition;
use weftline_analysis::hlm::ViewType;
use weftline_analysis::presets::Preset;

use super::{OpenArgs, parse_duration, parse_step};

pub(super) const EXAMPLES: &str = "Examples:
  weft report
  weft report --view file_name --csv tables runs/baseline
  weft report --where \"path LIKE '/scratch/%'\" --from 10s --to 60s traces/*.pfw.gz
  weft report --explain small-reads runs/baseline
  weft report --fail-on high --set small-reads.size=64K --html report.html runs/nightly";

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// Layers of the job: posix, dlio, ai, auto [default: chosen by the trace's categories]
    #[arg(long, value_name = "NAME", value_parser = parse_preset)]
    pub(crate) preset: Option<Preset>,
    /// Add a view: time_range, proc_name, file_name, file_dir, file_pattern, host_name, rank, epoch, step (may be repeated)
    #[arg(long, value_name = "VIEW", value_parser = parse_view)]
    pub(crate) view: Vec<ViewType>,
    /// Width of a time step, such as 1s or 200ms [default: about sixty steps; 1s for views]
    #[arg(long, value_name = "TIME", value_parser = parse_step)]
    pub(crate) time: Option<Duration>,
    /// Only events from this time on, counted from the run's start
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) from: Option<Duration>,
    /// Only events that began before this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) to: Option<Duration>,
    /// Only events that match an SQL condition on the columns name, cat, path, host, pid, tid, rank, ts_ns, dur_ns, size, ret, …
    #[arg(long = "where", value_name = "CONDITION", value_parser = parse_condition)]
    pub(crate) condition: Option<Condition>,
    /// Rows of each top list
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// Exit with 1 if a finding is at least this severe
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub(crate) fail_on: Option<Gate>,
    /// Change a threshold of a rule (see docs/findings.md; may be repeated)
    #[arg(long, value_name = "RULE.NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Read thresholds and rules of your own from a YAML file (may be repeated)
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,
    /// Show the findings of a rule in full: evidence, processes, files and a query
    #[arg(long, value_name = "RULE", conflicts_with_all = ["no_findings", "json", "csv", "sqlite", "parquet", "html"])]
    pub(crate) explain: Option<String>,
    /// Leave the findings out
    #[arg(long, conflicts_with = "fail_on")]
    pub(crate) no_findings: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write every table as CSV into a directory
    #[arg(long, value_name = "DIR")]
    pub(crate) csv: Option<PathBuf>,
    /// Write every table into an SQLite database
    #[arg(long, value_name = "FILE")]
    pub(crate) sqlite: Option<PathBuf>,
    /// Write every table as Parquet into a directory
    #[arg(long, value_name = "DIR")]
    pub(crate) parquet: Option<PathBuf>,
    /// Write an HTML page; - prints it
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// The lowest severity that fails the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Gate {
    /// Any finding
    Low,
    /// Worth an hour
    Medium,
    /// A large part of the job's time
    High,
    /// Most of the job's time
    Critical,
}

impl From<Gate> for weftline_analysis::findings::Severity {
    fn from(gate: Gate) -> Self {
        match gate {
            Gate::Low => Self::Low,
            Gate::Medium => Self::Medium,
            Gate::High => Self::High,
            Gate::Critical => Self::Critical,
        }
    }
}

fn parse_preset(name: &str) -> Result<Preset, String> {
    Preset::parse(name).map_err(|error| error.to_string())
}

fn parse_view(name: &str) -> Result<ViewType, String> {
    ViewType::parse(name).map_err(|error| error.to_string())
}

fn parse_condition(text: &str) -> Result<Condition, String> {
    Condition::parse(text).map_err(|error| error.to_string())
}
