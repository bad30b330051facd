//! Runs that somebody prepared: what they name is not removed, what they link to is not written, what they count is not believed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use weftline_format::identity::held;
use weftline_format::manifest::{RECORD_DIR, RunManifest};

use super::{ALONE, assert_exactly_once, drain, reads};
use crate::arena::ControlPage;
use crate::arena::writer::{NOBODY, Program};
use crate::drain::short_name;
use crate::live::{Live, LiveOptions, Pointer};
use crate::procfs::Host;
use crate::{DrainOptions, WhyOpen, recover, system};

/// A run directory, and one beside it that is none of its business.
struct Stage {
    place: tempfile::TempDir,
    run: PathBuf,
    precious: PathBuf,
}

impl Stage {
    fn new() -> Stage {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        let (run, precious) = (at("run"), at("precious"));
        fs::create_dir_all(run.join(RECORD_DIR)).expect("made");
        for directory in ["precious/deep", "precious.done/deep"] {
            fs::create_dir_all(at(directory)).expect("made");
            for name in ["thesis.tex", "deep/data", "journal", "a1"] {
                fs::write(at(directory).parent().expect("a parent").join(name), "kept").expect("written");
            }
        }
        Stage { run, precious, place }
    }

    /// All files beside the run, with what they hold.
    fn outside(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut pending = vec![self.place.path().to_owned()];
        while let Some(directory) = pending.pop() {
            for path in fs::read_dir(&directory).expect("listed").map(|entry| entry.expect("an entry").path()) {
                if path == self.run {
                    continue;
                }
                let kind = fs::symlink_metadata(&path).expect("there").file_type();
                if kind.is_dir() {
                    pending.push(path);
                } else if kind.is_symlink() {
                    found.insert(path.clone(), b"a link".to_vec());
                } else {
                    found.insert(path.clone(), fs::read(&path).expect("read"));
                }
            }
        }
        found
    }

    fn plant(&self, stem: &str, path: &Path) {
        let host = Host::here();
        let pointer = Pointer {
            run_id: "test".into(),
            path: held(path.as_os_str().as_encoded_bytes()),
            host: host.name,
            boot: host.boot,
            pid: NOBODY,
            pidns: host.pid_namespace,
            ..Pointer::default()
        };
        let text = serde_json::to_vec(&pointer).expect("JSON");
        fs::write(self.run.join(RECORD_DIR).join(format!("{stem}.live")), text).expect("planted");
    }
}

/// Prepares a place and says where it is; the text is the name of the user's own directory.
type Prepare = fn(&Stage, &str) -> PathBuf;

/// A directory of this mode.
fn made(path: &Path, mode: u32) -> PathBuf {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).expect("made");
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("set");
    path.to_owned()
}

#[test]
fn what_a_pointer_names_is_not_removed() {
    let own = format!("weft-{}", system::user());
    // Where the pointer points, after something was prepared there.
    let cases: [(&str, Prepare); 9] = [
        ("any directory", |stage, _| stage.precious.clone()),
        ("one that is gone, with a namesake that is done", |stage, _| {
            fs::rename(&stage.precious, stage.precious.with_extension("other")).expect("renamed");
            stage.precious.clone()
        }),
        ("the root", |_, _| PathBuf::from("/")),
        ("nothing", |_, _| PathBuf::new()),
        ("the directory of the user's own, under a wrong name", |stage, own| {
            made(&made(&stage.precious, 0o700).join(own), 0o700);
            made(&stage.precious.join(own).join("thesis"), 0o700)
        }),
        ("one where others may write", |stage, own| {
            made(&stage.precious.join(own), 0o700);
            let live = made(&stage.precious.join(own).join("test-x-1-2"), 0o700);
            made(&stage.precious, 0o777);
            live
        }),
        ("one that is open to others", |stage, own| {
            made(&made(&stage.precious, 0o700).join(own), 0o700);
            made(&stage.precious.join(own).join("test-x-1-2"), 0o755)
        }),
        ("a symlink", |stage, own| {
            made(&made(&stage.precious, 0o700).join(own), 0o700);
            symlink(stage.precious.join("deep"), stage.precious.join(own).join("test-x-1-2")).expect("linked");
            stage.precious.join(own).join("test-x-1-2")
        }),
        ("a symlink in the run", |stage, _| {
            symlink(&stage.precious, stage.run.join(".live")).expect("linked");
            made(&stage.precious.join("x-1-2"), 0o700)
        }),
    ];
    for (name, prepare) in cases {
        let stage = Stage::new();
        let path = prepare(&stage, &own);
        stage.plant("x-1-2", &path);
        let before = stage.outside();
        let report = recover(&stage.run, &ALONE).expect(name);
        assert_eq!(stage.outside(), before, "{name}");
        assert!(
            matches!(report.open[..], [ref open] if matches!(open.why, WhyOpen::NotOfRun { .. })),
            "{name}: {report:?}"
        );
        made(&stage.precious, 0o700);
    }
}

