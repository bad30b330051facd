//! The command line.
#![allow(rustdoc::invalid_html_tags, reason = "comments on arguments are the help text, which is no Markdown")]

mod collect;
mod top;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use weftline_analysis::condition::Condition;
use weftline_analysis::hlm::ViewType;
use weftline_analysis::presets::Preset;
use weftline_drain::DrainError;

pub(crate) use collect::{CollectArgs, parse_interval};
pub(crate) use top::TopArgs;

/// Trace a program tree and see where the time and the bytes went.
#[derive(Debug, Parser)]
#[command(name = "weft", version = VERSION, max_term_width = 100, disable_help_subcommand = true)]
pub(crate) struct Options {
    /// When to use colour
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, hide_default_value = true)]
    pub(crate) color: Color,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Version, with the revision when the build knew it.
pub(crate) const VERSION: &str = env!("WEFT_VERSION");

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a program and trace it with all its children
    ///
    /// The program's output, exit code and files are the same as without weft. When it ends, a summary is printed on stderr.
    #[command(after_help = RUN_EXAMPLES)]
    Run(RunArgs),
    /// Sample this host and processes: CPU, memory, disks, network, GPUs
    ///
    /// Samples are counters beside the trace; `weft run` takes them of its own program by itself.
    #[command(after_help = collect::EXAMPLES)]
    Collect(CollectArgs),
    /// Show what a run holds
    Info(ReadArgs),
    /// Tell whether a run is valid, complete and covered; exit 1 when events were lost or files are damaged
    Check(ReadArgs),
    /// Tell where the time and the bytes went, and what to fix
    ///
    /// Any run or trace: ours, DFTracer's, PerfFlowAspect's, Chrome's. The first question builds an index beside the traces.
    #[command(after_help = REPORT_EXAMPLES)]
    Report(ReportArgs),
    /// Build or complete the index of a run; every question does so by itself
    Index(IndexArgs),
    /// Ask questions about a run in SQL; answered by the program weft-sql
    #[command(after_help = QUERY_EXAMPLES)]
    Query(QueryArgs),
    /// Turn what killed runs and programs left into trace files; every other verb does so by itself for its run
    Recover(RecoverArgs),
    /// Compile with clang and weave the recorder into annotated functions
    ///
    /// Stands before the compiler: CC="weft weave -- clang" in make, CMake and configure. Functions are chosen by
    /// __attribute__((annotate("@critical_path()"))), by a list of rules, or all of them. The exit code is the compiler's.
    #[command(after_help = WEAVE_EXAMPLES)]
    Weave(WeaveArgs),
    /// Watch a run in progress: its processes, its hottest calls and files
    ///
    /// Shows what the arenas of the run hold at this moment; neither the programs nor their supervisor notice. Keys: q quits, ? tells the others.
    #[command(after_help = top::EXAMPLES)]
    Top(TopArgs),
    /// Print the variables to set where `weft run` cannot be used (srun, mpiexec, a daemon)
    Env(EnvArgs),
    /// Find out why nothing was captured, and what this installation lacks
    Doctor(DoctorArgs),
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a directory, or print weft(1)
    Man {
        /// Where to write `weft.1`, `weft-run.1`, …
        directory: Option<PathBuf>,
    },
    /// Print a generated document of this project
    #[command(hide = true)]
    Docs {
        /// Which one
        document: Document,
    },
}

const RUN_EXAMPLES: &str = "Examples:
  weft run -- python3 train.py --epochs 3
  weft run -o runs/baseline --exclude '/proc/**' -- ./simulate input.nc
  weft run --max-size 500M -q -- make -j8";

const WEAVE_EXAMPLES: &str = "Examples:
  weft weave -- clang++ -O2 -o simulate simulate.cpp
  make CC='weft weave --all=50 -- clang'
  weft weave --rules $PWD/weft.weave.toml -- clang -c library.c
  weft weave --setup -- clang-19   builds the plugin for this compiler";

const QUERY_EXAMPLES: &str = "Examples:
  weft query \"SELECT op, count(*), human_size(sum(bytes)) FROM io GROUP BY op\"
  weft query --format csv -o slow.csv runs/baseline \"SELECT * FROM spans ORDER BY dur_ns DESC LIMIT 100\"
  weft query --schema   describes all tables, columns and functions";

