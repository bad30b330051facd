//! Sessions from begin to published file: processes that exit, fork, die and come again.
//!
//! The test's own binary plays the programs (`--play NAME DIRECTORY`, see `programs`), with the recorder of the crate `weftline` in it, and
//! stands in for `weft recover`. Each case runs a program in a directory of its own and looks at what lies there
//! afterwards (`cases`). `main` speaks as much of the language of test runners as `cargo test` and nextest ask.

mod cases;
mod programs;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["--play", name, directory] => return programs::play(name, Path::new(directory)),
        ["recover", "--quiet", "--ended", hidden] => {
            weftline_session::leftovers::finish(Path::new(hidden), true).expect("published");
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let options =
        ["--list", "--exact", "--ignored", "--include-ignored", "--nocapture", "--quiet", "--format", "terse", "-q"];
    let wanted: Vec<&str> = words.iter().copied().filter(|word| !options.contains(word)).collect();
    let exact = words.contains(&"--exact");
    let is_wanted = |name: &str| {
        wanted.is_empty() || wanted.iter().any(|word| if exact { *word == name } else { name.contains(word) })
    };
    let chosen: Vec<_> =
        cases::ALL.iter().filter(|(name, _)| is_wanted(name) && !words.contains(&"--ignored")).collect();
    if words.contains(&"--list") {
        chosen.iter().for_each(|(name, _)| say(&format!("{name}: test")));
        return ExitCode::SUCCESS;
    }
    let failed: Vec<&str> = chosen
        .iter()
        .filter(|(name, case)| {
            let scratch = Scratch::new();
            let passed = std::panic::catch_unwind(|| case(&scratch)).is_ok();
            say(&format!("test {name} ... {}", if passed { "ok" } else { "FAILED" }));
            !passed
        })
        .map(|(name, _)| *name)
        .collect();
    say(&format!(
        "\ntest result: {}. {} passed; {} failed",
        if failed.is_empty() { "ok" } else { "FAILED" },
        chosen.len() - failed.len(),
        failed.len()
    ));
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[expect(clippy::print_stdout, reason = "the runner reads it")]
fn say(line: &str) {
    println!("{line}");
}

/// A directory for one case, and the programs run in it.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Scratch {
        Scratch(tempfile::tempdir().expect("a temporary directory"))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    /// Runs a program to its end; its pid, and how it ended.
    fn play(&self, name: &str) -> (u32, std::process::ExitStatus) {
        let mut child = self.start(name);
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match child.try_wait().expect("waited") {
                Some(status) => return (child.id(), status),
                None if Instant::now() > deadline => {
                    child.kill().expect("killed");
                    panic!("{name} hangs");
                }
                None => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }

    /// The same for a program that must succeed.
    fn plays_well(&self, name: &str) -> u32 {
        let (pid, status) = self.play(name);
        assert!(status.success(), "{name}: {status}");
        pid
    }

    fn start(&self, name: &str) -> std::process::Child {
        let own = std::env::current_exe().expect("this binary");
        Command::new(own).args(["--play", name]).arg(self.path()).spawn().expect("started")
    }

    /// Names of all visible files, sorted.
    fn files(&self) -> Vec<String> {
        let mut names = self.names();
        names.retain(|name| !name.starts_with('.'));
        names
    }

    /// Names of all hidden ones.
    fn hidden(&self) -> Vec<String> {
        let mut names = self.names();
        names.retain(|name| name.starts_with('.'));
        names
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.path()).expect("listed");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
        names.sort();
        names
    }

    fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// Waits until something is true.
    fn until(&self, what: &str, condition: impl Fn() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(30);
        while !condition() {
            assert!(Instant::now() < deadline, "never: {what}; {:?}", self.names());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
