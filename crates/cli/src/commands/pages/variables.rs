//! `docs/env.md`: every environment variable that Weftline reads or sets.
//!
//! Names come from the code that reads them if that code is part of the command. Those of builds, tests and the Python package are written here;
//! `cargo xtask tidy` finds a variable that the sources read and this document lacks.

use std::fmt::Write as _;

use weftline_drain::live::PLACE_VARIABLES;
use weftline_dropin::dftracer;
use weftline_dropin::perfflow::{INSTANCE_VARIABLE, JOB_VARIABLES, KEYS, OPTIONS_VARIABLE};
use weftline_index::input::CACHE_VARIABLES;
use weftline_recorder::identity::{JOB_ID_VARIABLES, NODE_ID_VARIABLES, rank_variables};
use weftline_recorder::process::LIVE_VARIABLE;
use weftline_session::LIBRARY_VARIABLE;
use weftline_weaving::installation::{DATA_VARIABLES, PLUGINS_VARIABLE};

use crate::commands::collect::options;
use crate::commands::run::AUTO_VARIABLE;
use crate::commands::weave::CCACHE_FILES;
use crate::defaults::CONFIG_VARIABLES;
use crate::parts::SQL_VARIABLE;
use crate::terminal::COLOR_VARIABLES;

/// Variables that mean one thing together.
struct Row {
    names: Vec<&'static str>,
    who: &'static str,
    meaning: String,
}

fn row(names: impl IntoIterator<Item = &'static str>, who: &'static str, meaning: impl Into<String>) -> Row {
    Row { names: names.into_iter().collect(), who, meaning: meaning.into() }
}

/// The document.
pub(super) fn document(generated: &str) -> String {
    let mut out = format!("# Environment variables\n\n{generated}`weft run` needs none of them.\n");
    let groups = [
        ("Set by Weftline", "Weftline sets these for the programs that it starts. Do not set them yourself.", set()),
        ("Read by `weft` and the Python package", "An option with the same meaning takes precedence.", read()),
        (
            "Ranks and jobs",
            "Launchers and resource managers set these. `weft` and the recorder in the program read them to identify the ranks of a parallel job.",
            jobs(),
        ),
        (
            "Tracekit's variables",
            "`weft collect` uses them if the option is not given. See [collect.md](collect.md).",
            options::VARIABLES.iter().map(|(name, meaning)| row([*name], "`weft collect`", *meaning)).collect(),
        ),
    ];
    for (heading, about, rows) in groups {
        table(&mut out, heading, about, &rows);
    }
    drop_ins(&mut out);
    table(
        &mut out,
        "Builds and tests",
        "For people who build Weftline. cargo's own variables work as usual.",
        &development(),
    );
    out
}

fn table(out: &mut String, heading: &str, about: &str, rows: &[Row]) {
    let _ = writeln!(out, "\n## {heading}\n\n{about}\n\n| variable | who | meaning |\n|---|---|---|");
    for Row { names, who, meaning } in rows {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(out, "| {} | {who} | {meaning} |", names.join(", "));
    }
}

fn set() -> Vec<Row> {
    vec![
        row(
            [LIVE_VARIABLE],
            "`weft run`, `weft env`",
            "Directory of the shared memory that the program records into. Without it the library does nothing.",
        ),
        row(["LD_PRELOAD"], "`weft run`, `weft env`", "Our library is appended to an existing value."),
        row(["WEFT_SESSION"], "`weftline.start()`", "The run, so that Python child processes record into it too."),
        row([CCACHE_FILES], "`weft weave`", "Extended, so that ccache also hashes the plugin and the rules."),
        row(
            [INSTANCE_VARIABLE],
            "drop-ins for PerfFlowAspect",
            "The instance path for child processes, which add their own job to it.",
        ),
    ]
}

