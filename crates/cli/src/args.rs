//! The command line.
#![allow(rustdoc::invalid_html_tags, reason = "comments on arguments are the help text, which is no Markdown")]

mod collect;
mod import;
mod list;
mod report;
mod run;
mod top;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use weftline_query::QueryArgs;

pub(crate) use collect::{CollectArgs, parse_interval};
pub(crate) use import::ImportArgs;
pub(crate) use list::ListArgs;
pub(crate) use report::ReportArgs;
pub(crate) use run::{OnFull, RunArgs};
pub(crate) use top::TopArgs;

/// Trace a program tree and see where the time and the bytes went
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
    #[command(after_help = run::EXAMPLES)]
    Run(RunArgs),
    /// Sample this host and chosen processes
    ///
    /// Records CPU, memory, disks, network and GPUs as counters beside the trace. `weft run` samples its own program without this command.
    #[command(after_help = collect::EXAMPLES)]
    Collect(CollectArgs),
    /// Turn traces and logs of other tools into a run
    ///
    /// The format of each file is found from its content. Reading commands do this by themselves: `weft report access.log` needs no import.
    #[command(after_help = import::EXAMPLES)]
    Import(ImportArgs),
    /// List runs with command, exit status and top finding
    #[command(after_help = list::EXAMPLES)]
    List(ListArgs),
    /// Show what a run holds
    #[command(after_help = INFO_EXAMPLES)]
    Info(ReadArgs),
    /// Verify a trace
    ///
    /// Checks that it is valid and complete, and shows how much of the I/O it covers. Exits with 1 if events were lost or files are damaged.
    #[command(after_help = CHECK_EXAMPLES)]
    Check(ReadArgs),
    /// Show where the time and the bytes went, and what to fix
    ///
    /// Reads any run or trace: ours, DFTracer's, PerfFlowAspect's, Chrome's. The first report builds an index beside the traces.
    #[command(after_help = report::EXAMPLES)]
    Report(ReportArgs),
    /// Build, update or remove the index of a run
    ///
    /// Not needed: `weft report` and `weft query` update the index.
    #[command(after_help = INDEX_EXAMPLES)]
    Index(IndexArgs),
    /// Query a run with SQL
    ///
    /// Executes the program weft-sql (pip install weftline-sql, or make sql). Queries are read-only.
    #[command(after_help = QUERY_EXAMPLES)]
    Query(QueryArgs),
    /// Complete the traces of killed runs and programs
    ///
    /// Not needed: every other command completes the run that it reads.
    #[command(after_help = RECOVER_EXAMPLES)]
    Recover(RecoverArgs),
    /// Compile with clang and weave the recorder into functions
    ///
    /// Put it before the compiler: CC="weft weave -- clang" in make, CMake and configure. It weaves functions with
    /// __attribute__((annotate("@critical_path()"))), those that a list of rules names, or all of them. The exit code is the compiler's.
    #[command(after_help = WEAVE_EXAMPLES)]
    Weave(WeaveArgs),
    /// Watch a run in progress
    ///
    /// Shows processes and the hottest calls and files. Reads the run's shared memory without disturbing the programs. Keys: q quits, ? lists the others.
    #[command(after_help = top::EXAMPLES)]
    Top(TopArgs),
    /// Print the variables to set if `weft run` cannot be used
    ///
    /// For programs that srun, mpiexec or a daemon starts.
    #[command(after_help = ENV_EXAMPLES)]
    Env(EnvArgs),
    /// Find out why nothing was captured
    ///
    /// Checks the installation, the machine, the newest run and the program that you name, and lists optional parts that are missing.
    #[command(after_help = DOCTOR_EXAMPLES)]
    Doctor(DoctorArgs),
    /// Print shell completions
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Write the man pages into a directory, or print weft(1)
    #[command(after_help = MAN_EXAMPLES)]
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

