//! Real runs, made once per test process and put into sandboxes as often as wanted.

use std::fs;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::index;
use super::sandbox::{STEM, Sandbox, directory};
use crate::compile::{PLAIN, compile};
use crate::product::product;
use crate::run::{Job, weft};
use crate::scratch::{self, Scratch};

/// Bytes of a file that are looked at together: those that are all zero are left out, since shared memory mostly is.
const BLOCK: usize = 4096;

/// One file or directory of a run.
#[derive(Clone, Debug)]
struct Entry {
    path: PathBuf,
    mode: u32,
    /// Nothing for a directory.
    content: Option<Content>,
}

/// What a file holds: its length, and the blocks that are not all zero, with their places.
#[derive(Clone, Debug)]
struct Content {
    length: u64,
    blocks: Vec<(u64, Vec<u8>)>,
}

/// A run that can be put anywhere.
#[derive(Clone, Debug)]
pub struct Seed {
    /// What is special about it.
    pub name: &'static str,
    entries: Vec<Entry>,
    /// Its shared memory goes to the user's directory in TMPDIR instead of the run.
    outside: bool,
}

/// All of them.
///
/// # Panics
/// When one cannot be made.
pub fn all() -> Vec<Seed> {
    let whole = whole();
    let killed = killed();
    let outside = Seed { name: "killed, shared memory in TMPDIR", outside: true, ..killed.clone() };
    let mut both = killed.clone();
    both.name = "killed and indexed";
    both.entries.extend(whole.entries.iter().filter(|entry| entry.path.starts_with(".weft")).cloned());
    vec![whole, killed, outside, both, sampled()]
}

/// A run that ended well, with its index and verdict.
fn whole() -> Seed {
    let scratch = Scratch::within(&scratch::base(), "seed-whole");
    let run = scratch.join("run");
    let script = format!(r#""{0}" exit 50; "{0}" exit 5000"#, compile("ending", PLAIN).display());
    let outcome = Job::new(["/bin/sh", "-c", &script], &scratch.dir("work")).traced(&run).run();
    assert_eq!(outcome.status, 7, "{}", String::from_utf8_lossy(&outcome.stderr));
    // Makes the index, and keeps its verdict beside it.
    let reported = weft(["report".as_ref(), run.as_os_str()], &scratch);
    assert_eq!(reported.status, 0, "{}", String::from_utf8_lossy(&reported.stderr));
    let entries = read(&run);
    for name in [".weft/index/index.json", ".weft/verdict.json"] {
        assert!(entries.iter().any(|entry| entry.path == Path::new(name)), "no {name}");
    }
    Seed { name: "whole", entries, outside: false }
}

/// A run whose supervisor was killed, and then its program.
fn killed() -> Seed {
    let scratch = Scratch::within(&scratch::base(), "seed-killed");
    let (work, run) = (scratch.dir("work"), scratch.join("run"));
    fs::write(work.join("data"), [0; 64]).expect("written");
    fs::write(work.join("truth"), [0; 4096]).expect("written");
    let command =
        [compile("kill_me", PLAIN).into_os_string(), "data".into(), "truth".into(), "3".into(), "40000".into()];
    let mut running = Job::new(command, &work).traced(&run).start();
    let truth = || {
        let page = fs::read(work.join("truth")).expect("there");
        let words: Vec<u64> =
            page.chunks_exact(8).take(4).map(|word| u64::from_le_bytes(word.try_into().expect("eight"))).collect();
        words
    };
    let patience = Instant::now();
    let wait = |until: &dyn Fn() -> bool| {
        while !until() {
            assert!(patience.elapsed() < Duration::from_secs(20), "kill_me did not get there");
            std::thread::sleep(Duration::from_micros(200));
        }
    };
    wait(&|| truth()[1..].iter().all(|calls| *calls > 0));
    running.kill().expect("weft runs");
    running.wait();
    // What the program does from now on stays in shared memory.
    wait(&|| truth()[1..].iter().all(|calls| *calls > 5000));
    if let Some(pid) = Pid::from_raw(truth()[0] as i32) {
        // It may have ended by itself.
        let _ = kill_process(pid, Signal::KILL);
        wait(&|| fs::read_link(format!("/proc/{}/exe", truth()[0])).is_err());
    }
    let seed = capture("killed", &run);
    let Some((_, live)) = pointer_of(&run) else { panic!("a killed run has a pointer") };
    if !live.starts_with(&run) {
        fs::remove_dir_all(&live).expect("the run's own shared memory");
    }
    seed
}

/// A run as it is now, with its shared memory wherever that is.
pub fn capture(name: &'static str, run: &Path) -> Seed {
    let mut entries = read(run);
    let Some((pointer, live)) = pointer_of(run) else { return Seed { name, entries, outside: false } };
    let id = pointer["run_id"].as_str().unwrap_or_default().to_owned();
    if !live.starts_with(run) && live.is_dir() {
        entries.push(Entry { path: ".live".into(), mode: 0o700, content: None });
        entries.push(Entry { path: Path::new(".live").join(STEM), mode: 0o700, content: None });
        for mut entry in read(&live) {
            entry.path = Path::new(".live").join(STEM).join(entry.path);
            entries.push(entry);
        }
    }
    // Names without the supervisor's pid: the same choices then mean the same files in every process.
    let stem = live.file_name().expect("a name").to_string_lossy().into_owned();
    let stem = stem.strip_prefix(&format!("{id}-")).unwrap_or(&stem).to_owned();
    for entry in &mut entries {
        entry.path = PathBuf::from(entry.path.to_string_lossy().replace(&stem, STEM));
    }
    Seed { name, entries, outside: false }
}

/// A run of samples whose collector was killed.
fn sampled() -> Seed {
    let scratch = Scratch::within(&scratch::base(), "seed-sampled");
    let run = scratch.join("run");
    let command = [product().as_os_str(), "collect".as_ref(), "-o".as_ref(), run.as_os_str(), "--interval".as_ref()];
    let command: Vec<_> = command.iter().map(|word| (*word).to_owned()).chain(["50ms".into()]).collect();
    let mut running = Job::new(command, &scratch.dir("work")).start();
    let patience = Instant::now();
    let has_tail = || {
        let mut entries = fs::read_dir(&run).into_iter().flatten().flatten();
        entries.any(|entry| {
            entry.file_name().to_string_lossy().ends_with(".tail")
                && entry.metadata().is_ok_and(|data| data.len() > 2000)
        })
    };
    while !has_tail() {
        assert!(patience.elapsed() < Duration::from_secs(20), "weft collect did not begin in {}", run.display());
        std::thread::sleep(Duration::from_millis(1));
    }
    running.kill().expect("weft runs");
    running.wait();
    Seed { name: "sampled, collector killed", entries: read(&run), outside: false }
}

/// The pointer of a run with one live directory, and that directory; nothing when it has none.
fn pointer_of(run: &Path) -> Option<(Value, PathBuf)> {
    let records = fs::read_dir(run.join("run.d")).ok()?.flatten();
    let path = records.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "live"))?;
    let pointer: Value = serde_json::from_slice(&fs::read(path).ok()?).expect("JSON");
    let live = PathBuf::from(pointer["path"].as_str().expect("a path"));
    Some((pointer, live))
}

