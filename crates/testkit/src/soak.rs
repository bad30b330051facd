//! `make soak`: SIGKILL at a random moment, attacks on the remaining files, recovery; any number of rounds.
//!
//! Each round runs `kill_us` (some processes with some threads) under `weft run`, kills one of them, and leaves everything to recovery. In between the
//! run is attacked. The run itself gets additions that must do no harm: links, pipes, foreign files, a pointer to a file of the user. A copy is mutated
//! ([`hostile::mutate`](crate::hostile::mutate)) and read by verbs. Then the trace is compared with the program's own counts.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, geteuid, kill_process};
use weftline_format::reader;

use crate::compile::{PLAIN, compile};
use crate::hostile::attack::Attacker;
use crate::hostile::sandbox::{Sandbox, differences};
use crate::hostile::{attack, seeds, trial};
use crate::product::product;
use crate::random::Random;
use crate::run::{Job, Running, weft};
use crate::scratch::{self, Scratch};
use crate::table::{number, plain};

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Victim {
    /// The program that `weft run` started; its children go on.
    Program,
    /// A child of it.
    Child,
    /// `weft run`; the programs go on.
    Supervisor,
    /// `weft run` and the program at once.
    Both,
    /// `weft run`, and then recovery, several times.
    Recovery,
}

const VICTIMS: [Victim; 5] = [Victim::Program, Victim::Child, Victim::Supervisor, Victim::Both, Victim::Recovery];
/// Every so many rounds a program attacks its own shared memory.
const SCRIBBLE_EVERY: u64 = 10;
/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What was seen so far.
#[derive(Debug, Default)]
pub struct Sums {
    /// Per victim and place of the shared memory: kills, calls that had returned, calls that are missing, calls that are there twice.
    rows: BTreeMap<(Victim, &'static str), [u64; 4]>,
    mutated: u64,
    scribbled: u64,
    /// What was wrong, in words.
    pub faults: Vec<String>,
}

impl Sums {
    /// The table, in Markdown.
    pub fn table(&self, seed: u64, took: Duration) -> String {
        let mut out = String::from(
            "| killed | shared memory in | kills | calls that had returned | missing | twice |\n|---|---|---|---|---|---|\n",
        );
        let mut all = [0; 4];
        for ((victim, arenas), row) in &self.rows {
            let name = format!("{victim:?}").to_lowercase();
            let [kills, calls, missing, twice] = row;
            out += &format!("| {name} | {arenas} | {kills} | {} | {missing} | {twice} |\n", grouped(*calls));
            all.iter_mut().zip(row).for_each(|(sum, count)| *sum += count);
        }
        let [kills, calls, missing, twice] = all;
        out += &format!("| **all** | | **{kills}** | **{}** | **{missing}** | **{twice}** |\n\n", grouped(calls));
        out += &format!(
            "Every run was attacked before it was recovered. {} mutated copies were read by one or two verbs each, and {} programs attacked their own \
             shared memory. Faults (a crash, a hang, too much memory, a change outside the run, a call missing or doubled): {}. Seed {seed}, {} minutes on {} cores.\n",
            self.mutated,
            self.scribbled,
            self.faults.len(),
            took.as_secs().div_ceil(60),
            std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        );
        out
    }
}

/// A number with its thousands apart.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Does one round and adds what it saw. Everything follows from the number, but for the moment at which a kill meets a program.
pub fn round(number: u64, scribbler: &Path, sums: &mut Sums) {
    let mut random = Random::seeded(number);
    let victim = VICTIMS[(number % VICTIMS.len() as u64) as usize];
    let arenas = *random.one_of(&["disk", "memory"]);
    let place = if random.percent(80) { scratch::base() } else { "/dev/shm".into() };
    let note = format!("seed {number}, {victim:?}, arenas in {arenas}");
    let mut family = Family::start(&mut random, &place, arenas, victim == Victim::Child);
    family.wait_for_first_calls();
    let limit = Duration::from_millis(if number.is_multiple_of(5) { 250 } else { 30 });
    std::thread::sleep(random.duration(limit));
    family.kill(victim, &mut random, limit);

    // A copy, changed at random.
    let copy = seeds::capture("copy", &family.run);
    let tried = trial::try_once(random.number(), product(), &[copy], &trial::reading(), Path::new("/dev/shm"));
    sums.mutated += 1;
    if tried.fault.is_some() {
        sums.faults.push(format!("{note}: a mutated copy: {}", tried.description("")));
    }
    // The run itself, with things in it that must not matter.
    let sandbox = Sandbox::within(&place);
    plant(&mut random, &family.run, &sandbox);
    let before = sandbox.snapshot();
    if victim == Victim::Recovery {
        family.kill_recoveries(&mut random);
    }
    let recovered = weft(["recover".as_ref(), family.run.as_os_str()], &family.scratch);
    if recovered.status != 0 {
        sums.faults.push(format!("{note}: recover: {}", String::from_utf8_lossy(&recovered.stderr)));
    }
    let changed = differences(&before, &sandbox.snapshot());
    if !changed.is_empty() {
        sums.faults.push(format!("{note}: changed outside the run: {}", changed.join("; ")));
    }
    let row = sums.rows.entry((victim, arenas)).or_default();
    row[0] += 1;
    match family.compare() {
        Ok([calls, missing, twice]) => {
            [calls, missing, twice].iter().zip(&mut row[1..]).for_each(|(count, sum)| *sum += count);
            if missing + twice > 0 {
                let place = family.keep().display().to_string();
                sums.faults.push(format!("{note}: {missing} missing, {twice} twice of {calls}; kept in {place}"));
            }
        }
        Err(fault) => sums.faults.push(format!("{note}: {fault}; kept in {}", family.keep().display())),
    }
    if number.is_multiple_of(SCRIBBLE_EVERY) {
        let way = random.one_of(&attack::WAYS);
        let other = geteuid().is_root() && random.percent(30);
        let attacker = if other { Attacker::Nobody } else { Attacker::Own };
        sums.scribbled += 1;
        sums.faults.extend(attack::attack(scribbler, way, random.number(), &place, attacker));
    }
}

/// `kill_us` under `weft run`.
struct Family {
    scratch: Scratch,
    run: PathBuf,
    children: u64,
    threads: u64,
    running: Running,
}

impl Family {
    fn start(random: &mut Random, place: &Path, arenas: &str, has_children: bool) -> Family {
        let scratch = Scratch::within(place, "soak");
        let (work, run) = (scratch.dir("work"), scratch.join("run"));
        let children = u64::from(has_children) + random.below(2);
        let threads = 1 + random.below(8);
        fs::write(work.join("data"), [0; 64]).expect("written");
        fs::write(work.join("truth"), [0; 4096]).expect("written");
        let command = [
            compile("kill_us", PLAIN).into_os_string(),
            "data".into(),
            "truth".into(),
            children.to_string().into(),
            threads.to_string().into(),
        ];
        let mut job = Job::new(command, &work).traced(&run);
        job.command.splice(2..2, ["--arenas".into(), arenas.into()]);
        let running = job.start();
        Family { scratch, run, children, threads, running }
    }

