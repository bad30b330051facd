//! Filters, the size limit, and a disk that refuses.

use weftline_format::manifest::TracedBytes;

use super::*;
use crate::arena::writer::NOBODY;
use crate::recover::recover;

#[test]
fn filtered_events_are_counted_not_lost() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let options =
        DrainOptions { include: vec!["/data/**".into()], exclude: vec!["**/*.tmp".into()], ..Default::default() };
    let drain = drain(run, options);
    let mut program = Program::start(drain.directory(), NOBODY);
    for (index, name) in ["/data/a", "/etc/b", "/data/c.tmp", "", "/data/d"].iter().enumerate() {
        let path = if name.is_empty() { 0 } else { program.intern(0, name.as_bytes()) };
        reads(&mut program, 5, path, index as i64, 1);
    }
    drop(program);
    let outcome = drain.finish().expect("finished");
    assert_eq!(offsets(&read_run(run)).into_keys().collect::<Vec<_>>(), [0, 3, 4]);
    assert_eq!(outcome.filtered, 2);
    assert!(outcome.record.processes[0].drops.is_empty());
}

/// Writes three images one after the other and drains them with a size limit.
fn limited(run: &Path, limit: u64) -> (u64, Vec<i64>) {
    let mut drain = drain(run, DrainOptions { max_size: Some(limit), ..DrainOptions::default() });
    for image in 0..3 {
        let mut program = Program::start(drain.directory(), NOBODY + image);
        let path = program.intern(0, b"/data/f.bin");
        reads(&mut program, 5, path, i64::from(image) * 20_000, 20_000);
        drop(program);
        settle(&mut drain);
    }
    let outcome = drain.finish().expect("finished");
    let kept: Vec<i64> = offsets(&read_trimmed(run)).into_keys().collect();
    assert_eq!(outcome.record.dropped_events + kept.len() as u64, 60_000);
    assert_eq!(outcome.record.dropped_members > 0, kept.len() < 60_000);
    (std::fs::read_dir(run).expect("listed").flatten().filter_map(|e| e.metadata().ok()).map(|m| m.len()).sum(), kept)
}

#[test]
fn the_newest_members_are_kept() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (size, kept) = limited(directory.path(), 1 << 30);
    assert_eq!(kept.len(), 60_000);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (smaller, kept) = limited(directory.path(), size / 2);
    assert!(smaller < size * 6 / 10, "{smaller} of {size}");
    assert!(kept.len() > 10_000 && kept[0] > 20_000, "{} kept from {}", kept.len(), kept[0]);
    assert_eq!(kept.last(), Some(&59_999));
    // Files whose members were dropped say so, and stay valid.
    let dropped: u64 = reader::trace_files(directory.path())
        .expect("listed")
        .iter()
        .map(|file| crate::written::dropped(file).events)
        .sum();
    assert_eq!(dropped + kept.len() as u64, 60_000);
}

#[test]
fn recovery_does_not_bring_dropped_members_back() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let mut drain = drain(run, DrainOptions { max_size: Some(200_000), ..DrainOptions::default() });
    let mut program = Program::start(drain.directory(), NOBODY);
    let path = program.intern(0, b"/data/f.bin");
    reads(&mut program, 5, path, 0, 40_000);
    drop(program);
    settle(&mut drain);
    let kept = offsets(&read_trimmed(run)).len();
    assert!(kept < 40_000);
    drop(drain);
    recover(run, &ALONE).expect("recovered");
    let after = offsets(&read_trimmed(run));
    assert!(after.values().all(|count| *count == 1));
    let record = record_of(run);
    assert_eq!(record.dropped_events + after.len() as u64, 40_000);
}

#[test]
fn a_disk_that_refuses_costs_events_not_the_program() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let run = directory.path();
    let mut drain = drain(run, DrainOptions::default());
    let mut program = Program::start(drain.directory(), NOBODY);
    let path = program.intern(0, b"/data/f.bin");
    reads(&mut program, 5, path, 0, 100);
    drop(program);
    // A directory in the place of the file refuses every write, for root too.
    let name = crate::drain::short_name(
        &crate::procfs::Host::here().name,
        std::process::id(),
        crate::procfs::Host::here().start,
        0,
    );
    std::fs::create_dir(run.join(&name)).expect("made");
    settle(&mut drain);
    let messages = drain.take_messages();
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert!(messages[0].contains(&name), "{messages:?}");
    std::fs::remove_dir(run.join(&name)).expect("removed");
    // What comes when there is room again is kept.
    let mut program = Program::start(drain.directory(), NOBODY + 1);
    let path = program.intern(0, b"/data/g.bin");
    reads(&mut program, 5, path, 0, 7);
    drop(program);
    let outcome = drain.finish().expect("finished");
    let [lost, kept] = &outcome.record.processes[..] else { panic!("{:?}", outcome.record.processes) };
    assert_eq!((lost.drops.get("disk-full"), lost.events), (Some(&100), 0));
    assert_eq!(lost.traced, TracedBytes::default(), "what is not in the trace was not traced");
    assert!(kept.drops.is_empty() && kept.traced != TracedBytes::default(), "{kept:?}");
    let calls: Vec<u64> = outcome.record.calls.iter().map(|call| call.count).collect();
    let files: Vec<(&str, u64)> = outcome.record.files.iter().map(|file| (file.path.as_str(), file.reads)).collect();
    assert_eq!((calls.as_slice(), files.as_slice()), (&[7][..], &[("/data/g.bin", 7)][..]));
}