fn read(root: &Path) -> Vec<Entry> {
    let mut found = Vec::new();
    visit(root, root, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn visit(root: &Path, directory: &Path, found: &mut Vec<Entry>) {
    for path in fs::read_dir(directory).expect("listed").map(|entry| entry.expect("an entry").path()) {
        let data = fs::symlink_metadata(&path).expect("there");
        let content = data.is_file().then(|| {
            let bytes = fs::read(&path).expect("read");
            let blocks = bytes.chunks(BLOCK).enumerate().filter(|(_, block)| block.iter().any(|byte| *byte != 0));
            let blocks = blocks.map(|(index, block)| ((index * BLOCK) as u64, block.to_vec())).collect();
            Content { length: data.len(), blocks }
        });
        found.push(Entry {
            path: path.strip_prefix(root).expect("below").to_owned(),
            mode: data.mode() & 0o7777,
            content,
        });
        if data.is_dir() {
            visit(root, &path, found);
        }
    }
}

impl Seed {
    /// Puts the run into a sandbox, its pointer leading to where its shared memory is now, its index being one of the files that are there now.
    pub fn put(&self, sandbox: &Sandbox) {
        let run = sandbox.run();
        directory(&run);
        let live = Path::new(".live").join(STEM);
        for entry in &self.entries {
            let path = match entry.path.strip_prefix(&live) {
                Ok(below) if self.outside => sandbox.own_live().join(below),
                _ if self.outside && entry.path == Path::new(".live") => continue,
                _ => run.join(&entry.path),
            };
            put(&path, entry);
        }
        index::accept(&run);
        let pointer = run.join(format!("run.d/{STEM}.live"));
        let Ok(text) = fs::read(&pointer) else { return };
        let mut value: Value = serde_json::from_slice(&text).expect("JSON");
        let place = if self.outside { sandbox.own_live() } else { run.join(live) };
        value["path"] = Value::from(place.to_string_lossy().into_owned());
        fs::write(&pointer, serde_json::to_vec_pretty(&value).expect("JSON")).expect("written");
    }
}

fn put(path: &Path, entry: &Entry) {
    match &entry.content {
        None => directory(path),
        Some(Content { length, blocks }) => {
            let file = fs::File::create(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            file.set_len(*length).expect("room");
            for (at, block) in blocks {
                file.write_all_at(block, *at).expect("room");
            }
        }
    }
    fs::set_permissions(path, fs::Permissions::from_mode(entry.mode)).expect("set");
}
