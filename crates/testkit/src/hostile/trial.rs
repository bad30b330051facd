//! One mutated run under some verbs: the oracle, and the search that repeats it until time is up.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::bounded::Bounds;
use super::index;
use super::mutate::mutate;
use super::sandbox::{Sandbox, differences};
use super::seeds::Seed;
use crate::random::Random;

/// A verb with its options; the run comes last, but for what [`Verb::after`] holds.
#[derive(Clone, Debug)]
pub struct Verb {
    /// Words before the run.
    pub words: Vec<OsString>,
    /// Words behind it.
    pub after: Vec<OsString>,
}

impl Verb {
    /// A verb that has nothing behind the run.
    pub fn new(words: &[&str]) -> Verb {
        Verb { words: words.iter().map(Into::into).collect(), after: Vec::new() }
    }
}

/// All verbs that read a run.
pub fn reading() -> Vec<Verb> {
    let verbs: [&[&str]; 15] = [
        &["list"],
        &["list", "--json"],
        &["info"],
        &["info", "--json"],
        &["check"],
        &["check", "--json"],
        &["report", "--threads", "2"],
        &["report", "--no-index", "--threads", "2"],
        &["report", "--json", "--threads", "2"],
        // From the working directory.
        &["report", "--html", "../cache/page.html", "--threads", "2"],
        &["index", "--threads", "2"],
        &["index", "--remove"],
        &["recover"],
        &["top", "--once", "--interval", "50ms"],
        &["top", "--once", "--json", "--interval", "50ms"],
    ];
    verbs.iter().map(|words| Verb::new(words)).collect()
}

/// What came of one trial.
#[derive(Clone, Debug)]
pub struct Trial {
    /// By which it can be repeated.
    pub seed: u64,
    /// The run it began with, and what was changed.
    pub changes: Vec<String>,
    /// The commands that were run.
    pub commands: Vec<String>,
    /// What was wrong; nothing when all is well.
    pub fault: Option<String>,
    /// Where the place was kept; only of one that failed.
    pub place: Option<PathBuf>,
}

/// Mutates a run and gives it to one or two verbs of a program.
pub fn try_once(seed: u64, program: &Path, seeds: &[Seed], verbs: &[Verb], parent: &Path) -> Trial {
    let mut random = Random::seeded(seed);
    let mut sandbox = Sandbox::within(parent);
    let chosen = random.one_of(seeds);
    chosen.put(&sandbox);
    let mut trial =
        Trial { seed, changes: vec![chosen.name.to_owned()], commands: Vec::new(), fault: None, place: None };
    for _ in 0..1 + random.below(3) {
        trial.changes.push(mutate(&mut random, &sandbox));
    }
    // The index is of the traces as they were, or as they are: then it is believed as far as its sums go.
    if random.percent(50) {
        index::accept(&sandbox.run());
        trial.changes.push("the index is of these traces".to_owned());
    }
    let mut verbs = verbs.to_vec();
    if random.percent(10) {
        sandbox.give_away();
        trial.changes.push("given to another user".to_owned());
        // The caller asked for it.
        verbs.retain(|verb| !verb.words.contains(&OsString::from("--remove")));
    }
    for _ in 0..1 + random.below(2) {
        let verb = random.one_of(&verbs);
        let mut command = vec![program.as_os_str().to_owned()];
        command.extend(verb.words.iter().cloned());
        command.push(sandbox.run().into_os_string());
        command.extend(verb.after.iter().cloned());
        trial.commands.push(command.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "));
        let before = sandbox.snapshot();
        let ended = sandbox.command(&command, &Bounds::READING);
        let changed = differences(&before, &sandbox.snapshot());
        trial.fault = match ended.fault(&Bounds::READING) {
            _ if !changed.is_empty() => Some(format!("changed outside the run: {}", changed.join("; "))),
            None if !matches!(ended.code, Some(0 | 1)) => {
                Some(format!("ended with {:?}: {}", ended.code, ended.stderr.lines().next().unwrap_or_default()))
            }
            fault => fault,
        };
        if trial.fault.is_some() {
            trial.place = Some(sandbox.keep());
            return trial;
        }
    }
    trial
}

impl Trial {
    /// What happened, for a failing test; `again` is the command that repeats it. Runs are made anew then, so that the same choices may meet other bytes:
    /// the place that was kept has those that failed.
    pub fn description(&self, again: &str) -> String {
        format!(
            "{}\n  run: {}\n  commands: {}\n  kept in {}\n  again: WEFT_TEST_SEED={} {again}",
            self.fault.as_deref().unwrap_or("all is well"),
            self.changes.join("\n       "),
            self.commands.join("\n            "),
            self.place.as_deref().unwrap_or(Path::new("nowhere")).display(),
            self.seed
        )
    }
}

/// What a search found.
#[derive(Debug)]
pub struct Search {
    /// Trials that were made.
    pub trials: u64,
    /// The first ones that failed, at most so many as were asked for.
    pub failed: Vec<Trial>,
}

/// Tries one run after the other until time is up or so many failed.
pub fn search(
    first: u64,
    time: Duration,
    most: usize,
    program: &Path,
    seeds: &[Seed],
    verbs: &[Verb],
    parent: &Path,
) -> Search {
    let began = Instant::now();
    let mut found = Search { trials: 0, failed: Vec::new() };
    while began.elapsed() < time && found.failed.len() < most {
        let trial = try_once(first.wrapping_add(found.trials), program, seeds, verbs, parent);
        found.trials += 1;
        if trial.fault.is_some() {
            found.failed.push(trial);
        }
    }
    found
}
