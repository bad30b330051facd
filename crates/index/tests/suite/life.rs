//! The life of an index: built once, completed when traces grow, built anew when they change, never in the way.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use weftline_format::member::{Deflater, seal};
use weftline_index::column::Column;
use weftline_index::progress::Progress;
use weftline_index::{IndexError, OpenOptions, Request, Run};

fn scratch() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn lines(from: u64, count: u64) -> String {
    (from..from + count)
        .map(|n| {
            format!(
                "{{\"name\":\"n{}\",\"cat\":\"POSIX\",\"ph\":\"X\",\"pid\":1,\"tid\":1,\"ts\":{n},\"dur\":1}}\n",
                n % 5
            )
        })
        .collect()
}

fn open(path: &Path) -> Run {
    Run::open(&[path.to_owned()], &OpenOptions::default()).expect("opened")
}

/// The starts of all events, in order.
fn starts(run: &Run) -> Vec<i64> {
    let (states, _) = run
        .scan(&Request::of([Column::Ts]), Vec::new, |all: &mut Vec<i64>, batch| {
            all.extend(batch.ints(Column::Ts).iter().flatten());
        })
        .expect("scanned");
    let mut starts: Vec<i64> = states.into_iter().flatten().map(|ns| ns / 1000).collect();
    starts.sort_unstable();
    starts
}

fn numbers(range: std::ops::Range<i64>) -> Vec<i64> {
    range.collect()
}

fn read_and_kept(run: &Run) -> (usize, usize) {
    (run.index()[0].read, run.index()[0].kept)
}

#[test]
fn new_files_are_added_and_old_ones_not_read_again() {
    let directory = scratch();
    fs::write(directory.path().join("a.pfw"), lines(0, 10)).expect("written");
    assert_eq!(read_and_kept(&open(directory.path())), (1, 0));
    assert_eq!(read_and_kept(&open(directory.path())), (0, 1));
    fs::write(directory.path().join("b.pfw"), lines(10, 10)).expect("written");
    let run = open(directory.path());
    assert_eq!((read_and_kept(&run), starts(&run)), ((1, 1), numbers(0..20)));
}

#[test]
fn a_file_of_ours_that_grows_is_read_from_where_it_ended() {
    let directory = scratch();
    let path = directory.path().join("vm-1-a.pfw.gz");
    let identity = |seq| {
        format!(
            "{{\"name\":\"process_name\",\"cat\":\"weft\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"args\":{{\"name\":\"p\",\"host\":\"vm\",\"nonce\":\"a\",\"seq\":{seq}}}}}\n"
        )
    };
    let append = |seq, from| {
        let mut member = Vec::new();
        let text = format!("{}{}", identity(seq), lines(from, 10));
        seal(text.as_bytes(), 10, seq, &mut member, &mut Deflater::new());
        File::options().create(true).append(true).open(&path).expect("opened").write_all(&member).expect("written");
    };
    append(0, 0);
    assert_eq!(starts(&open(directory.path())), numbers(0..10));
    append(1, 10);
    let run = open(directory.path());
    assert_eq!((read_and_kept(&run), starts(&run)), ((1, 0), numbers(0..20)));
    assert_eq!(run.dictionary().processes.len(), 1, "the process is the same in both parts");
    assert!(run.sources().iter().all(|source| source.flaws == 0), "{:?}", run.sources());
    assert_eq!(read_and_kept(&open(directory.path())), (0, 1));
}

#[test]
fn a_replaced_file_is_noticed() {
    let directory = scratch();
    let path = directory.path().join("a.pfw");
    fs::write(&path, lines(0, 10)).expect("written");
    let before = fs::metadata(&path).expect("there").modified().expect("a time");
    open(directory.path());
    // The same size, the same inode, the same time: only the content tells.
    fs::write(&path, lines(10, 10).replace("\"ts\":1", "\"ts\":2")).expect("written");
    assert_eq!(fs::metadata(&path).expect("there").len(), lines(10, 10).len() as u64);
    File::options().write(true).open(&path).expect("opened").set_modified(before).expect("set");
    assert_eq!(starts(&open(directory.path())), numbers(20..30));
    fs::write(&path, lines(0, 3)).expect("written");
    assert_eq!(starts(&open(directory.path())), numbers(0..3));
    fs::remove_file(&path).expect("removed");
    fs::write(directory.path().join("b.pfw"), lines(3, 3)).expect("written");
    assert_eq!(starts(&open(directory.path())), numbers(3..6));
}

#[test]
fn a_directory_that_cannot_be_written_has_its_index_elsewhere() {
    let directory = scratch();
    fs::write(directory.path().join("a.pfw"), lines(0, 10)).expect("written");
    // Root writes everywhere: a file in the way of the directory stands for a file system that refuses.
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).expect("set");
    let run = open(directory.path());
    assert_eq!(starts(&run), numbers(0..10));
    let as_root = run.index()[0].directory.starts_with(directory.path());
    let beside = directory.path().join(".weft").exists();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).expect("set");
    assert_eq!(as_root, beside, "the index lies where it says");
}

#[test]
fn a_damaged_or_foreign_catalog_is_built_anew() {
    let directory = scratch();
    fs::write(directory.path().join("a.pfw"), lines(0, 10)).expect("written");
    let index = open(directory.path()).index()[0].directory.clone();
    for text in ["", "{", "{\"format\":99,\"tool\":\"x\",\"parts\":[]}"] {
        fs::write(index.join("index.json"), text).expect("written");
        assert_eq!(starts(&open(directory.path())), numbers(0..10), "{text}");
    }
    let files: Vec<PathBuf> =
        fs::read_dir(&index).expect("there").map(|entry| entry.expect("an entry").path()).collect();
    assert_eq!(files.len(), 4, "one part of two files, the catalog and the lock: {files:?}");
    let rows = files.iter().find(|path| path.to_string_lossy().ends_with(".rows")).expect("rows");
    fs::write(rows, "nothing").expect("written");
    assert_eq!(starts(&open(directory.path())), numbers(0..10), "a part that cannot be read");
    fs::remove_dir_all(&index).expect("removed");
    assert_eq!(starts(&open(directory.path())), numbers(0..10), "deleting the index is safe");
}

