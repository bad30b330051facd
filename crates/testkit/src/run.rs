//! Running a command in a directory, with a time limit on everything.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::product::product;
use crate::scratch::Scratch;
use crate::tree::{Tree, tree};

/// How long a command may take when nobody says otherwise. Generous: two slow cores run several tests at once.
pub const TIME_LIMIT: Duration = Duration::from_secs(60);

/// What a command did.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
    /// Its exit code, or 128 + the signal that ended it: what a shell, and `weft run`, report.
    pub status: i32,
    /// The files it left in its working directory.
    pub files: Tree,
}

/// A command and the world it runs in.
#[derive(Clone, Debug)]
pub struct Job {
    /// Program and arguments.
    pub command: Vec<OsString>,
    /// Its working directory.
    pub directory: PathBuf,
    /// Variables to set, beyond `PATH`, `HOME`, `LC_ALL=C` and what [`Job::new`] keeps; `None` removes one.
    pub environment: Vec<(OsString, Option<OsString>)>,
    /// How long it may take.
    pub limit: Duration,
}

impl Job {
    /// A command in a directory, with the usual environment and time limit.
    pub fn new<I: IntoIterator<Item = S>, S: Into<OsString>>(command: I, directory: &Path) -> Job {
        Job {
            command: command.into_iter().map(Into::into).collect(),
            directory: directory.to_owned(),
            environment: Vec::new(),
            limit: TIME_LIMIT,
        }
    }

    /// The same job under `weft run`, which leaves the run in `run`.
    pub fn traced(&self, run: &Path) -> Job {
        let mut command: Vec<OsString> = vec![product().into(), "run".into(), "-q".into(), "-o".into(), run.into()];
        command.push("--".into());
        command.extend(self.command.iter().cloned());
        Job { command, ..self.clone() }
    }

    /// Starts it as the leader of a process group of its own. Output goes to files beside the directory: a pipe would
    /// stay open, and a reader wait, as long as any forgotten descendant lives.
    pub fn start(&self) -> Running {
        let (out, err) = (self.beside("stdout"), self.beside("stderr"));
        let mut command = Command::new(&self.command[0]);
        command.args(&self.command[1..]).current_dir(&self.directory).process_group(0).stdin(Stdio::null());
        command.stdout(create(&out)).stderr(create(&err));
        // What a developer's shell carries must change no result. cargo lets the loader look into its own directories, where the product lies:
        // a library that is found only there would not be found by users.
        for (name, _) in std::env::vars_os() {
            if name == "LD_PRELOAD" || name == "LD_LIBRARY_PATH" || name.to_string_lossy().starts_with("WEFT_") {
                command.env_remove(name);
            }
        }
        command.env("LC_ALL", "C");
        for (name, value) in &self.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let started = command.spawn();
        let child = started.unwrap_or_else(|error| panic!("cannot start {:?}: {error}", self.command[0]));
        Running { child, job: self.clone(), started: Instant::now(), reaped: false }
    }

    /// Runs it to its end.
    pub fn run(&self) -> Outcome {
        self.start().finish()
    }

    /// The file beside the directory that takes a stream: `work` and `work.stdout`.
    pub fn beside(&self, what: &str) -> PathBuf {
        let mut name = self.directory.clone().into_os_string();
        name.push(".");
        name.push(what);
        name.into()
    }
}

fn create(path: &Path) -> File {
    File::create(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A job that was started. Dropping it kills the whole process group.
#[derive(Debug)]
pub struct Running {
    child: Child,
    job: Job,
    started: Instant,
    reaped: bool,
}

impl Running {
    /// The pid of the command itself.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits for its end and gathers what it did.
    ///
    /// # Panics
    /// When the time limit is reached; the process group is killed first.
    pub fn finish(mut self) -> Outcome {
        let status = self.wait();
        let read = |path: PathBuf| fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Outcome {
            stdout: read(self.job.beside("stdout")),
            stderr: read(self.job.beside("stderr")),
            status: code(status),
            files: tree(&self.job.directory),
        }
    }

    /// Waits for its end.
    pub fn wait(&mut self) -> ExitStatus {
        let mut pause = Duration::from_micros(200);
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => {
                    self.reaped = true;
                    return status;
                }
                Ok(None) if self.started.elapsed() > self.job.limit => {
                    self.kill_group();
                    panic!(
                        "{:?} still ran after {:?} in {}",
                        self.job.command,
                        self.job.limit,
                        self.job.directory.display()
                    );
                }
                Ok(None) => std::thread::sleep(pause),
                Err(error) => panic!("cannot wait for {:?}: {error}", self.job.command),
            }
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }

    /// Kills the command itself with SIGKILL, and nothing else.
    pub fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }

    /// Kills the command and all that it started in its group.
    pub fn kill_group(&self) {
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // ESRCH: nobody is left, which is what was wanted.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.reaped {
            self.kill_group();
            let _ = self.child.wait();
        }
    }
}

/// An exit status as a shell shows it.
pub fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).expect("a process that ended has one of both")
}

/// Runs `weft` with the arguments of a verb, to its end.
pub fn weft<I: IntoIterator<Item = S>, S: Into<OsString>>(arguments: I, scratch: &Scratch) -> Outcome {
    let mut command: Vec<OsString> = vec![product().into()];
    command.extend(arguments.into_iter().map(Into::into));
    Job::new(command, &scratch.dir("verb")).run()
}
