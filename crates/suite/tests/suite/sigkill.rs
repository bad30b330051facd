//! SIGKILL at random moments: of the program, of `weft run`, of both, and of recovery itself. Not one call that returned
//! is missing, none is there twice.

use std::collections::HashMap;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use weftline_format::reader;
use weftline_testkit::compile::{PLAIN, compile};
use weftline_testkit::product::product;
use weftline_testkit::random::Random;
use weftline_testkit::run::{Job, Running, weft};
use weftline_testkit::table::{number, plain};
use weftline_testkit::{Scratch, scratch};

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    /// The program: `weft run` notices and completes the run by itself.
    Program,
    /// `weft run`; the program goes on and is killed later.
    Supervisor,
    /// Both at the same moment.
    Both,
}

/// A run of `kill_me`, whose counters in a shared page are the truth.
struct Experiment {
    scratch: Scratch,
    run: PathBuf,
    threads: u64,
    running: Running,
    note: String,
}

impl Experiment {
    fn start(parent: &Path, threads: u64, calls: u64, note: String) -> Experiment {
        let scratch = Scratch::within(parent, "sigkill");
        let (work, run) = (scratch.dir("work"), scratch.join("run"));
        fs::write(work.join("data"), [0; 64]).expect("the scratch directory can be written");
        fs::write(work.join("truth"), [0; 4096]).expect("the scratch directory can be written");
        let command = [
            compile("kill_me", PLAIN).into_os_string(),
            "data".into(),
            "truth".into(),
            threads.to_string().into(),
            calls.to_string().into(),
        ];
        let running = Job::new(command, &work).traced(&run).start();
        Experiment { scratch, run, threads, running, note }
    }

    /// What the program has told so far: its pid, then calls per thread.
    fn truth(&self) -> Vec<u64> {
        let page = fs::read(self.scratch.join("work/truth")).expect("the truth page is there");
        page.chunks_exact(8)
            .take(1 + self.threads as usize)
            .map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")))
            .collect()
    }