#[test]
fn two_builders_at_once() {
    let directory = scratch();
    for file in 0..20 {
        fs::write(directory.path().join(format!("{file}.pfw")), lines(file * 100, 100)).expect("written");
    }
    let results: Vec<Vec<i64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| starts(&open(directory.path())))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    for found in results {
        assert_eq!(found, numbers(0..2000));
    }
}

#[test]
fn what_can_be_named() {
    let directory = scratch();
    let nested = directory.path().join("deep/er");
    fs::create_dir_all(&nested).expect("made");
    fs::write(nested.join("a.pfw"), lines(0, 5)).expect("written");
    fs::write(nested.join("b.pfw"), lines(5, 5)).expect("written");
    fs::write(directory.path().join("manifest.json"), r#"{"groups":{"one":"deep/er","none":"nowhere"}}"#)
        .expect("written");
    let check = |named: &[PathBuf], groups: &[&str], expected: std::ops::Range<i64>| {
        let options =
            OpenOptions { groups: groups.iter().map(|name| (*name).to_owned()).collect(), ..OpenOptions::default() };
        assert_eq!(starts(&Run::open(named, &options).expect("opened")), numbers(expected), "{named:?}");
    };
    check(&[directory.path().to_owned()], &[], 0..10);
    check(&[directory.path().to_owned()], &["one"], 0..10);
    check(&[nested.join("b.pfw")], &[], 5..10);
    check(&[nested.join("*.pfw")], &[], 0..10);
    check(&[nested.join("b.pfw"), nested.join("a.pfw")], &[], 0..10);
    check(&[nested.join("b.pfw"), nested.join("b.pfw")], &[], 5..10);

    let refused = |named: &Path, groups: &[&str], expected: &str| {
        let options =
            OpenOptions { groups: groups.iter().map(|name| (*name).to_owned()).collect(), ..OpenOptions::default() };
        let error = Run::open(&[named.to_owned()], &options).err().expect("refused").to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(&directory.path().join("absent"), &[], "No such file");
    refused(&directory.path().join("*.nothing"), &[], "no trace files");
    refused(directory.path(), &["two"], "there are none, one");
    let empty = scratch();
    refused(empty.path(), &[], "no trace files");
    assert!(matches!(Run::open(&[empty.path().join("[")], &OpenOptions::default()), Err(IndexError::BadGlob { .. })));
}

#[derive(Default)]
struct Bar {
    all: AtomicU64,
    done: AtomicU64,
}

impl Progress for Bar {
    fn begin(&self, _: &str, bytes: u64) {
        self.all.fetch_add(bytes, Ordering::Relaxed);
    }
    fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
    fn end(&self) {}
}

#[test]
fn progress_counts_every_byte() {
    let directory = scratch();
    fs::write(directory.path().join("small.pfw"), lines(0, 10)).expect("written");
    fs::write(directory.path().join("large.pfw"), lines(10, 120_000)).expect("written");
    let bar = Arc::new(Bar::default());
    let options = OpenOptions { progress: Arc::clone(&bar) as Arc<dyn Progress>, ..OpenOptions::default() };
    Run::open(&[directory.path().to_owned()], &options).expect("opened");
    let (all, done) = (bar.all.load(Ordering::Relaxed), bar.done.load(Ordering::Relaxed));
    assert!(all > 4 << 20);
    assert_eq!(done, all);
}

#[test]
fn large_files_give_what_small_ones_give() {
    let directory = scratch();
    fs::write(directory.path().join("large.pfw"), lines(0, 400_000)).expect("written");
    let run = open(directory.path());
    assert_eq!(starts(&run), numbers(0..400_000));
    assert_eq!(run.times().spans, Some((0, 400_000_000)));
    let streamed = OpenOptions { no_index: true, ..OpenOptions::default() };
    let run = Run::open(&[directory.path().to_owned()], &streamed).expect("opened");
    assert_eq!(starts(&run), numbers(0..400_000));
}

/// Where an index cannot be written, the answer is the same; once it can, there is one.
#[test]
fn an_index_that_cannot_be_written_is_done_without() {
    // Something in the way stands for a disk that is full or refuses: root may write everywhere. The catalog comes last of all.
    for in_the_way in ["lock", "index.json"] {
        let directory = scratch();
        fs::write(directory.path().join("a.pfw"), lines(0, 10)).expect("written");
        let index = open(directory.path()).index()[0].directory.clone();
        fs::remove_dir_all(&index).expect("removed");
        fs::create_dir_all(index.join(in_the_way).join("x")).expect("made");
        let run = open(directory.path());
        assert_eq!(starts(&run), numbers(0..10), "{in_the_way}");
        assert!(run.index().is_empty() && matches!(run.refused(), Some(IndexError::Io { .. })), "{:?}", run.refused());
        let left = fs::read_dir(&index).expect("there").count();
        assert!(left <= 3, "half an index stays behind: {left} files");
        fs::remove_dir_all(&index).expect("removed");
        let run = open(directory.path());
        assert_eq!((starts(&run), run.index().len()), (numbers(0..10), 1));
        assert!(run.refused().is_none());
    }
}
