//! The arguments of `weft run`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use weftline_drain::DrainError;

use super::{PrivacyArgs, parse_duration, parse_interval};

pub(super) const EXAMPLES: &str = "Examples:
  weft run -- python3 train.py --epochs 3
  weft run -o runs/baseline --exclude '/proc/**' -- ./simulate input.nc
  weft run --max-size 500M -q -- make -j8";

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Directory of the run [default: weft-runs/<time>-<name>-<id>]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) privacy: PrivacyArgs,
    /// Do not record the data loaders of Python programs [default: torch's are recorded if the weftline package is installed]
    #[arg(long)]
    pub(crate) no_auto: bool,
    /// Name of the run [default: the program's]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// Keep only events on paths that match (may be repeated; ** crosses directories)
    #[arg(long, value_name = "GLOB", value_parser = parse_glob)]
    pub(crate) include: Vec<String>,
    /// Leave out events on paths that match
    #[arg(long, value_name = "GLOB", value_parser = parse_glob)]
    pub(crate) exclude: Vec<String>,
    /// Record processes and annotations, no I/O calls
    #[arg(long)]
    pub(crate) no_io: bool,
    /// Add CPU time and memory to every span (a few microseconds per span), and GPU usage in programs that use CUDA
    #[arg(long)]
    pub(crate) span_usage: bool,
    /// Keep at most this much trace on this node; drop the oldest events (500M, 2G)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_size: Option<u64>,
    /// What to do when events come faster than they can be written and shared memory is full
    #[arg(long, value_enum, default_value_t = OnFull::Drop)]
    pub(crate) on_full: OnFull,
    /// Longest time a thread waits with --on-full=wait
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    pub(crate) wait_limit: Duration,
    /// Where to put the shared memory that programs record into
    #[arg(long, value_enum, value_name = "PLACE", default_value_t = Arenas::Automatic)]
    pub(crate) arenas: Arenas,
    /// While the program runs, keep a file named by its pid in DIR
    #[arg(long, value_name = "DIR")]
    pub(crate) pid_dir: Option<PathBuf>,
    /// Time between samples of the host and of the program's processes
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_interval)]
    pub(crate) sample: Duration,
    /// Take no samples
    #[arg(long, conflicts_with = "sample")]
    pub(crate) no_sample: bool,
    /// Also record kernel tracepoints: system calls of any program, io_uring, page faults, block devices (root, or CAP_BPF and CAP_PERFMON)
    #[arg(long)]
    pub(crate) kernel: bool,
    /// Print no summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The program and its arguments, from the first word that is not an option
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arenas {
    /// In memory if there is enough, else on a local disk
    Automatic,
    /// In memory
    Memory,
    /// On a local disk: if memory is scarce, or the program cannot see /dev/shm
    Disk,
}

impl From<Arenas> for weftline_drain::Place {
    fn from(arenas: Arenas) -> Self {
        match arenas {
            Arenas::Automatic => Self::Automatic,
            Arenas::Memory => Self::Memory,
            Arenas::Disk => Self::Disk,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnFull {
    /// Drop events and count them
    Drop,
    /// Make the program wait, for a bounded time
    Wait,
}

/// `500M`, `2G`, `4096`; powers of 1024.
fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_lowercase().trim_end_matches('b').trim_end_matches('i') {
        "" => 0,
        "k" => 10,
        "m" => 20,
        "g" => 30,
        "t" => 40,
        _ => return Err("use a number with the unit K, M, G or T, such as 500M".into()),
    };
    let number: f64 = digits.parse().map_err(|_| "use a number such as 500M or 1.5G".to_string())?;
    let bytes = number * f64::from(1u32 << (unit % 30)) * if unit >= 30 { (1u64 << 30) as f64 } else { 1.0 };
    match bytes {
        // Not a number is neither.
        _ if bytes >= MOST_BYTES => Err("no disk holds that much".into()),
        _ if bytes >= 1_048_576.0 => Ok(bytes as u64),
        _ => Err("at least 1M is needed".into()),
    }
}

/// An exbibyte.
const MOST_BYTES: f64 = (1u64 << 60) as f64;

fn parse_glob(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("an empty pattern matches nothing".into());
    }
    match weftline_drain::check_patterns(&[text.to_owned()]) {
        Ok(()) => Ok(text.to_owned()),
        // Its own words repeat the pattern, and so does the parser.
        Err(DrainError::Pattern { source, .. }) => Err(source.kind().to_string()),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::super::{Command, Options};
    use super::*;

    #[test]
    fn everything_behind_the_program_is_its_own() {
        for (line, expected) in [
            ("weft run -- ls -q --json", vec!["ls", "-q", "--json"]),
            ("weft run -q ls -q", vec!["ls", "-q"]),
            ("weft run -q -- -odd -- x", vec!["-odd", "--", "x"]),
            ("weft run ls -l --max-sise", vec!["ls", "-l", "--max-sise"]),
            ("weft run ls -- -l", vec!["ls", "--", "-l"]),
            ("weft run --name x --no-io env A=B ls", vec!["env", "A=B", "ls"]),
        ] {
            let Command::Run(run) = Options::try_parse_from(line.split(' ')).expect(line).command else {
                panic!("{line}")
            };
            assert_eq!(run.command, expected, "{line}");
        }
        assert!(Options::try_parse_from(["weft", "run"]).is_err());
    }

    #[test]
    fn sizes_have_units() {
        for (text, expected) in [
            ("1M", Some(1 << 20)),
            ("1.5G", Some(3 << 29)),
            ("2GiB", Some(2 << 30)),
            ("7", None),
            ("1X", None),
            ("1e400", None),
        ] {
            assert_eq!(parse_size(text).ok(), expected, "{text}");
        }
    }
}