/// Leaves a run as a killed supervisor does: 100 events in an arena, nobody to drain them.
fn killed(run: &Path) -> PathBuf {
    let mut drain = drain(run, DrainOptions::default());
    drain.poll();
    let live = drain.directory().to_owned();
    let mut program = Program::start(&live, NOBODY);
    let path = program.intern(0, b"/data/x");
    reads(&mut program, 1, path, 0, 100);
    drop(program);
    drop(drain);
    live
}

#[test]
fn strangers_in_a_live_directory_stay() {
    let stage = Stage::new();
    let live = killed(&stage.run);
    fs::write(live.join("thesis.tex"), "kept").expect("written");
    symlink(&stage.precious, live.join("a77")).expect("linked");
    symlink(stage.precious.join("thesis.tex"), live.join("a78")).expect("linked");
    let before = stage.outside();
    let report = recover(&stage.run, &ALONE).expect("recovered");
    assert_eq!((report.events, stage.outside() == before), (100, true), "{report:?}");
    let left = live.with_file_name(format!("{}.done", live.file_name().expect("a name").to_string_lossy()));
    assert!(left.join("thesis.tex").exists(), "{report:?}");
    assert!(report.messages.iter().any(|message| message.contains("did not make")), "{report:?}");
    assert_exactly_once(&stage.run, 100, "recovered");
}

#[test]
fn links_in_the_run_are_not_written_through() {
    let stage = Stage::new();
    let live = killed(&stage.run);
    // What recovery would write next: the files of images that end now.
    let host = Host::here();
    let target = stage.precious.join("thesis.tex");
    symlink(&target, stage.run.join(short_name(&host.name, host.pid, host.start, 0))).expect("linked");
    for name in ["journal", "clock", "settings", "lock"] {
        let _ = fs::remove_file(live.join(name));
        symlink(&target, live.join(name)).expect("linked");
    }
    let before = stage.outside();
    // It may refuse; it must not write elsewhere.
    let _ = recover(&stage.run, &ALONE);
    assert_eq!(stage.outside(), before);
}

#[test]
fn a_live_directory_of_another_run_is_left_alone() {
    let stage = Stage::new();
    let live = killed(&stage.run);
    RunManifest { id: "another".into(), ..RunManifest::default() }.create(&stage.run).expect("a manifest");
    let report = recover(&stage.run, &ALONE).expect("told");
    assert!(matches!(report.open[..], [ref open] if open.why == WhyOpen::NotOfRun { why: "belongs to another run" }));
    assert!(live.join("ctl").exists());
}

#[test]
fn counts_are_not_believed() {
    for count in [1 << 40, u64::MAX] {
        let stage = Stage::new();
        let live = killed(&stage.run);
        let control = ControlPage::open(&live.join("ctl")).expect("a page").expect("of this layout");
        control.get().own_arenas.store(count, Ordering::Release);
        drop(control);
        let began = Instant::now();
        assert_eq!(recover(&stage.run, &ALONE).expect("recovered").events, 100, "{count}");
        assert!(began.elapsed() < Duration::from_secs(5), "{count}: {:?}", began.elapsed());
    }
    // While a supervisor is at work.
    let stage = Stage::new();
    let mut drain = drain(&stage.run, DrainOptions::default());
    drain.poll();
    let live = drain.directory().to_owned();
    let control = ControlPage::open(&live.join("ctl")).expect("a page").expect("of this layout");
    for count in [1 << 40, 3, u64::MAX] {
        control.get().own_arenas.store(count, Ordering::Release);
        drain.poll();
    }
    let mut program = Program::start(&live, NOBODY);
    let path = program.intern(0, b"/data/x");
    reads(&mut program, 1, path, 0, 100);
    drop(program);
    super::settle(&mut drain);
    drain.finish().expect("finished");
    assert_exactly_once(&stage.run, 100, "drained");
}

/// A pointer is written when the control page is there, so that a directory without one is nobody's.
#[test]
fn a_directory_without_a_control_page_is_left_alone() {
    let stage = Stage::new();
    let live = killed(&stage.run);
    fs::remove_file(live.join("ctl")).expect("removed");
    let before = fs::read_dir(&live).expect("listed").count();
    let report = recover(&stage.run, &ALONE).expect("told");
    assert!(
        matches!(report.open[..], [ref open] if open.why == WhyOpen::NotOfRun { why: "has no control page" }),
        "{report:?}"
    );
    assert_eq!(fs::read_dir(&live).map(Iterator::count).ok(), Some(before), "its files are there");
}