fn read() -> Vec<Row> {
    vec![
        row(
            [LIBRARY_VARIABLE],
            "`weft`, `libweft.so`, Python",
            "The library to inject, instead of the one beside `weft` or in `../lib/weftline`.",
        ),
        row(
            [SQL_VARIABLE],
            "`weft query` and Python",
            "The program `weft-sql`, instead of the one beside `weft` or on the PATH.",
        ),
        row(
            [AUTO_VARIABLE],
            "Python",
            "`0`: do not record torch's data loaders unless the program asks for it. `weft run --no-auto` sets it.",
        ),
        row(
            PLACE_VARIABLES,
            "`weft`",
            "Where shared memory goes if it is on a disk (`--arenas`) and the run directory is on a network file system; after them /tmp and /dev/shm are tried.",
        ),
        row(
            CACHE_VARIABLES,
            "`weft`, Python",
            "Where the index goes if the traces' directory cannot be written: `weftline/index` in the first, or in `.cache` of the second. \
             `weft weave --setup` builds there too.",
        ),
        row(
            [PLUGINS_VARIABLE],
            "`weft weave`",
            "A directory with the weaver's plugins, `<major of LLVM>/libweft_weave.so`; searched first, and `--setup` builds into it.",
        ),
        row(
            DATA_VARIABLES,
            "`weft weave`",
            "Where a user's plugins go if the installation cannot be written: `weftline/weave` in the first, or in `.local/share` of the second.",
        ),
        row(
            CONFIG_VARIABLES,
            "`weft`",
            "Where a user's defaults are: `weftline.toml` in the first, or in `.config` of the second. See [config.md](config.md).",
        ),
        row(
            ["WEFT_RUN_SAMPLE"],
            "`weft`",
            "The default of an option, here `--sample` of `weft run`: WEFT, verb and long option in capitals, with underscores. See [config.md](config.md).",
        ),
        row(COLOR_VARIABLES, "`weft`", "The usual conventions for colour; `--color` overrides them."),
        row(
            ["PATH"],
            "`weft`",
            "Where to find programs, as in a shell: the traced one, `weft-sql`, clang, nvidia-smi.",
        ),
        row(["LD_LIBRARY_PATH"], "`weft weave`", "Where to find the compiler's libLLVM, as the loader does."),
    ]
}

fn jobs() -> Vec<Row> {
    vec![
        row(
            rank_variables(),
            "`weft`, the program",
            "Rank, number of ranks and rank on the node: torchrun, Open MPI, MPICH, Flux, LSF, Slurm, PMIx. The first of these that sets a rank counts.",
        ),
        row(JOB_ID_VARIABLES.iter().copied(), "`weft`, the program", "The job. The first one that is set counts."),
        row(NODE_ID_VARIABLES.iter().copied(), "`weft`, the program", "The node within the job."),
        row(
            JOB_VARIABLES.into_iter().flatten(),
            "drop-ins for PerfFlowAspect",
            format!(
                "The parts of `{INSTANCE_VARIABLE}`: job and broker of Flux, job and step of Slurm, job and process of LSF."
            ),
        ),
    ]
}

/// The drop-ins have tables of their own: DFTracer's variables have defaults, and keys in its YAML file.
fn drop_ins(out: &mut String) {
    let _ = writeln!(
        out,
        "\n## Drop-ins for DFTracer\n\nThe drop-in modules and libraries read DFTracer's variables ([annotate.md](annotate.md)). Under `weft run` only \
         `DFTRACER_ENABLE=0` counts: it leaves out the program's annotations. Switches take 1, true, yes, on and 0, false, no, off.\n\n\
         | variable | default | YAML key | effect |\n|---|---|---|---|"
    );
    for variable in dftracer::VARIABLES {
        let code = |text: &str| if text.is_empty() { String::new() } else { format!("`{text}`") };
        let key = variable.yaml.first().copied().unwrap_or_default();
        let _ =
            writeln!(out, "| `{}` | {} | {} | {} |", variable.name, code(variable.default), code(key), variable.effect);
    }
    let _ = writeln!(
        out,
        "\n## Drop-ins for PerfFlowAspect\n\n`{OPTIONS_VARIABLE}` holds pairs of key and value, separated by colons: `log-event=Compact:log-dir=traces`. Invalid pairs \
         are reported on stderr. See [annotate.md](annotate.md) and [weave.md](weave.md).\n\n| key | values | default | effect |\n|---|---|---|---|"
    );
    for (key, values, default, effect) in KEYS {
        let _ = writeln!(out, "| `{key}` | {values} | `{default}` | {effect} |");
    }
}