    /// Pids of the processes, and the calls of each thread that have returned.
    fn truth(&self) -> (Vec<u64>, Vec<u64>) {
        let page = fs::read(self.scratch.join("work/truth")).expect("the truth page is there");
        let mut words: Vec<u64> =
            page.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes"))).collect();
        let processes = 1 + self.children as usize;
        words.truncate(processes + processes * self.threads as usize);
        let counters = words.split_off(processes);
        (words, counters)
    }

    fn wait_for_first_calls(&self) {
        wait("the program did not start", || {
            let (pids, counters) = self.truth();
            pids.iter().all(|pid| *pid != 0) && counters.iter().any(|calls| *calls > 0)
        });
    }

    /// Kills the victim, and a moment later all the rest.
    fn kill(&mut self, victim: Victim, random: &mut Random, limit: Duration) {
        let (pids, _) = self.truth();
        match victim {
            Victim::Program => kill(pids[0]),
            Victim::Child => kill(pids[1]),
            Victim::Supervisor | Victim::Recovery => self.running.kill().expect("weft runs until it is killed"),
            Victim::Both => {
                self.running.kill().expect("weft runs until it is killed");
                kill(pids[0]);
            }
        }
        std::thread::sleep(random.duration(limit));
        for pid in &pids {
            kill(*pid);
        }
        for pid in pids {
            wait("a killed process is still there", || fs::read_link(format!("/proc/{pid}/exe")).is_err());
        }
        self.running.wait();
    }

