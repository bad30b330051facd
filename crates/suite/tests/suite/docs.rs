//! Runs the examples of `docs/tracing.md`, `docs/annotate.md`, `docs/weave.md`, `docs/collect.md`, `docs/import.md`, `docs/top.md`, `docs/config.md` and `docs/analysis.md` unchanged, and those of
//! every `--help`.

use std::fs;
use std::path::{Path, PathBuf};

use weftline_testkit::Scratch;
use weftline_testkit::product::{product, workspace};
use weftline_testkit::run::Job;

/// What a page asks its reader to do, in order.
enum Step {
    /// A block whose heading names a file: its text.
    Write(String, String),
    /// A line of a `console` block.
    Run(String),
}

fn steps(page: &str) -> Vec<Step> {
    let mut found = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(heading) = line.strip_prefix("```").filter(|heading| !heading.is_empty()) else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if heading == "console" {
            found
                .extend(block.iter().filter_map(|line| line.strip_prefix("$ ")).map(|line| Step::Run(line.to_owned())));
        } else if let Some((_, name)) = heading.split_once(' ') {
            found.push(Step::Write(name.to_owned(), block.join("\n") + "\n"));
        }
    }
    found
}

/// Follows a page in an empty directory with a file `data.bin`.
fn follow(page: &str, least: usize, path: &str, environment: &[(&str, String)]) {
    let text = fs::read_to_string(workspace().join(page)).expect(page);
    let steps = steps(&text);
    let commands = steps.iter().filter(|step| matches!(step, Step::Run(_))).count();
    assert!(commands >= least, "{page} has lost its examples: {commands} commands are left");
    let scratch = Scratch::new("docs");
    let work = scratch.dir("work");
    fs::write(work.join("data.bin"), vec![7u8; 1 << 20]).expect("data.bin");
    let variables: String = environment.iter().map(|(name, value)| format!("export {name}={value}; ")).collect();
    for step in steps {
        match step {
            Step::Write(name, text) => fs::write(work.join(name), text).expect("a file of the page"),
            Step::Run(command) => {
                let script = format!("PATH={path}:$PATH; {variables}set -o pipefail; {command}");
                let outcome = Job::new(["bash", "-c", &script], &work).run();
                // `zcat | head` ends zcat by SIGPIPE, which pipefail shows as 141.
                let code = outcome.status;
                let fine = code == 0 || (code == 141 && command.contains("| head"));
                let said = |stream: &[u8]| String::from_utf8_lossy(stream).into_owned();
                assert!(fine, "`{command}` ended with {code}:\n{}{}", said(&outcome.stdout), said(&outcome.stderr));
            }
        }
    }
}

fn directory_of_weft() -> PathBuf {
    product().parent().expect("a directory").to_owned()
}

#[test]
fn import() {
    let examples = workspace().join("examples").to_string_lossy().into_owned();
    follow("docs/import.md", 16, &directory_of_weft().to_string_lossy(), &[("WEFT_EXAMPLES", examples)]);
}

#[test]
fn tracing() {
    follow("docs/tracing.md", 12, &directory_of_weft().to_string_lossy(), &[]);
}

/// The page's Rust example is a documentation test of the crate `weftline`.
#[test]
fn annotate() {
    let package =
        std::env::var_os("WEFT_PACKAGE").map_or_else(|| workspace().join("target/venv-package"), PathBuf::from);
    assert!(package.join("bin/python3").exists(), "{}: `make test` makes it", package.display());
    let scratch = Scratch::new("docs-prefix");
    let prefix = installed(&scratch);
    let path = format!("{}:{}", prefix.join("bin").display(), package.join("bin").display());
    let environment = [("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig").to_string_lossy().into_owned())];
    follow("docs/annotate.md", 14, &path, &environment);
}

/// An installation.
fn installed(scratch: &Scratch) -> PathBuf {
    let prefix = scratch.dir("prefix");
    let installer = workspace().join("tools/install.sh");
    let outcome = Job::new([installer.as_path(), product(), Path::new(&prefix)], &prefix).run();
    assert_eq!(outcome.status, 0, "{}", String::from_utf8_lossy(&outcome.stderr));
    prefix
}

/// Needs the plugins, which `make test` builds.
#[test]
fn weave() {
    let scratch = Scratch::new("docs-prefix");
    let prefix = installed(&scratch);
    let environment = [("CMAKE_PREFIX_PATH", prefix.to_string_lossy().into_owned())];
    follow("docs/weave.md", 18, &prefix.join("bin").to_string_lossy(), &environment);
}

