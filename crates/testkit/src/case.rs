//! One program, what must be the same with and without tracing, and what must be in the trace.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weftline_format::manifest::{ProcessRecord, SupervisorRecord};
use weftline_format::reader::{self, Trace};

use crate::compile::{self, Build};
use crate::run::{Job, Outcome, TIME_LIMIT, weft};
use crate::scratch::Scratch;
use crate::strace;
use crate::table::{Count, Key, Places, Table, compare, table};
use crate::tree::differences;

type Preparation = Box<dyn Fn(&Path)>;

/// A program and what is known of it. Built by chaining; [`Case::check`] runs it.
pub struct Case {
    name: String,
    command: Vec<OsString>,
    environment: Vec<(OsString, Option<OsString>)>,
    prepare: Vec<Preparation>,
    expected: Table,
    counted: bool,
    within: Option<&'static str>,
    ignored: Vec<PathBuf>,
    untraced: Vec<(String, &'static str)>,
    may_lose: Option<&'static str>,
    times: usize,
    limit: Duration,
    shared_memory: bool,
    shared_run: bool,
}

/// Both runs of a case, for looks of its own.
#[derive(Debug)]
pub struct Finished {
    /// What happened without tracing.
    pub untraced: Outcome,
    /// What happened with it.
    pub traced: Outcome,
    /// The events.
    pub trace: Trace,
    /// What supervisors noted.
    pub records: Vec<SupervisorRecord>,
    /// The run directory.
    pub run: PathBuf,
    /// The working directory of the traced run.
    pub work: PathBuf,
    /// How paths are called in tables.
    pub places: Places,
    /// Holds all of it.
    pub scratch: Scratch,
}

impl Finished {
    /// All process images that the run knows of.
    pub fn processes(&self) -> impl Iterator<Item = &ProcessRecord> {
        self.records.iter().flat_map(|record| &record.processes)
    }

    /// Events that the run says were not kept.
    pub fn lost(&self) -> u64 {
        self.processes().flat_map(|process| process.drops.values()).sum()
    }

    /// The trace as counts.
    pub fn table(&self) -> Table {
        table(&self.trace, &self.places)
    }

    /// The sum of all groups of this call on this file, failed calls left out.
    pub fn count(&self, call: &str, on: &str) -> Count {
        self.table().get(&Key { call: call.into(), on: on.into(), errno: 0 }).copied().unwrap_or_default()
    }
}

impl Case {
    /// A hazard program in its usual build.
    pub fn program(name: &str) -> Case {
        Case::build(name, compile::PLAIN)
    }

    /// A hazard program in another build.
    pub fn build(name: &str, build: Build) -> Case {
        Case::named(name, [compile::compile(name, build)])
    }

    /// Any command.
    pub fn command<S: Into<OsString>>(command: impl IntoIterator<Item = S>) -> Case {
        let command: Vec<OsString> = command.into_iter().map(Into::into).collect();
        let name = Path::new(&command[0]).file_name().unwrap_or(OsStr::new("command")).to_string_lossy().into_owned();
        Case::named(&name, command)
    }

    /// A script for `bash`, stopped at its first error.
    pub fn script(name: &str, text: &str) -> Case {
        Case::named(name, ["/bin/bash", "-euc", text])
    }

    fn named<S: Into<OsString>>(name: &str, command: impl IntoIterator<Item = S>) -> Case {
        Case {
            name: name.to_owned(),
            command: command.into_iter().map(Into::into).collect(),
            environment: Vec::new(),
            prepare: Vec::new(),
            expected: Table::new(),
            counted: false,
            within: None,
            ignored: Vec::new(),
            untraced: Vec::new(),
            may_lose: None,
            times: 1,
            limit: TIME_LIMIT,
            shared_memory: false,
            shared_run: false,
        }
    }

