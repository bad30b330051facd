//! Programs that record themselves, and finish their files themselves.

use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use weftline_format::identity::{AGAIN, Identity};
use weftline_format::manifest::State;
use weftline_recorder::layout::{KernelIo, MAX_PIECES};
use weftline_recorder::sys;

use super::*;
use crate::arena::writer::NOBODY;
use crate::live;
use crate::recover::{RecoverReport, WhyOpen, recover};
use crate::{DrainError, Unsupervised, open_unsupervised};

/// As a program that is ending.
const ENDING: RecoverOptions = RecoverOptions { believe_ended: true, ..ALONE };

fn open(run: &Path) -> PathBuf {
    let options = Unsupervised { separate_files: true, note: "a note".to_owned(), ..Unsupervised::default() };
    open_unsupervised(run, &options).expect("a live directory")
}

fn recovered(run: &Path, options: &RecoverOptions) -> RecoverReport {
    recover(run, options).expect("recovered")
}

fn pids(report: &RecoverReport) -> Vec<u32> {
    report.files.iter().map(|file| file.pid).collect()
}

fn whys(report: &RecoverReport) -> Vec<&WhyOpen> {
    report.open.iter().map(|open| &open.why).collect()
}

fn running(pids: &[u32]) -> WhyOpen {
    WhyOpen::Running { pids: pids.to_vec() }
}

/// A thread of this process, which the kernel shows like a process, until the sender is dropped.
fn somebody() -> (u32, mpsc::Sender<()>) {
    let ((send, received), (end, ended)) = (mpsc::channel(), mpsc::channel::<()>());
    std::thread::spawn(move || {
        send.send(sys::gettid()).expect("the test waits");
        // An error says that the test is over.
        let _ = ended.recv();
    });
    (received.recv().expect("a thread id"), end)
}

#[test]
fn every_image_has_its_own_file_and_the_report_names_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path().join("new");
    let live = open(&run);
    for image in 0..3 {
        let mut program = Program::start_alone(&live, NOBODY + image);
        reads(&mut program, 1, 0, i64::from(image), 1);
    }
    let report = recovered(&run, &ALONE);
    assert_eq!((report.images, report.events, report.completed), (3, 3, vec![live.clone()]));
    assert_exactly_once(&run, 3, "three images");
    let lasts: Vec<bool> = report.files.iter().map(|file| file.last).collect();
    assert_eq!(lasts, [false, false, true]);
    for (file, image) in report.files.iter().zip(0..) {
        assert_eq!((file.pid, file.events, file.rank), (NOBODY + image, 1, None));
        assert_eq!((file.exe.as_str(), &file.command[..]), ("/bin/test", &["test".to_owned(), "-x".to_owned()][..]));
        assert_eq!(file.note, "a note");
        assert!(file.started_ns > 0);
        let name = file.path.file_name().and_then(|name| name.to_str()).expect("a name");
        assert!(name.contains(&format!("-{}-", file.pid)) && name.ends_with(".pfw.gz"), "{name}");
        let trace = reader::read_file(&file.path).expect("read");
        assert_eq!(offsets(&trace).into_keys().collect::<Vec<_>>(), [i64::from(image)]);
        // The name stands once, in the file's head; what follows says whose it is all the same.
        let identities: Vec<(&str, u32)> = trace
            .events
            .iter()
            .filter_map(|event| Some((event.name.as_str(), Identity::from_event(event)?.pid)))
            .collect();
        assert_eq!(identities, [("process_name", file.pid), (AGAIN, file.pid)]);
    }
    let record = record_of(&run);
    assert_eq!((record.note.as_str(), record.state), ("a note", State::Complete));
    assert!(!live.exists() && !recovered(&run, &ALONE).did_something());
}

#[test]
fn wrong_patterns_are_told_at_the_start() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let options = Unsupervised { include: vec!["/a[".to_owned()], ..Unsupervised::default() };
    let error = open_unsupervised(directory.path(), &options).expect_err("not a pattern");
    assert!(matches!(error, DrainError::Pattern { .. }), "{error}");
}