const INFO_EXAMPLES: &str = "Examples:
  weft info
  weft info --json runs/baseline
  weft info traces/*.pfw.gz";

const CHECK_EXAMPLES: &str = "Examples:
  weft check
  weft check --json runs/nightly";

const INDEX_EXAMPLES: &str = "Examples:
  weft index runs/baseline
  weft index --remove runs/baseline";

const RECOVER_EXAMPLES: &str = "Examples:
  weft recover
  weft recover runs/nightly";

const ENV_EXAMPLES: &str = "Examples:
  weft env -o runs/daemon   in a shell: eval \"$(weft env -o runs/daemon)\"
  weft env -o runs/service --syntax plain > service.env";

const DOCTOR_EXAMPLES: &str = "Examples:
  weft doctor
  weft doctor python3 train.py
  weft doctor --parts";

const COMPLETIONS_EXAMPLES: &str = "Examples:
  weft completions bash > weft.bash
  weft completions zsh > _weft";

const MAN_EXAMPLES: &str = "Examples:
  weft man > weft.1
  weft man man1";

const WEAVE_EXAMPLES: &str = "Examples:
  weft weave -- clang++ -O2 -o simulate simulate.cpp
  make CC='weft weave --all=50 -- clang'
  weft weave --rules $PWD/weft.weave.toml -- clang -c library.c
  weft weave --setup -- clang-19   builds the plugin for this compiler";

const QUERY_EXAMPLES: &str = "Examples:
  weft query \"SELECT op, count(*), human_size(sum(bytes)) FROM io GROUP BY op\"
  weft query --format csv -o slow.csv runs/baseline \"SELECT * FROM spans WHERE dur_ns > 1e9\"
  weft query --schema   describes all tables, columns and functions";

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
    /// Formats that are imported
    Formats,
}

#[derive(Debug, Args)]
pub(crate) struct ReadArgs {
    /// A run directory or trace files [default: the newest run in weft-runs]
    pub(crate) run: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to analyse, and how to read its traces.
#[derive(Debug, Args)]
pub(crate) struct OpenArgs {
    /// Run directories, trace files or globs [default: the newest run in weft-runs]
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Only this group of a directory with a manifest.json (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Vec<String>,
    /// Read the traces without an index; write nothing
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

#[derive(Debug, Args)]
pub(crate) struct RecoverArgs {
    /// Run directories, or traces of programs that recorded without `weft run`: their directory, or the beginning of their path [default: the
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
    /// Also weave every function with at least N LLVM instructions [default N: 20]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "20",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) all: Option<u32>,
    /// Print the compiler flags instead of compiling, for builds that cannot use a compiler launcher
    #[arg(long, value_enum, value_name = "WHICH", num_args = 0..=1, require_equals = true, default_missing_value = "all")]
    pub(crate) print_flags: Option<FlagKind>,
    /// Build the plugin for the named compiler, or for every LLVM on this machine (needs cargo, g++ and LLVM's headers)
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

impl From<WeaveAbi> for weftline_weaving::Abi {
    fn from(abi: WeaveAbi) -> weftline_weaving::Abi {
        match abi {
            WeaveAbi::Weft => weftline_weaving::Abi::Weft,
            WeaveAbi::Perfflow => weftline_weaving::Abi::Perfflow,
        }
    }
}

/// Flags that can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum FlagKind {
    /// For compiling
    Compile,
    /// For linking
    Link,
    /// Both
    All,
}

/// Who may see what of a run.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct PrivacyArgs {
    /// Let others read the run, as the umask allows; as root, `weft run` then also traces programs that become other users [default: only
    /// you can read it]
    #[arg(long)]
    pub(crate) share: bool,
    /// Keep only the program names of command lines [default: arguments are kept, secrets masked]
    #[arg(long)]
    pub(crate) no_args: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EnvArgs {
    /// Directory of the run; the same on all nodes
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) privacy: PrivacyArgs,
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
    /// NAME=value, one per line
    Plain,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Only list the optional parts of this installation
    #[arg(long, conflicts_with = "command")]
    pub(crate) parts: bool,
    /// The program that you want to trace
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// A time that is not zero.
fn parse_step(text: &str) -> Result<Duration, String> {
    parse_duration(text).and_then(|step| if step.is_zero() { Err("use a time above zero".into()) } else { Ok(step) })
}

/// `50us`, `200ms`, `2s`, `1m`, `1h`, `1d`.
fn parse_duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number: f64 = digits.parse().map_err(|_| "use a time such as 200ms or 2s".to_string())?;
    let seconds = match &text[digits.len()..] {
        "us" => number / 1e6,
        "ms" => number / 1e3,
        "s" | "" => number,
        "m" => number * 60.0,
        "h" => number * 3600.0,
        "d" => number * 86_400.0,
        _ => return Err("use the units us, ms, s, m, h or d".into()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|_| "use a finite time that is not negative".to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_grammar_is_sound() {
        Options::command().debug_assert();
    }

    /// A verb's first line fits into the list of verbs, and its help shows how to use it.
    #[test]
    fn every_verb_has_a_short_line_and_an_example() {
        for verb in Options::command().get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let about = verb.get_about().expect("a first line").to_string();
            assert!(about.len() < 60, "{}: {about}", verb.get_name());
            let after = verb.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.starts_with("Examples:\n  weft "), "{}: {after}", verb.get_name());
        }
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
    fn times_have_units() {
        assert_eq!(parse_duration("200ms"), Ok(Duration::from_millis(200)));
        assert!(parse_duration("fast").is_err());
    }
}