    fn kill_recoveries(&self, random: &mut Random) {
        for attempt in 0..1 + random.below(3) {
            let command = [product().as_os_str(), "recover".as_ref(), self.run.as_os_str()];
            let mut recovery = Job::new(command, &self.scratch.dir(&format!("recovery{attempt}"))).start();
            std::thread::sleep(random.duration(Duration::from_millis(25)));
            // It may have ended; what was not waited for can be killed all the same.
            let _ = recovery.kill();
            recovery.wait();
        }
    }

    /// Calls that had returned, that are missing, that are there twice.
    fn compare(&self) -> Result<[u64; 3], String> {
        let trace = reader::read_run(&self.run).map_err(|error| error.to_string())?;
        if !trace.damage.is_empty() {
            return Err(format!("damage: {:?}", trace.damage));
        }
        let mut seen: HashMap<u64, u64> = HashMap::new();
        for event in trace.events.iter().filter(|event| plain(&event.name) == "pread") {
            let offset = number(event, "offset").ok_or("a pread without offset")?;
            *seen.entry(offset.unsigned_abs()).or_default() += 1;
        }
        let (_, counters) = self.truth();
        let workers = counters.len() as u64;
        let returned = counters.iter().sum();
        let missing = (0..workers)
            .flat_map(|worker| (0..counters[worker as usize]).map(move |call| call * workers + worker))
            .filter(|offset| !seen.contains_key(offset))
            .count() as u64;
        let twice = seen.values().filter(|times| **times > 1).count() as u64;
        // A call may have returned without its program having come to count it; never two.
        let invented =
            seen.keys().filter(|offset| **offset / workers > counters[(**offset % workers) as usize]).count();
        if invented > 0 {
            return Err(format!("{invented} calls that nobody made"));
        }
        Ok([returned, missing, twice])
    }

    /// Leaves the files where they are.
    fn keep(self) -> PathBuf {
        let path = self.scratch.path().to_owned();
        std::mem::forget(self.scratch);
        path
    }
}

/// Puts things into a run that recovery must pass by.
fn plant(random: &mut Random, run: &Path, sandbox: &Sandbox) {
    let decoy = sandbox.path("decoy");
    for _ in 0..1 + random.below(3) {
        // What is there already stays.
        let _ = match random.below(6) {
            0 => symlink(&decoy, run.join(".weft")),
            1 => fs::write(run.join("run.d/evil-1-2.live"), pointer_to(&decoy)),
            2 => fs::write(run.join("run.d/broken-1-2.live"), "{\"path\": "),
            3 if run.join("pipe.pfw.gz").exists() => Ok(()),
            3 => Command::new("mkfifo").arg(run.join("pipe.pfw.gz")).status().map(drop),
            4 => symlink(decoy.join("thesis.tex"), run.join(".live/a300")),
            _ => fs::hard_link(decoy.join("thesis.tex"), run.join("thesis.tex")),
        };
    }
}

fn pointer_to(path: &Path) -> String {
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    serde_json::json!({"run_id": "x", "path": path, "host": host.trim(), "pid": 1, "start": 2}).to_string()
}

fn kill(pid: u64) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may have been killed before.
        let _ = kill_process(pid, Signal::KILL);
    }
}

fn wait(what: &str, until: impl Fn() -> bool) {
    let began = Instant::now();
    while !until() {
        assert!(began.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_micros(200));
    }
}