    /// Waits until the program has begun to count.
    fn wait_for_first_calls(&self) {
        let patience = Instant::now();
        while self.truth()[1] == 0 {
            assert!(patience.elapsed() < Duration::from_secs(20), "the program did not start: {}", self.note);
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn kill_program(&self) {
        let pid = Pid::from_raw(self.truth()[0] as i32).expect("the program has told its pid");
        kill_process(pid, Signal::KILL).expect("the program runs until it is killed");
        // Dying takes a moment; recovery must find a dead process, not a dying one.
        let patience = Instant::now();
        while Path::new(&format!("/proc/{pid}/exe")).read_link().is_ok() {
            assert!(patience.elapsed() < Duration::from_secs(20), "the program would not die: {}", self.note);
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    fn recover(&self) {
        let outcome = weft(["recover".as_ref(), self.run.as_os_str()], &self.scratch);
        assert_eq!(outcome.status, 0, "recover, {}: {}", self.note, String::from_utf8_lossy(&outcome.stderr));
    }

    /// Compares the trace with the truth.
    fn verify(&self) {
        let truth = self.truth();
        let trace = reader::read_run(&self.run).unwrap_or_else(|error| panic!("{}: {error}", self.note));
        let place = self.scratch.path().display();
        let mut seen: HashMap<u64, u64> = HashMap::new();
        for event in trace.events.iter().filter(|event| plain(&event.name) == "pread") {
            let offset =
                number(event, "offset").unwrap_or_else(|| panic!("{}: a pread without offset: {event:?}", self.note));
            *seen.entry(offset.unsigned_abs()).or_default() += 1;
        }
        let twice: Vec<_> = seen.iter().filter(|(_, times)| **times > 1).take(5).collect();
        assert!(twice.is_empty(), "{}, {place}: calls that are there twice: {twice:?}", self.note);
        for thread in 0..self.threads {
            let returned = truth[1 + thread as usize];
            let missing: Vec<u64> =
                (0..returned).filter(|call| !seen.contains_key(&(call * self.threads + thread))).collect();
            assert!(
                missing.is_empty(),
                "{}, {place}: of {returned} calls of thread {thread} {} are missing, from {:?}",
                self.note,
                missing.len(),
                missing.first()
            );
            let beyond = (returned + 1..returned + 3).any(|call| seen.contains_key(&(call * self.threads + thread)));
            assert!(!beyond, "{}: thread {thread} has calls that it never made", self.note);
        }
        assert!(trace.damage.is_empty(), "{}, {place}: {:?}", self.note, trace.damage);
    }
}

impl Drop for Experiment {
    /// The program runs until it is killed: also when a check failed before that.
    fn drop(&mut self) {
        self.running.kill_group();
    }
}

fn places() -> [PathBuf; 2] {
    ["/dev/shm".into(), scratch::base()]
}

/// Kills at random moments: mostly early, when everything is still being set up, sometimes after many buffers were filled.
fn kill_at_random_moments(victim: Victim, rounds: u64) {
    let mut random = Random::new();
    for round in 0..rounds {
        let place = &places()[(round % 2) as usize];
        let threads = 1 + random.below(4);
        let note = format!(
            "WEFT_TEST_SEED={} round {round}: {victim:?}, {threads} threads on {}",
            random.seed,
            place.display()
        );
        let mut experiment = Experiment::start(place, threads, 0, note);
        experiment.wait_for_first_calls();
        let limit = if round % 5 == 4 { 250 } else { 30 };
        std::thread::sleep(random.duration(Duration::from_millis(limit)));
        match victim {
            Victim::Program => {
                experiment.kill_program();
                let status = experiment.running.wait();
                assert_eq!(status.signal(), Some(9), "weft dies as its program did: {}", experiment.note);
            }
            Victim::Supervisor => {
                experiment.running.kill().expect("weft runs until it is killed");
                experiment.running.wait();
                std::thread::sleep(random.duration(Duration::from_millis(limit)));
                experiment.kill_program();
                experiment.recover();
            }
            Victim::Both => {
                experiment.running.kill().expect("weft runs until it is killed");
                experiment.kill_program();
                experiment.running.wait();
                experiment.recover();
            }
        }
        experiment.verify();
    }
}

#[test]
fn of_the_program() {
    kill_at_random_moments(Victim::Program, 30);
}

#[test]
fn of_the_supervisor_while_the_program_goes_on() {
    kill_at_random_moments(Victim::Supervisor, 16);
}

#[test]
fn of_both() {
    kill_at_random_moments(Victim::Both, 16);
}

/// The program ends by itself, long after its supervisor was killed.
#[test]
fn of_the_supervisor_of_a_program_that_finishes() {
    for place in places() {
        let note = format!("on {}", place.display());
        let mut experiment = Experiment::start(&place, 2, 100_000, note);
        experiment.wait_for_first_calls();
        experiment.running.kill().expect("weft runs until it is killed");
        experiment.running.wait();
        let patience = Instant::now();
        while experiment.truth()[1..].iter().any(|calls| *calls < 100_000) {
            assert!(
                patience.elapsed() < Duration::from_secs(30),
                "the program stopped when its supervisor died: {:?}",
                experiment.truth()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(20)); // from the last count to the end of the process
        experiment.recover();
        experiment.verify();
    }
}

/// Recovery may itself be killed at any moment and run any number of times.
#[test]
fn of_recovery() {
    let mut random = Random::new();
    for round in 0..10 {
        let place = &places()[(round % 2) as usize];
        let note = format!("WEFT_TEST_SEED={} round {round}: recovery, 3 threads on {}", random.seed, place.display());
        let mut experiment = Experiment::start(place, 3, 0, note);
        experiment.wait_for_first_calls();
        std::thread::sleep(random.duration(Duration::from_millis(20)));
        experiment.running.kill().expect("weft runs until it is killed");
        std::thread::sleep(random.duration(Duration::from_millis(60)));
        experiment.kill_program();
        experiment.running.wait();
        for attempt in 0..4 {
            let command = [product().as_os_str(), "recover".as_ref(), experiment.run.as_os_str()];
            let mut recovery = Job::new(command, &experiment.scratch.dir(&format!("recovery{attempt}"))).start();
            std::thread::sleep(random.duration(Duration::from_millis(25)));
            recovery.kill().expect("a process that was not waited for can be killed");
            recovery.wait();
        }
        experiment.recover();
        experiment.verify();
        experiment.recover();
        experiment.verify();
    }
}
