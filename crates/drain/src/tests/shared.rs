//! Runs in which programs of other users record: each user has arenas of its own, which grow in their files and are not used again.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::sync::atomic::Ordering;

use weftline_recorder::layout::{PIECE_SIZE, USERS, piece_use, pool_state, wanted};

use super::*;
use crate::arena::ControlPage;
use crate::arena::writer::NOBODY;

/// The user who has nothing.
const OTHER: u32 = 65534;

/// A drain for all users, and its control page as programs have it.
fn shared_drain(run: &Path) -> (Drain, ControlPage) {
    let given = LiveOptions { run_id: "told".into(), other_users: true, max_pieces: Some(3), ..LiveOptions::default() };
    let live = Live::create(run, &given).expect("a live directory");
    let drain = Drain::new(live, run, DrainOptions { workers: Some(0), ..DrainOptions::default() }).expect("a drain");
    let control = ControlPage::open(&drain.directory().join("ctl")).expect("opened").expect("of this layout");
    (drain, control)
}

fn want(control: &ControlPage, place: usize, user: u32) {
    control.get().wanted[place].store(wanted::ASKED | u64::from(user), Ordering::Release);
}

/// Arenas by owner, each of that owner alone.
fn arenas(live: &Path) -> BTreeMap<u32, usize> {
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(live).expect("listed").flatten() {
        if entry.file_name().to_string_lossy().starts_with('a') {
            let data = entry.metadata().expect("its metadata");
            assert_eq!(data.mode() & 0o7777, 0o600, "{entry:?}");
            *found.entry(data.uid()).or_default() += 1;
        }
    }
    found
}

/// Whoever asks, and for whomever: only that user can open what is made, and there is an end to it.
#[test]
fn each_user_has_arenas_of_its_own() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut drain, control) = shared_drain(directory.path());
    let live = drain.directory().to_owned();
    assert_eq!(arenas(&live), BTreeMap::from([(0, 2)]), "nobody has asked; run as root");
    want(&control, 0, OTHER);
    drain.poll();
    assert_eq!(arenas(&live), BTreeMap::from([(0, 2), (OTHER, 8)]));
    for (number, word) in control.get().pool.iter().enumerate() {
        if word.load(Ordering::Acquire) == pool_state::READY {
            let owner = std::fs::metadata(live.join(format!("a{number}"))).expect("there").uid();
            assert_eq!(control.get().owners[number].load(Ordering::Relaxed), owner, "a{number}");
        }
    }
    // To give a file to the last number is to keep it; and no more users than there are places for, over and over.
    want(&control, 1, u32::MAX);
    drain.poll();
    assert_eq!(arenas(&live), BTreeMap::from([(0, 2), (OTHER, 8)]));
    for user in 1..100 {
        want(&control, user as usize % USERS, user);
        drain.poll();
    }
    assert!(arenas(&live).len() <= 1 + USERS && arenas(&live).values().all(|count| *count <= 8), "{:?}", arenas(&live));
    drain.finish().expect("finished");
    assert!(!live.exists());
}

/// A program that still maps the arena of one that ended sees nothing of the next one.
#[test]
fn arenas_are_not_used_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut drain, control) = shared_drain(directory.path());
    let live = drain.directory().to_owned();
    want(&control, 0, OTHER);
    drain.poll();
    // Held, as a program does that only says that it ended: no other file has their inodes.
    let mut held: Vec<Program> = Vec::new();
    for round in 0..20 {
        let mut program = Program::start_as(&live, NOBODY + round, if round % 2 == 0 { OTHER } else { 0 });
        let inode = program.arena().inode();
        assert!(held.iter().all(|earlier| earlier.arena().inode() != inode), "round {round}");
        let path = program.intern(0, b"/data/x");
        reads(&mut program, 5, path, i64::from(round) * 100, 100);
        held.push(program);
        settle(&mut drain);
    }
    drain.finish().expect("finished");
    assert_exactly_once(directory.path(), 2_000, "twenty images of two users");
}

/// A process that gave up its rights asks for growth; it gets an answer in any case, as many pieces as it may have, and as there is room for.
#[test]
fn arenas_grow_at_request() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut drain, control) = shared_drain(directory.path());
    let live = drain.directory().to_owned();
    let mut program = Program::start(&live, std::process::id());
    let path = program.intern(0, b"/data/x");
    reads(&mut program, 5, path, 0, 100);
    let refused = |used_for: u32| 1 << (used_for + 16);
    for (used_for, answer, pieces) in
        [(piece_use::SEGMENTS, 0, 2), (piece_use::NAMES, 0, 3), (piece_use::SEGMENTS, refused(piece_use::SEGMENTS), 3)]
    {
        program.ask(used_for);
        drain.poll();
        let header = program.arena().header();
        assert_eq!((header.asked.load(Ordering::Acquire), program.arena().pieces_used()), (answer, pieces));
    }
    let file = std::fs::metadata(live.join(format!("a{}", program.arena().number()))).expect("there");
    assert_eq!(file.len(), 3 * PIECE_SIZE as u64, "all of it lies in one file");
    program.go_on_in(1);
    reads(&mut program, 5, path, 100, 3_000);
    // Whatever the control page says, the supervisor knows how much room there is.
    let other = Program::start(&live, std::process::id());
    drain.poll();
    drain.use_up_room();
    control.get().room.store(i64::MAX / 2, Ordering::Relaxed);
    other.ask(piece_use::SEGMENTS);
    drain.poll();
    let asked = other.arena().header().asked.load(Ordering::Acquire);
    assert_eq!((asked, other.arena().pieces_used()), (refused(piece_use::SEGMENTS), 1));
    for program in [&program, &other] {
        program.vanish();
    }
    drop((program, other));
    settle(&mut drain);
    drain.finish().expect("finished");
    assert_exactly_once(directory.path(), 3_100, "in two pieces");
}

/// The supervisor is killed: recovery finds pieces in the arena's own file.
#[test]
fn growth_in_the_file_is_recovered() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut drain, control) = shared_drain(directory.path());
    let live = drain.directory().to_owned();
    want(&control, 0, OTHER);
    drain.poll();
    let mut program = Program::start_as(&live, NOBODY, OTHER);
    let path = program.intern(0, b"/data/x");
    reads(&mut program, 5, path, 0, 100);
    program.arena().extend(piece_use::SEGMENTS, 3).expect("room");
    program.go_on_in(1);
    reads(&mut program, 5, path, 100, 5_000);
    drop((program, control, drain));
    crate::recover(directory.path(), &ALONE).expect("recovered");
    assert_exactly_once(directory.path(), 5_100, "recovered");
    assert!(!live.exists());
}

/// A program of another user says that it is somebody else: of that process nothing is looked up that the user could not see.
#[test]
fn counters_of_others_are_not_told() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (mut drain, control) = shared_drain(directory.path());
    let live = drain.directory().to_owned();
    want(&control, 0, OTHER);
    drain.poll();
    for (user, allowed) in [(0, true), (OTHER, false)] {
        let program = Program::start_as(&live, std::process::id(), user);
        assert_eq!(program.arena().may_tell_of(std::process::id()), allowed, "{user}");
        program.vanish();
    }
    drain.finish().expect("finished");
}