#[test]
fn filters_are_kept() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let options = Unsupervised { include: vec!["/data/**".to_owned()], ..Unsupervised::default() };
    let live = open_unsupervised(run, &options).expect("a live directory");
    let mut program = Program::start_alone(&live, NOBODY);
    for (offset, path) in ["/data/a", "/etc/b"].iter().enumerate() {
        let path = program.intern(0, path.as_bytes());
        reads(&mut program, 1, path, offset as i64, 1);
    }
    drop(program);
    recovered(run, &ALONE);
    assert_exactly_once(run, 1, "only what was asked for");
}

#[test]
fn who_says_that_it_ended_is_believed_only_of_itself() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let live = open(run);
    let own = std::process::id();
    let (other, _end) = somebody();
    let mut mine = Program::start_alone(&live, own);
    let mut theirs = mine.fork(other);
    reads(&mut mine, 1, 0, 0, 5_000);
    reads(&mut theirs, 2, 0, 5_000, 5_000);
    theirs.end(0, KernelIo::UNKNOWN);
    assert_eq!(whys(&recovered(run, &ENDING)), [&running(&[own, other])]);

    mine.end(0, KernelIo::UNKNOWN);
    assert_eq!(whys(&recovered(run, &ALONE)), [&running(&[own, other])]);
    let report = recovered(run, &ENDING);
    assert_eq!((pids(&report), whys(&report)), (vec![own], vec![&running(&[other])]));
    assert!(!report.files[0].last);
    assert_exactly_once(run, 5_000, "only the own image");
    assert_eq!(record_of(run).state, State::Open);

    theirs.vanish();
    drop((mine, theirs));
    let report = recovered(run, &ENDING);
    assert!(report.files[0].last);
    assert_exactly_once(run, 10_000, "both images");
    assert!(!live.exists());
}

#[test]
fn records_in_the_making_are_waited_for() {
    for (tid, lost) in [(NOBODY, 0), (sys::gettid(), 1)] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let run = directory.path();
        let live = open(run);
        let mut program = Program::start_alone(&live, std::process::id());
        reads(&mut program, tid, 0, 0, 5);
        // Three slots of one annotation: one wait, one loss, if the thread is there.
        (0..3).for_each(|_| program.begin_record(tid));
        reads(&mut program, tid, 0, 5, 5);
        program.end(0, KernelIo::UNKNOWN);
        recovered(run, &ENDING);
        assert_exactly_once(run, 10, "what is complete");
        let drops = record_of(run).processes[0].drops.get("in-signal-handler").copied();
        assert_eq!(drops.unwrap_or(0), lost, "{tid}");
    }
}

#[test]
fn one_after_the_other_gets_its_turn() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let live = open(run);
    let mut program = Program::start_alone(&live, NOBODY);
    reads(&mut program, 1, 0, 0, 10);
    let lock = live::lock_directory(&live).expect("locked");
    assert_eq!(whys(&recovered(run, &ALONE)), [&WhyOpen::Locked]);
    let patient = RecoverOptions { wait_for_lock: Some(Duration::from_millis(30)), ..ALONE };
    assert_eq!(whys(&recovered(run, &patient)), [&WhyOpen::Locked]);

    let patient = RecoverOptions { wait_for_lock: Some(Duration::from_secs(60)), ..ALONE };
    let reports: Vec<RecoverReport> = std::thread::scope(|scope| {
        let waiting: Vec<_> = (0..4).map(|_| scope.spawn(|| recovered(run, &patient))).collect();
        sys::nap(20_000_000);
        drop(lock);
        waiting.into_iter().map(|thread| thread.join().expect("recovered")).collect()
    });
    assert!(reports.iter().all(|report| report.open.is_empty() && report.gone.is_empty()), "{reports:?}");
    assert_eq!(reports.iter().map(|report| report.files.len()).sum::<usize>(), 1);
    assert_exactly_once(run, 10, "four at once");
    assert_eq!(record_of(run).state, State::Complete);
}