    /// Adds arguments.
    pub fn args<S: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = S>) -> Case {
        self.command.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Sets a variable, in both runs.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Case {
        self.environment.push((name.into(), Some(value.into())));
        self
    }

    /// Prepares the working directory before each run.
    pub fn prepare(mut self, step: impl Fn(&Path) + 'static) -> Case {
        self.prepare.push(Box::new(step));
        self
    }

    /// Puts a file into the working directory before each run.
    pub fn file(self, name: &'static str, content: impl AsRef<[u8]> + 'static) -> Case {
        self.prepare(move |work| {
            let path = work.join(name);
            fs::write(&path, content.as_ref()).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        })
    }

    /// Expects calls that succeed and move no bytes.
    pub fn sees(self, call: &str, on: &str, calls: u64) -> Case {
        self.expect(call, on, 0, calls, 0)
    }

    /// Expects calls that move bytes.
    pub fn moves(self, call: &str, on: &str, calls: u64, bytes: u64) -> Case {
        self.expect(call, on, 0, calls, bytes)
    }

    /// Expects calls that fail.
    pub fn fails(self, call: &str, on: &str, errno: i64, calls: u64) -> Case {
        self.expect(call, on, errno, calls, 0)
    }

    /// Expects the standard work of `hazard.h`: 1 open, n pwrite of 64 bytes, 1 close.
    pub fn work(self, on: &str, n: u64) -> Case {
        let case = self.sees("open", on, 1).sees("close", on, 1);
        if n == 0 { case } else { case.moves("pwrite", on, n, 64 * n) }
    }

    fn expect(mut self, call: &str, on: &str, errno: i64, calls: u64, bytes: u64) -> Case {
        self.counted = true;
        let count = self.expected.entry(Key { call: call.into(), on: on.into(), errno }).or_default();
        count.calls += calls;
        count.bytes += bytes;
        self
    }

    /// Expects no event at all on files of the working directory.
    pub fn sees_nothing(mut self) -> Case {
        self.counted = true;
        self
    }

    /// Counts only what happens below this directory: for programs that also touch files which are nobody's business.
    pub fn within(mut self, directory: &'static str) -> Case {
        self.within = Some(directory);
        self
    }

    /// Files whose content differs from run to run by nature.
    pub fn ignore<S: Into<PathBuf>>(mut self, files: impl IntoIterator<Item = S>) -> Case {
        self.ignored.extend(files.into_iter().map(Into::into));
        self
    }

    /// Expects that the ledger lists a program whose path ends in `program` as not traced, for a reason with this word.
    pub fn untraced(mut self, program: &str, reason: &'static str) -> Case {
        self.untraced.push((program.to_owned(), reason));
        self
    }

    /// Allows losses for this one reason; the caller looks at [`Finished::lost`].
    pub fn may_lose(mut self, reason: &'static str) -> Case {
        self.may_lose = Some(reason);
        self
    }

    /// Repeats the comparison: for hazards that need luck to show.
    pub fn times(mut self, times: usize) -> Case {
        self.times = times;
        self
    }

    /// Another time limit, for each run.
    pub fn limit(mut self, limit: Duration) -> Case {
        self.limit = limit;
        self
    }

    /// Everything on `/dev/shm` instead of a disk.
    pub fn on_tmpfs(mut self) -> Case {
        self.shared_memory = true;
        self
    }

    /// Traced with `--share`.
    pub fn shared(mut self) -> Case {
        self.shared_run = true;
        self
    }

    /// The table that the chained expectations make.
    pub fn expected(&self) -> &Table {
        &self.expected
    }

    /// Runs the program both ways and compares.
    ///
    /// # Panics
    /// With everything that differs, and where the files are.
    pub fn check(&self) -> Finished {
        for _ in 1..self.times {
            self.check_once();
        }
        self.check_once()
    }

    fn check_once(&self) -> Finished {
        let finished = self.run_both();
        let mut wrong = Vec::new();
        let (untraced, traced) = (&finished.untraced, &finished.traced);
        if untraced.status != traced.status {
            wrong.push(format!("exit status: untraced {}, traced {}", untraced.status, traced.status));
        }
        for (stream, before, after) in
            [("stdout", &untraced.stdout, &traced.stdout), ("stderr", &untraced.stderr, &traced.stderr)]
        {
            // Where losses are allowed, weft says so on standard error, in lines of its own.
            let own =
                if self.may_lose.is_some() && stream == "stderr" { without_own_words(after) } else { after.clone() };
            if *before != own {
                wrong.push(format!("{stream}: untraced {}, traced {}", excerpt(before), excerpt(after)));
            }
        }
        wrong.extend(differences(&self.relevant(untraced), &self.relevant(traced)));
        wrong.extend(self.trace_faults(&finished));
        if !wrong.is_empty() {
            panic!("{} ({}):\n  {}", self.name, finished.scratch.path().display(), wrong.join("\n  "));
        }
        finished
    }

    /// Also runs the program under strace and compares the bytes read from and written to `files`, by name or, where the
    /// name ends in `/`, all files below that directory together; of `buffered` files only what is written, for a
    /// stream may read ahead more than its program asks for.
    ///
    /// # Panics
    /// When one differs, or when neither saw anything: then the comparison would say nothing.
    pub fn check_bytes(&self, files: &[&str], buffered: &[&str]) -> Finished {
        let finished = self.check();
        let job = self.job(&finished.work);
        set_aside(&finished.work, "traced");
        self.fresh(&finished.scratch);
        let (outcome, kernel) = strace::strace(&job, &finished.scratch.dir("strace"));
        assert_eq!(
            outcome.status,
            finished.untraced.status,
            "{} under strace: {}",
            self.name,
            excerpt(&outcome.stderr)
        );
        let traced = strace::traced(&finished.trace);
        for name in files.iter().chain(buffered) {
            let path = finished.work.join(name).to_string_lossy().into_owned();
            let (mut kernel, mut traced) = (strace::sum(&kernel, &path), strace::sum(&traced, &path));
            if buffered.contains(name) {
                (kernel.read, traced.read) = (0, 0);
            }
            let place = finished.scratch.path().display();
            assert_eq!(
                traced, kernel,
                "{}: bytes of {name}, in the trace (left) and for strace (right), in {place}",
                self.name
            );
            assert_ne!(kernel, strace::Bytes::default(), "{}: strace saw nothing on {name}, in {place}", self.name);
        }
        finished
    }

    fn job(&self, work: &Path) -> Job {
        let mut job = Job::new(self.command.clone(), work);
        job.environment.clone_from(&self.environment);
        job.limit = self.limit;
        job
    }

    /// The working directory, new and prepared.
    fn fresh(&self, scratch: &Scratch) {
        let work = scratch.dir("work");
        self.prepare.iter().for_each(|step| step(&work));
    }

    fn run_both(&self) -> Finished {
        let scratch = match self.shared_memory {
            true => Scratch::within(Path::new("/dev/shm"), &self.name),
            false => Scratch::new(&self.name),
        };
        let (work, run) = (scratch.join("work"), scratch.join("run"));
        let job = self.job(&work);
        self.fresh(&scratch);
        let untraced = job.run();
        set_aside(&work, "untraced");
        self.fresh(&scratch);
        let mut traced = job.traced(&run);
        if self.shared_run {
            traced.command.insert(2, "--share".into());
        }
        let traced = traced.run();
        let trace = read(&run, &traced);
        let (records, unreadable) = SupervisorRecord::read_all(&run);
        assert!(unreadable.is_empty(), "{}: {unreadable:?}", self.name);
        let places = Places { work: work.clone(), stdout: job.beside("stdout"), stderr: job.beside("stderr") };
        Finished { untraced, traced, trace, records, run, work, places, scratch }
    }

    fn relevant(&self, outcome: &Outcome) -> crate::tree::Tree {
        let mut files = outcome.files.clone();
        files.retain(|path, _| !self.ignored.iter().any(|ignored| path.starts_with(ignored)));
        files
    }

    fn trace_faults(&self, finished: &Finished) -> Vec<String> {
        let mut wrong: Vec<String> =
            finished.trace.damage.flaws.iter().map(|flaw| format!("damage: {flaw:?}")).collect();
        for process in finished.processes() {
            let mut losses =
                process.drops.iter().filter(|(reason, lost)| **lost > 0 && self.may_lose != Some(reason.as_str()));
            if losses.next().is_some() {
                wrong.push(format!("pid {} ({}) lost events: {:?}", process.pid, process.exe, process.drops));
            }
        }
        if self.counted {
            let mut seen = finished.table();
            if let Some(directory) = self.within {
                seen.retain(|key, _| Path::new(&key.on).starts_with(directory));
            }
            wrong.extend(compare(&self.expected, &seen));
        }
        for (program, reason) in &self.untraced {
            let found: Vec<_> = finished.processes().filter(|process| process.exe.ends_with(program)).collect();
            if !found.iter().any(|process| process.untraced.as_ref().is_some_and(|why| why.contains(reason))) {
                let reasons: Vec<_> = found.iter().map(|process| &process.untraced).collect();
                wrong.push(format!("the ledger does not say {reason:?} of {program}, but {reasons:?}"));
            }
        }
        let verdict = weft(["check".as_ref(), finished.run.as_os_str(), "--json".as_ref()], &finished.scratch);
        // Programs that had no shared memory are missed as events are. A program that could not be traced leaves a run in which there is nothing to check.
        let refused = finished.processes().any(|process| process.refused > 0);
        let empty = finished.processes().all(|process| process.events == 0);
        let allowed = i32::from(empty || refused || finished.lost() > 0);
        if verdict.status != allowed {
            let (out, err) = (excerpt(&verdict.stdout), excerpt(&verdict.stderr));
            wrong.push(format!("weft check: status {}, {out}, {err}", verdict.status));
        }
        wrong
    }
}

/// Output without the lines in which `weft` itself speaks.
fn without_own_words(output: &[u8]) -> Vec<u8> {
    output
        .split_inclusive(|byte| *byte == b'\n')
        .filter(|line| !line.starts_with(b"weft: "))
        .collect::<Vec<_>>()
        .concat()
}

/// Renames a finished working directory: every run uses the same name, so that nothing a program prints differs by it.
fn set_aside(work: &Path, name: &str) {
    let aside = work.with_file_name(name);
    fs::rename(work, &aside).unwrap_or_else(|error| panic!("{}: {error}", aside.display()));
}

/// Reads a run, or fails with the words of the run that should have written it.
fn read(run: &Path, outcome: &Outcome) -> Trace {
    reader::read_run(run).unwrap_or_else(|error| {
        let stderr = excerpt(&outcome.stderr);
        panic!("no trace in {}: {error}; weft run ended with {} and said {stderr}", run.display(), outcome.status)
    })
}

/// The beginning of some output, for a message.
pub fn excerpt(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(&output[..output.len().min(1000)]);
    format!("{text:?}{}", if output.len() > 1000 { " …" } else { "" })
}
