//! Arenas come before they are needed, and are used again.

use std::collections::BTreeSet;
use std::sync::{Arc, Barrier, mpsc};

use weftline_recorder::layout::{BASE_SEGMENTS, BASE_SEGMENTS_AT, FIRST_SEGMENTS, SEGMENT_SIZE};

use super::*;
use crate::arena::writer::NOBODY;

fn arenas(live: &Path) -> BTreeSet<String> {
    let names = std::fs::read_dir(live).expect("listed").flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.into_string().ok()).filter(|name| name.starts_with('a')).collect()
}

#[test]
fn arenas_are_used_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let mut drain = drain(run, DrainOptions::default());
    let live = drain.directory().to_owned();
    assert_eq!(arenas(&live).len(), 2);
    for round in 0..20 {
        let mut program = Program::start(&live, NOBODY + round);
        let path = program.intern(program.cwd(), format!("file-{round}").as_bytes());
        reads(&mut program, 5, path, i64::from(round) * 100, 100);
        drop(program);
        settle(&mut drain);
    }
    assert!(arenas(&live).len() <= 4, "{:?}", arenas(&live));
    drain.finish().expect("finished");
    assert_exactly_once(run, 2_000, "twenty images, one after the other");
    // An arena that was used before holds nothing of its earlier life.
    let trace = read_run(run);
    for event in trace.events.iter().filter(|event| event.name == "pread64") {
        let round = number(event, "offset").expect("an offset") / 100;
        assert_eq!(trace.path_of(event), Some(format!("/home/u/file-{round}").as_str()));
    }
}

#[test]
fn many_at_once_find_many_ready() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let mut drain = drain(run, DrainOptions::default());
    let live = drain.directory().to_owned();
    // Threads of this process stand for processes: the kernel shows them alike. Real ones would hold on to the locks of
    // other tests between their fork and their exec.
    let (end, waiting) = (Arc::new(Barrier::new(15)), 14);
    let threads: Vec<_> = (0..waiting)
        .map(|_| {
            let (end, (send, received)) = (Arc::clone(&end), mpsc::channel());
            let thread = std::thread::spawn(move || {
                send.send(weftline_recorder::sys::gettid()).expect("the test waits");
                end.wait();
            });
            (received.recv().expect("a thread id"), thread)
        })
        .collect();
    let mut living = threads.iter().map(|(pid, _)| *pid).enumerate();
    for wave in [2, 4, 8] {
        for (offset, pid) in living.by_ref().take(wave) {
            let mut program = Program::start(&live, pid);
            reads(&mut program, 5, 0, offset as i64, 1);
        }
        drain.poll();
        drain.poll();
    }
    end.wait();
    for (_, thread) in threads {
        thread.join().expect("ended");
    }
    drain.finish().expect("finished");
    assert_exactly_once(run, 14, "fourteen images at once");
}

#[test]
fn segments_of_lost_threads_are_taken_when_room_is_short() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let mut drain = drain(run, DrainOptions::default());
    let mut program = Program::start(drain.directory(), std::process::id());
    // Threads that the kernel does not know: each leaves one segment open, until four are free.
    for thread in 0..24 {
        reads(&mut program, NOBODY + thread, 0, i64::from(thread), 1);
    }
    drain.poll();
    drain.poll();
    assert!(program.arena.free_segments() >= 24, "{} free", program.arena.free_segments());
    program.vanish();
    drop(program);
    drain.finish().expect("finished");
    assert_exactly_once(run, 24, "threads that ended without a word");
}

/// Memory that is reserved for an arena, in segments beyond the head of the base piece.
fn reserved_segments(live: &Path, number: u64) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let blocks = std::fs::metadata(live.join(format!("a{number}"))).expect("an arena").blocks();
    (blocks * 512).saturating_sub(BASE_SEGMENTS_AT as u64) / SEGMENT_SIZE as u64
}

#[test]
fn arenas_start_small_and_become_whole_when_they_are_used() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let mut drain = drain(run, DrainOptions::default());
    let live = drain.directory().to_owned();
    let mut program = Program::start_small(&live, std::process::id());
    let number = program.arena.number();
    let count = |program: &Program| (program.arena.free_segments() as usize, reserved_segments(&live, number) as usize);
    assert_eq!(count(&program), (FIRST_SEGMENTS, FIRST_SEGMENTS));
    // A program that records little pays for little.
    reads(&mut program, 1, 0, 0, 1);
    drain.poll();
    assert_eq!(count(&program), (FIRST_SEGMENTS - 1, FIRST_SEGMENTS));
    // Threads take all but one of the others: the drain adds segments before there is none.
    for thread in 1..FIRST_SEGMENTS as i64 - 1 {
        reads(&mut program, 1 + thread as u32, 0, thread, 1);
    }
    drain.poll();
    assert_eq!(count(&program), (BASE_SEGMENTS - FIRST_SEGMENTS + 1, BASE_SEGMENTS));
    for thread in FIRST_SEGMENTS as i64 - 1..BASE_SEGMENTS as i64 {
        reads(&mut program, 1 + thread as u32, 0, thread, 1);
    }
    program.vanish();
    drop(program);
    drain.finish().expect("finished");
    assert_exactly_once(run, BASE_SEGMENTS as i64, "a thread for each segment");
}