#[test]
fn a_pointer_that_cannot_be_read_hides_no_other() {
    let stage = Stage::new();
    killed(&stage.run);
    for (name, text) in [("a-1-2", "{"), ("z-1-2", "[1, 2]")] {
        fs::write(stage.run.join(RECORD_DIR).join(format!("{name}.live")), text).expect("written");
    }
    let report = recover(&stage.run, &ALONE).expect("recovered");
    assert_eq!(report.events, 100, "{report:?}");
    let unread = WhyOpen::NotOfRun { why: "cannot be read" };
    assert_eq!(report.open.iter().filter(|open| open.why == unread).count(), 2, "{report:?}");
    assert_exactly_once(&stage.run, 100, "recovered");
}

/// Reasons and counts of all losses that the run tells of.
fn losses(run: &Path) -> BTreeMap<String, u64> {
    let (records, _) = weftline_format::manifest::SupervisorRecord::read_all(run);
    let processes = records.into_iter().flat_map(|record| record.processes);
    let mut all = BTreeMap::new();
    for (reason, count) in processes.flat_map(|process| process.drops) {
        *all.entry(reason).or_default() += count;
    }
    all
}

#[test]
fn an_arena_that_was_cut_is_missed() {
    for length in [0, 4096, 1 << 20] {
        let stage = Stage::new();
        let live = killed(&stage.run);
        let arena = fs::File::options().write(true).open(live.join("a0")).expect("opened");
        arena.set_len(length).expect("cut");
        recover(&stage.run, &ALONE).expect("recovered");
        assert_eq!(losses(&stage.run), BTreeMap::from([("shared-memory-damaged".to_owned(), 1)]), "{length}");
    }
}

/// The head of a segment is the only thing that tells whose its records are.
#[test]
fn records_without_an_owner_are_missed() {
    use weftline_recorder::layout::{BASE_SEGMENTS_AT, SegmentHeader};
    for (at, what) in [
        (std::mem::offset_of!(SegmentHeader, generation), "generation"),
        (std::mem::offset_of!(SegmentHeader, slot), "slot"),
    ] {
        let stage = Stage::new();
        let live = killed(&stage.run);
        let arena = fs::File::options().read(true).write(true).open(live.join("a0")).expect("opened");
        std::os::unix::fs::FileExt::write_all_at(&arena, &77u32.to_ne_bytes(), (BASE_SEGMENTS_AT + at) as u64)
            .expect("written");
        recover(&stage.run, &ALONE).expect("recovered");
        assert_eq!(losses(&stage.run), BTreeMap::from([("damaged-record".to_owned(), 100)]), "{what}");
    }
}

/// A program can fill its journal, too: what is said of files elsewhere is not looked at.
#[test]
fn files_elsewhere_are_not_looked_at() {
    let stage = Stage::new();
    let live = killed(&stage.run);
    let pipe = stage.place.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo runs").success());
    let line = format!("{}\n", serde_json::json!({"tag": "x", "process": {"pid": 1, "file": pipe, "events": 5}}));
    fs::write(live.join("journal"), line).expect("written");
    let report = recover(&stage.run, &ALONE).expect("recovered");
    assert!(report.files.iter().all(|file| file.path.starts_with(&stage.run)), "{report:?}");
}

/// Others can pass through the directory of a shared run if they are told its name, use what programs use, and nothing else.
#[test]
fn a_live_directory_for_other_users() {
    let stage = Stage::new();
    let run = stage.run.canonicalize().expect("there");
    let given = LiveOptions { run_id: "told".into(), other_users: true, ..LiveOptions::default() };
    let live = Live::create(&run, &given).expect("made");
    let (directory, own_path) = (live.directory().to_owned(), live.pointer.clone());
    let mode = |path: &Path| fs::symlink_metadata(path).expect("there").permissions().mode() & 0o777;
    let parent = directory.parent().expect("a parent");
    assert!(!directory.starts_with(&run), "names in a run can be guessed");
    for (path, expected) in [
        (parent, 0o711),
        (&directory, 0o711),
        (&directory.join("ctl"), 0o666),
        (&directory.join("rules"), 0o644),
        (&directory.join("lock"), 0o600),
        (&own_path, 0o600),
    ] {
        assert_eq!(mode(path), expected, "{}", path.display());
    }
    let (_, pointer) = Pointer::read_all(&run).expect("read").known.pop().expect("one");
    assert_eq!(pointer.find(&run, &own_path), Ok(directory.clone()));
    for open in [0o733, 0o755] {
        fs::set_permissions(&directory, fs::Permissions::from_mode(open)).expect("set");
        assert_eq!(pointer.find(&run, &own_path), Err("does not belong to you alone"), "{open:o}");
    }
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o711)).expect("set");
    live.leave();
    recover(&run, &ALONE).expect("recovered");
    assert!(!directory.exists(), "recovery takes it away");
}