#[test]
fn children_on_their_way_keep_the_directory() {
    let (child, end) = somebody();
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let live = open(run);
    let mut parent = Program::start_alone(&live, NOBODY);
    reads(&mut parent, 1, 0, 0, 10);
    parent.reserve_slot(child);
    let report = recovered(run, &ENDING);
    assert_eq!((pids(&report), whys(&report)), (vec![NOBODY], vec![&running(&[child])]));
    assert!(live.exists() && !report.files[0].last);
    drop(end);
    while Path::new(&format!("/proc/self/task/{child}")).exists() {
        sys::nap(1_000_000);
    }
    let report = recovered(run, &ENDING);
    assert_eq!((report.open.len(), report.completed.len()), (0, 1));
    assert!(!live.exists());
}

#[test]
fn a_directory_without_an_arena_waits_for_its_maker() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let live = open(run);
    assert_eq!(whys(&recovered(run, &ALONE)), [&running(&[std::process::id()])]);
    // The maker says that nothing will come.
    assert_eq!(recovered(run, &ENDING).completed, [live]);

    // An arena without a process is one in the making, for a while.
    let live = open(run);
    let program = Program::start_alone(&live, NOBODY);
    program.arena.header().generations.store(0, std::sync::atomic::Ordering::Release);
    assert_eq!(whys(&recovered(run, &ENDING)), [&running(&[std::process::id()])]);
    let long_ago = std::time::SystemTime::now() - Duration::from_secs(60);
    let arena = std::fs::File::options().write(true).open(live.join("a256")).expect("the arena");
    arena.set_modified(long_ago).expect("its time set");
    assert_eq!(recovered(run, &ENDING).completed, [live]);
}

#[test]
fn a_process_may_record_itself_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let lives = [open(run), open(run)];
    assert_ne!(lives[0], lives[1]);
    for (live, first) in lives.iter().zip([0, 10]) {
        let mut program = Program::start_alone(live, NOBODY);
        reads(&mut program, 1, 0, first, 10);
    }
    let second = RecoverOptions { only: Some(lives[1].clone()), ..ALONE };
    let report = recovered(run, &second);
    assert_eq!((report.events, report.completed, report.files[0].last), (10, vec![lives[1].clone()], false));
    assert!(lives[0].exists());
    let report = recovered(run, &ALONE);
    assert_eq!((report.events, report.files[0].last), (10, true));
    assert_exactly_once(run, 20, "twice");
    // And a third time, when all else is done.
    let third = open(run);
    assert!(!lives.contains(&third));
    let mut program = Program::start_alone(&third, NOBODY);
    reads(&mut program, 1, 0, 20, 10);
    drop(program);
    recovered(run, &ALONE);
    assert_exactly_once(run, 30, "three times");
    let (records, errors) = SupervisorRecord::read_all(run);
    assert_eq!((records.len(), errors.len()), (3, 0));
    let reads: u64 = records.iter().flat_map(|record| &record.calls).map(|call| call.count).sum();
    assert_eq!(reads, 30);
}

#[test]
fn whoever_finds_a_finished_image_tells_of_it() {
    use crate::stop::{self, Stop};
    for place in [Stop::Written, Stop::Released, Stop::Journaled] {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let run = directory.path();
        let live = open(run);
        let mut program = Program::start_alone(&live, NOBODY);
        reads(&mut program, 1, 0, 0, 10);
        drop(program);
        stop::set(Some((place, 1)));
        recover(run, &ALONE).expect_err("stopped");
        stop::set(None);
        let report = recovered(run, &ALONE);
        let events: Vec<u64> = report.files.iter().map(|file| file.events).collect();
        assert_eq!((events, report.files[0].last), (vec![10], true), "{place:?}");
        assert_exactly_once(run, 10, "killed while finishing");
    }
}

#[test]
fn arenas_grow_far() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let live = open(run);
    let mut program = Program::start_alone(&live, NOBODY);
    reads(&mut program, 1, 0, 0, 3_000);
    for (index, first) in [(1, 3_000), (255, 6_000), (256, 9_000), (MAX_PIECES - 1, 12_000)] {
        program.grow_to(&live, index);
        reads(&mut program, 1, 0, first, 3_000);
    }
    drop(program);
    let report = recovered(run, &ALONE);
    assert_eq!((report.events, report.files.len()), (15_000, 1));
    assert_exactly_once(run, 15_000, "pieces from the first to the last");
    assert!(!live.exists());
}
