//! The first screen of six jobs. Somebody who reads the first five lines of each, and nothing else, must be able to name the cause.
//!
//! The jobs are built here, so that every number is the same each time; their shapes are those of real ones.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use weftline_analysis::findings::Config;
use weftline_analysis::pass;
use weftline_analysis::summary::Question;
use weftline_format::manifest::{Exit, IoCount, ProcessRecord, State, SupervisorRecord};
use weftline_index::{OpenOptions, Run};
use weftline_report::text::Plain;
use weftline_report::{make, text};

/// When the jobs begin, µs since the epoch.
const EPOCH: i64 = 1_794_764_782_000_000;
const SECOND: i64 = 1_000_000;
/// The process that ran `weft run`.
const SUPERVISOR: u32 = 99;

#[derive(Default)]
struct Job {
    /// By process: a file belongs to one.
    lines: BTreeMap<u32, String>,
    files: Vec<(u32, String)>,
    record: SupervisorRecord,
}

impl Job {
    /// A process that lives for some seconds and uses so much CPU, all in its main thread.
    fn process(&mut self, pid: u32, ppid: u32, command: &str, seconds: i64, cpu: i64, rank: Option<u32>) {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        let list = words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(",");
        let rank_field = rank.map(|rank| format!("\"rank\":{rank},")).unwrap_or_default();
        writeln!(
            self.lines.entry(pid).or_default(),
            r#"{{"name":"process_name","cat":"weft","ph":"M","pid":{pid},"tid":{pid},"ts":{EPOCH},"args":{{"name":"{command}","host":"node1","hhash":"5c0d3f1e2a4b6978","boot":"b-1","pidns":4026531836,"start":{pid},"nonce":"n{pid}","ppid":{ppid},"exe":"/usr/bin/{}","cmd":[{list}],"cwd":"/home/u",{rank_field}"seq":0}}}}"#,
            words[0]
        )
        .expect("a string");
        self.record.processes.push(ProcessRecord {
            pid,
            ppid,
            rank,
            host: "node1".to_owned(),
            nonce: format!("n{pid}"),
            start: u64::from(pid),
            pidns: 4_026_531_836,
            exe: format!("/usr/bin/{}", words[0]),
            command: words,
            started_ns: EPOCH * 1000,
            ended_ns: (EPOCH + seconds * SECOND) * 1000,
            cpu_ns: (cpu * SECOND * 1000) as u64,
            main_cpu_ns: (cpu * SECOND * 1000) as u64,
            max_rss: 3 << 30,
            events: 1000,
            ..ProcessRecord::default()
        });
    }

    fn span(&mut self, pid: u32, cat: &str, name: &str, start: i64, dur: i64, args: &str) {
        writeln!(
            self.lines.entry(pid).or_default(),
            r#"{{"name":"{name}","cat":"{cat}","ph":"X","pid":{pid},"tid":{pid},"ts":{},"dur":{dur},"args":{{{args}}}}}"#,
            EPOCH + start
        )
        .expect("a string");
    }