fn development() -> Vec<Row> {
    vec![
        row(["FUZZ_SECONDS"], "`make weekly`", "How long each fuzz target runs, 60 by default."),
        row(
            ["WEFT_TORCH_PYTHON"],
            "tests of the Python package",
            "A Python with torch and the package, to test data loaders with torch itself.",
        ),
        row(["DEBIAN_MIRROR"], "`make check-dist`", "The mirror for Debian 11, instead of the default one."),
        row(
            ["KERNEL"],
            "`tools/build.sh`, `make build`",
            "`no` builds a `weft` without `--kernel`; by default it is included if clang is installed.",
        ),
        row(
            ["WEFT_CLANG"],
            "builds with `--kernel`",
            "The clang that compiles the kernel programs; `clang` if not set.",
        ),
        row(
            ["WEFT_LLVM_CONFIG", "LLVM_CONFIG"],
            "`weave/`, `make weave`",
            "The `llvm-config` of the LLVM to build the weaver for: the first selects one build, the second adds one to those of Debian.",
        ),
        row(
            ["CARGO", "CARGO_TARGET_DIR"],
            "`make`, tools, tests",
            "The cargo command, and the build directory; `target` if not set.",
        ),
        row(["PYTHON"], "`make`, `examples/demo.sh`, tools", "The Python interpreter; `python3` if not set."),
        row(["PYENV_ROOT"], "`make wheels`", "Where to find more Pythons to test the wheels with."),
        row(
            ["WEFT", "WEFT_DEMO_DIR"],
            "`examples/demo.sh`",
            "The `weft` to use, and the directory that the demo writes to.",
        ),
        row(["NEXTEST_PROFILE"], "tests", "`ci` tries a failed test once more, as `.ci/run` does."),
        row(["WEFT_BIN"], "tests", "The `weft` under test; if not set, tests build the product."),
        row(["WEFT_VENV", "WEFT_PACKAGE"], "tests", "Python environments with what tests need, and with our package."),
        row(["WEFT_TEST_DIR"], "tests", "Where tests put programs and runs; `/var/tmp/weft-testkit` if not set."),
        row(["WEFT_TEST_SEED"], "tests", "Repeats the random choices of a test that failed; it prints the number."),
        row(
            ["WEFT_MUTATE_SECONDS"],
            "tests",
            "How long each reading verb is tested with mutated run directories, 60 by default.",
        ),
        row(["WEFT_SOAK_KILLS"], "`make soak`", "The number of kills, 2,000 by default; 50 take about a minute."),
        row(["WEFT_TEST_UNPRIVILEGED"], "tests", "Set by a test that runs itself again without privileges."),
        row(["WEFT_WEAVE_MAJORS"], "tests of `weave/`", "Majors of LLVM to test, set by `tools/weave.sh`."),
        row(
            ["WEFT_WRITE_GOLDEN"],
            "tests of `crates/analysis`",
            "Writes the expected findings instead of comparing them.",
        ),
        row(["PREFIX", "DESTDIR"], "`make install`", "Where to install, and a staging directory for packagers."),
        row(["RECORDS_ONLY"], "`crates/format/examples/quick_speed.rs`", "Measures only the scan."),
    ]
}

#[cfg(test)]
mod tests {
    use super::document;

    /// Tables that this page takes over from elsewhere are there, each name once as the first thing of a cell.
    #[test]
    fn names_come_from_the_code_that_reads_them() {
        let text = document("");
        let check = |name: &str| assert!(text.contains(&format!("`{name}`")), "{name} is missing");
        for name in ["WEFT_LIVE", "OMPI_COMM_WORLD_RANK", "TORCHELASTIC_RUN_ID", "LS_JOBPID", "DFTRACER_DATA_DIR"] {
            check(name);
        }
        for name in ["PERFFLOW_OPTIONS", "PROC_MATCH", "TMPDIR", "XDG_CACHE_HOME", "NO_COLOR", "WEFT_CLANG"] {
            check(name);
        }
        assert!(text.lines().all(|line| !line.starts_with('|') || line.ends_with('|')), "rows are whole:\n{text}");
    }
}