const REPORT_EXAMPLES: &str = "Examples:
  weft report
  weft report --view file_name --csv tables runs/baseline
  weft report --where \"path LIKE '/scratch/%' AND dur_ns > 1000000\" --from 10s --to 60s traces/*.pfw.gz
  weft report --fail-on high --set small-reads.bytes=65536 --html report.html runs/nightly";

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Document {
    /// The table of hooked calls
    Hooks,
    /// Environment variables
    Env,
    /// This command line
    Cli,
    /// What is masked in command lines
    Masking,
    /// Rules and thresholds of findings
    Findings,
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Directory of the run [default: weft-runs/<time>-<name>-<id>]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Let others read the run, as far as the umask does [default: it is for you alone]
    #[arg(long)]
    pub(crate) share: bool,
    /// Keep no arguments of command lines, only the programs' names [default: arguments are kept, secrets masked]
    #[arg(long)]
    pub(crate) no_args: bool,
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
    /// Let spans tell the processor time they used and the memory at both ends (a few microseconds per span), and in programs that use CUDA how
    /// busy the GPUs are
    #[arg(long)]
    pub(crate) span_usage: bool,
    /// Keep at most this much trace on this node, dropping the oldest (500M, 2G)
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub(crate) max_size: Option<u64>,
    /// What to do when events come faster than they can be written, for long
    #[arg(long, value_enum, default_value_t = OnFull::Drop)]
    pub(crate) on_full: OnFull,
    /// Longest time a thread waits with --on-full=wait
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = parse_duration)]
    pub(crate) wait_limit: Duration,
    /// Where the shared memory lies that programs record into: in memory unless that is scarce, or on a local disk
    #[arg(long, value_enum, value_name = "PLACE", default_value_t = Arenas::Automatic)]
    pub(crate) arenas: Arenas,
    /// Make a file named by the program's pid here while it runs
    #[arg(long, value_name = "DIR")]
    pub(crate) pid_dir: Option<PathBuf>,
    /// Time between samples of the host and of the program's processes
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = parse_interval)]
    pub(crate) sample: Duration,
    /// Take no samples
    #[arg(long, conflicts_with = "sample")]
    pub(crate) no_sample: bool,
    /// Also record what the kernel saw: system calls of any program, io_uring, page faults, block devices (root, or CAP_BPF and CAP_PERFMON)
    #[arg(long)]
    pub(crate) kernel: bool,
    /// Print no summary
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The program and its arguments; the first word that is no option begins it
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Arenas {
    /// In memory where there is enough of it, else on a disk
    Automatic,
    /// In memory
    Memory,
    /// On a local disk: where memory is short, or /dev/shm is hidden from the program
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

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// A run directory or trace files [default: the newest run in weft-runs]
    pub(crate) run: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is to be analysed, and how its traces are read.
#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// Run directories, trace files or globs [default: the newest run in weft-runs]
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Only this group of a directory with a manifest.json (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Vec<String>,
    /// Read the traces without an index; nothing is written
    #[arg(long)]
    pub(crate) no_index: bool,
    /// Threads to use [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
}

#[derive(Debug, Args)]
pub(crate) struct IndexArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// Remove the index; the traces stay
    #[arg(long, conflicts_with = "no_index")]
    pub(crate) remove: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The arguments of weft-sql: they are handed on as they are.
#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    /// How to print the result
    #[arg(long, value_name = "FORMAT", value_parser = ["table", "csv", "json", "parquet", "arrow"])]
    pub(crate) format: Option<String>,
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
    /// Runs, trace files or globs [default: the newest run in weft-runs], and behind them the query; `-` reads the query from stdin
    #[arg(value_name = "RUN... SQL", required_unless_present = "schema")]
    pub(crate) words: Vec<OsString>,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) open: OpenArgs,
    /// The layers of the job: posix, dlio, ai, auto [default: what the trace's categories speak for]
    #[arg(long, value_name = "NAME", value_parser = parse_preset)]
    pub(crate) preset: Option<Preset>,
    /// Add a view: time_range, proc_name, file_name, file_dir, file_pattern, host_name, rank, epoch, step (may be repeated)
    #[arg(long, value_name = "VIEW", value_parser = parse_view)]
    pub(crate) view: Vec<ViewType>,
    /// Width of a time step, such as 1s or 200ms [default: about sixty steps; 1s for views]
    #[arg(long, value_name = "TIME", value_parser = parse_step)]
    pub(crate) time: Option<Duration>,
    /// Only what happened from this time on, counted from the run's start
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) from: Option<Duration>,
    /// Only what began before this time
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub(crate) to: Option<Duration>,
    /// Only events for which this holds, in SQL's words: columns name, cat, path, host, pid, tid, rank, ts_ns, dur_ns, size, ret, …
    #[arg(long = "where", value_name = "CONDITION", value_parser = parse_condition)]
    pub(crate) condition: Option<Condition>,
    /// Rows of each list of the largest
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) top: usize,
    /// Exit with 1 when a finding is at least this severe
    #[arg(long, value_enum, value_name = "SEVERITY")]
    pub(crate) fail_on: Option<Gate>,
    /// Change a threshold of a rule (see docs/findings.md; may be repeated)
    #[arg(long, value_name = "RULE.NAME=VALUE")]
    pub(crate) set: Vec<String>,
    /// Read thresholds and rules of your own from a YAML file (may be repeated)
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Vec<PathBuf>,
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
    /// Write a page for a browser; - prints it
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
}

/// A severity at which a gate closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Gate {
    /// Anything at all
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