    fn call(&mut self, pid: u32, name: &str, path: &str, (start, dur): (i64, i64), bytes: i64, offset: i64) {
        let known = self.files.iter().position(|(owner, known)| (*owner, known.as_str()) == (pid, path));
        let place = known.unwrap_or_else(|| {
            self.files.push((pid, path.to_owned()));
            let place = self.files.len() - 1;
            let metadata = format!(r#""name":"FH","cat":"dftracer","ph":"M","pid":{pid},"tid":{pid}"#);
            let lines = self.lines.entry(pid).or_default();
            writeln!(lines, r#"{{{metadata},"args":{{"name":"{path}","value":"{place:016x}"}}}}"#).expect("a string");
            place
        });
        let moved = if bytes > 0 { format!(r#","size":{bytes},"offset":{offset}"#) } else { String::new() };
        self.span(pid, "POSIX", name, start, dur, &format!(r#""fd":3,"fhash":"{place:016x}","ret":{bytes}{moved}"#));
    }

    /// The first screen: as many lines as a small terminal has.
    fn screen(self, run: &str) -> String {
        self.text(run).lines().take(24).collect::<Vec<_>>().join("\n")
    }

    /// The whole report.
    fn text(mut self, run: &str) -> String {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let processes = &self.record.processes;
        self.record.wall_ns = processes.iter().map(|one| (one.ended_ns - one.started_ns) as u64).max().unwrap_or(0);
        self.record.cpu_ns = processes.iter().map(|one| one.cpu_ns).sum();
        self.record.drain_cpu_ns = self.record.cpu_ns / 100;
        self.record.state = State::Complete;
        self.record.pid = SUPERVISOR;
        self.record.exit = Some(Exit { code: Some(0), signal: None });
        self.record.tree_io = Some(IoCount { rchar: 0, wchar: 0 });
        self.record.write(directory.path()).expect("written");
        for (pid, lines) in &self.lines {
            std::fs::write(directory.path().join(format!("node1-{pid}.pfw")), format!("[\n{lines}")).expect("written");
        }
        text_of(directory.path(), run)
    }
}

fn text_of(path: &Path, name: &str) -> String {
    let options = OpenOptions { no_index: true, ..OpenOptions::default() };
    let run = Run::open(&[path.to_owned()], &options).expect("opened");
    let (summary, verdict) = pass::report(&run, &Question::default(), Some(&Config::default())).expect("judged");
    let report = make::report(&[name.to_owned()], &run, &summary, Vec::new(), &verdict);
    text::text(&report, 100, &Plain)
}

/// A training job of a hundred steps of 0.6 s, in parts of a step (ms): waiting for data, computing, saving.
fn training(fetch: i64, compute: i64, save: i64) -> Job {
    let mut job = Job::default();
    let cpu = (compute + 5) / 10;
    job.process(100, SUPERVISOR, "python3 train.py --epochs 3", 60, cpu, None);
    for worker in 101..103 {
        job.process(worker, 100, "python3 train.py --epochs 3", 60, 8, None);
    }
    for step in 0..100 {
        let (start, ms) = (step * 600_000, 1000);
        job.span(100, "dataloader", "fetch", start, fetch * ms, "");
        job.span(100, "compute", "step", start + fetch * ms, compute * ms, "");
        let worker = 101 + (step % 2) as u32;
        let path = format!("/data/train/shard-{:03}.tar", step % 50);
        job.call(worker, "read", &path, (start, (fetch * ms).min(400_000)), 8 << 20, step / 50 * (8 << 20));
        if save > 0 {
            let saved = start + (fetch + compute) * ms;
            job.span(100, "checkpoint", "save", saved, save * ms, "");
            job.call(100, "write", "/scratch/out/model.pt", (saved, save * ms - 10), 64 << 20, step * (64 << 20));
        }
    }
    job
}

#[test]
fn a_starving_loader() {
    insta::assert_snapshot!(training(400, 180, 0).screen("runs/starving"));
}

#[test]
fn a_healthy_loader() {
    insta::assert_snapshot!(training(10, 580, 0).screen("runs/healthy"));
}

#[test]
fn a_checkpoint_stall() {
    insta::assert_snapshot!(training(10, 340, 240).screen("runs/checkpoints"));
}

#[test]
fn a_straggling_rank() {
    let mut job = Job::default();
    job.process(100, SUPERVISOR, "mpirun -n 4 ./simulate", 60, 0, None);
    job.span(100, "POSIX", "wait4", 0, 60 * SECOND, r#""ret":104"#);
    for rank in 0..4 {
        let (pid, seconds) = (101 + rank, if rank == 3 { 60 } else { 22 });
        job.process(pid, 100, "./simulate input.nc", seconds, seconds - 1, Some(rank));
        job.call(pid, "read", "/data/input.nc", (0, SECOND / 4), 64 << 20, i64::from(rank) * (64 << 20));
        let path = format!("/scratch/out/part-{rank}.nc");
        job.call(pid, "write", &path, (seconds * SECOND - SECOND / 4, SECOND / 4), 64 << 20, 0);
    }
    insta::assert_snapshot!(job.screen("runs/straggler"));
}

/// Stragglers are named by program and pid and compared with their like: not a program with its own workers, and not for a few milliseconds.
#[test]
fn stragglers_are_compared_with_their_like() {
    let check = |slowest: i64, expected: Option<&str>| {
        let mut job = Job::default();
        job.process(100, SUPERVISOR, "python3 train.py", 60, 30, None);
        job.call(100, "read", "/data/all.tar", (0, 50 * SECOND), 64 << 20, 0);
        for pid in 101..108 {
            job.process(pid, 100, "python3 train.py", 60, 8, None);
            let time = if pid == 104 { slowest } else { SECOND / 10 };
            job.call(pid, "read", "/data/part.tar", (0, time), 1 << 20, 0);
        }
        let text = job.text("runs/pool");
        let table = text.split_once("stragglers\n").map(|(_, rest)| rest.lines().nth(1).unwrap_or_default());
        let words = table.map(|row| row.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(words.as_deref(), expected, "{text}");
    };
    check(20 * SECOND, Some("python3 train.py 104 20.00 s 100.0 ms 200 2.45"));
    check(SECOND / 2, None);
    check(SECOND / 10, None);
}

#[test]
fn a_database_that_syncs() {
    let mut job = Job::default();
    job.process(100, SUPERVISOR, "sqlite3 app.db", 60, 6, None);
    for commit in 0..2_000i64 {
        let start = commit * 30_000;
        job.call(100, "pwrite", "/home/u/app.db", (start, 100), 4096, commit % 64 * 4096);
        job.call(100, "fdatasync", "/home/u/app.db", (start + 100, 24_000), 0, 0);
    }
    insta::assert_snapshot!(job.screen("runs/database"));
}

#[test]
fn a_program_that_computes() {
    let mut job = Job::default();
    job.process(100, SUPERVISOR, "./solve matrix.bin", 60, 58, None);
    job.call(100, "read", "/data/matrix.bin", (0, SECOND), 512 << 20, 0);
    job.call(100, "write", "/scratch/out/result.bin", (59 * SECOND, SECOND / 2), 64 << 20, 0);
    insta::assert_snapshot!(job.screen("runs/solve"));
}