/// `weft query` needs `weft-sql`, which lies beside the product: cargo builds it for the tests of its crate.
#[test]
fn analysis() {
    let weft = directory_of_weft();
    assert!(weft.join("weft-sql").exists(), "{}: `make test` makes it", weft.join("weft-sql").display());
    let golden = workspace().join("crates/testkit/golden/posix_small/trace").to_string_lossy().into_owned();
    follow("docs/analysis.md", 20, &weft.to_string_lossy(), &[("TRACES", golden)]);
}

#[test]
fn top() {
    follow("docs/top.md", 3, &directory_of_weft().to_string_lossy(), &[]);
}

/// Every step of `docs/config.md`.
#[test]
fn config() {
    follow("docs/config.md", 1, &directory_of_weft().to_string_lossy(), &[]);
}

/// Every step of `docs/collect.md`.
#[test]
fn collect() {
    follow("docs/collect.md", 9, &directory_of_weft().to_string_lossy(), &[]);
}

/// What an example needs that a test does not have: hours, somebody's process, a directory of the file system's root.
const INSTEAD: [(&str, &str); 3] = [
    ("--duration 60s", "--duration 1s"),
    ("weft collect --tree 4711", "sleep 1 & weft collect --tree $!"),
    (" /scratch/me/", " scratch/me/"),
];

/// Examples that are run elsewhere: `weft top` wants a terminal (`top`), and the weaver's are those of its page.
const ELSEWHERE: [&str; 3] = ["weft top", "weft weave", "make CC='weft weave"];

/// What the examples of the verbs, `weft run` apart, find in their directory.
const PREPARED: &str = "mkdir -p runs traces scratch/me; weft run -q -o runs/baseline -- cat input.nc; weft run -q -o runs/nightly -- cat input.nc;
    weft run -q -- cat input.nc; cp runs/baseline/*.pfw.gz traces/; cp -r weft-runs scratch/me/";

/// The lines below `Examples:`, without what is said about them.
fn examples(help: &str) -> Vec<String> {
    let below = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    let lines = below.take_while(|line| line.starts_with("  ")).map(str::trim_start);
    lines.map(|line| line.split("   ").next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn examples_of_help() {
    let path = directory_of_weft().to_string_lossy().into_owned();
    let run = |work: &Path, command: &str| {
        let script = format!("PATH={path}:$PATH; set -eo pipefail; {command}");
        let outcome = Job::new(["bash", "-c", &script], work).run();
        let said = |stream: &[u8]| String::from_utf8_lossy(stream).into_owned();
        let (out, errors) = (said(&outcome.stdout), said(&outcome.stderr));
        assert_eq!(outcome.status, 0, "`{command}`:\n{out}{errors}");
        out
    };
    let scratch = Scratch::new("help");
    let list = run(&scratch.dir("any"), "weft --help");
    let commands = list.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let verbs: Vec<&str> = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next()).collect();
    let mut tried = 0;
    for verb in verbs.into_iter().filter(|verb| !verb.is_empty() && *verb != "help") {
        let work = scratch.dir(verb);
        let examples = examples(&run(&work, &format!("weft {verb} --help")));
        assert!(!examples.is_empty(), "`weft {verb} --help` has no examples");
        let broken: Vec<&String> =
            examples.iter().filter(|line| !line.starts_with("weft ") && !line.starts_with("make ")).collect();
        assert!(broken.is_empty(), "`weft {verb} --help` breaks its examples' lines: {broken:?}");
        let examples = examples.iter().filter(|line| !ELSEWHERE.iter().any(|start| line.starts_with(start)));
        let examples: Vec<&String> = examples.collect();
        if examples.is_empty() {
            continue;
        }
        fs::write(work.join("train.py"), "print(open('input.nc').read())\n").expect("a program");
        fs::write(work.join("input.nc"), "data\n").expect("data");
        fs::write(work.join("Makefile"), "all:\n\tcat input.nc > out\n").expect("a makefile");
        run(&work, "printf '#!/bin/sh\\ncat $1\\n' > simulate; chmod +x simulate");
        if verb != "run" {
            run(&work, PREPARED);
        }
        if verb == "import" {
            let data = workspace().join("crates/import/tests/data");
            for (from, to) in [("access.log", "access.log"), ("mllog.log", "app.log")] {
                fs::copy(data.join(from), work.join(to)).expect("copied");
            }
            run(&work, &format!("tar cJf results.tar.xz -C '{}' cpu.out mllog.log", data.display()));
        }
        for example in examples {
            let command = INSTEAD.iter().fold(example.clone(), |text, (from, to)| text.replace(from, to));
            run(&work, &command);
            tried += 1;
        }
    }
    assert!(tried >= 37, "help has lost its examples: {tried} are left");
}
