//! Arguments of `weft top`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

/// Shorter intervals would show noise and cost more than they show.
const LEAST_INTERVAL: Duration = Duration::from_millis(50);

pub(crate) const EXAMPLES: &str = "Examples:
  weft top                                  the newest run in weft-runs
  weft top runs/nightly --interval 200ms
  weft top --once --json runs/nightly       for a script";

#[derive(Debug, Args)]
pub(crate) struct TopArgs {
    /// A run directory [default: the newest run in weft-runs that is in progress]
    pub(crate) run: Option<PathBuf>,
    /// Time between updates
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    pub(crate) interval: Duration,
    /// Print one interval as a table and exit
    #[arg(long)]
    pub(crate) once: bool,
    /// Print JSON
    #[arg(long, requires = "once")]
    pub(crate) json: bool,
}

fn parse_interval(text: &str) -> Result<Duration, String> {
    match super::parse_duration(text)? {
        interval if interval < LEAST_INTERVAL => Err("use at least 50ms".into()),
        interval if interval > Duration::from_secs(3600) => Err("use at most 1h".into()),
        interval => Ok(interval),
    }
}