#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// Run directories, directories with traces of programs that recorded themselves, or what the names of these begin with [default: the
    /// newest run in weft-runs, and the working directory]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Print nothing when all is well
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// The calling process has ended, though it still waits: it cannot finish its trace itself
    #[arg(long, hide = true)]
    pub(crate) ended: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WeaveArgs {
    /// What woven code calls
    #[arg(long, value_enum, default_value_t = WeaveAbi::Weft)]
    pub(crate) abi: WeaveAbi,
    /// Also weave the functions that this list names (TOML, see docs/weave.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,
    /// Also weave every function with at least N instructions of LLVM's code [default N: 20]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "20",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) all: Option<u32>,
    /// Print the flags instead of compiling, for a build that has no place for a command before its compiler
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) print_flags: Option<FlagKind>,
    /// Build the plugin for the compiler named, or for every LLVM on this machine (needs cargo, g++ and LLVM's headers)
    #[arg(long, conflicts_with = "print_flags")]
    pub(crate) setup: bool,
    /// The compiler and its arguments
    #[arg(trailing_var_arg = true, required_unless_present_any = ["setup", "print_flags"], value_name = "COMPILER")]
    pub(crate) command: Vec<OsString>,
}

/// What woven code calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WeaveAbi {
    /// libweft.so
    Weft,
    /// libperfflow_runtime.so, as code woven by PerfFlowAspect does
    Perfflow,
}

impl WeaveAbi {
    /// As the plugin's option spells it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            WeaveAbi::Weft => "weft",
            WeaveAbi::Perfflow => "perfflow",
        }
    }
}

/// Flags that can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlagKind {
    /// For what is compiled
    Compile,
    /// For what is linked
    Link,
    /// Both
    All,
}

#[derive(Debug, Args)]
pub(crate) struct EnvArgs {
    /// Directory of the run; the same on all nodes
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Let others read the run, as far as the umask does [default: it is for you alone]
    #[arg(long)]
    pub(crate) share: bool,
    /// Keep no arguments of command lines, only the programs' names [default: arguments are kept, secrets masked]
    #[arg(long)]
    pub(crate) no_args: bool,
    /// How to write the variables
    #[arg(long, value_enum, default_value_t = Syntax::Sh)]
    pub(crate) syntax: Syntax,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Syntax {
    /// export NAME='value'
    Sh,
    /// setenv NAME 'value'
    Csh,
    /// set -gx NAME 'value'
    Fish,
    /// NAME=value, one a line
    Plain,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// List the optional parts of this installation and stop
    #[arg(long, conflicts_with = "command")]
    pub(crate) parts: bool,
    /// The program that you want to trace
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
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
        _ => return Err("use a number with K, M, G or T behind it, such as 500M".into()),
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
        return Err("it is empty and would match nothing".into());
    }
    match weftline_drain::check_patterns(&[text.to_owned()]) {
        Ok(()) => Ok(text.to_owned()),
        // Its own words repeat the pattern, and so does the parser.
        Err(DrainError::Pattern { source, .. }) => Err(source.kind().to_string()),
        Err(error) => Err(error.to_string()),
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

/// A time that is not zero.
fn parse_step(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .and_then(|step| if step.is_zero() { Err("must be more than nothing".into()) } else { Ok(step) })
}

/// `50us`, `200ms`, `2s`, `1m`, `1h`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: f64 = digits.parse().map_err(|_| "use a time such as 200ms or 2s".to_string())?;
    let seconds = match &text[digits.len()..] {
        "us" => number / 1e6,
        "ms" => number / 1e3,
        "s" | "" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        _ => return Err("use us, ms, s, m or h behind the number".into()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| "use a time that is not negative and not endless".to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        Options::command().debug_assert();
    }

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
    fn mistyped_options_are_no_programs() {
        for (line, hint) in [
            ("weft run --max-sise 5G -- ls", "--max-size"),
            ("weft run --inclde /data/** ls", "--include"),
            ("weft run -z ls", "-z"),
            ("weft run --include [ -- ls", "unclosed character class"),
            ("weft run --exclude {a ls", "unclosed alternate group"),
            ("weft run --max-size 1e300G ls", "no disk"),
            ("weft run --max-size nan ls", "use a number"),
            ("weft run --wait-limit -1s ls", "-1"),
            ("weft run --wait-limit=-1s ls", "not negative"),
            ("weft run --sample 1s --no-sample ls", "--no-sample"),
            ("weft weave --al=5 -- clang", "--all"),
            ("weft doctor --part ls", "--parts"),
            ("weft env --shre", "--share"),
            ("weft collect --intervall 1s", "--interval"),
        ] {
            let error = Options::try_parse_from(line.split(' ')).expect_err(line);
            assert_eq!(error.exit_code(), 2, "{line}");
            assert!(error.to_string().contains(hint), "{line}: {error}");
        }
    }

    #[test]
    fn sizes_and_times() {
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
        assert_eq!(parse_duration("200ms"), Ok(Duration::from_millis(200)));
        assert!(parse_duration("fast").is_err());
    }
}
