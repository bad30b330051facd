//! An index of which bits were flipped, ends were cut or files were swapped: every answer is still the right one, and nobody is told to do anything.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use weftline_index::column::Column;
use weftline_index::{OpenOptions, Request, Run};

/// Rows over more than one page, with every kind of column, and spans whose ends are pages away.
fn trace() -> String {
    let mut text = String::from("[\n");
    text.push_str("{\"name\":\"epoch\",\"cat\":\"app\",\"ph\":\"B\",\"ts\":1,\"pid\":1,\"tid\":1},\n");
    for n in 0..9_000_u64 {
        text.push_str(&format!(
            "{{\"name\":\"n{}\",\"cat\":\"c{}\",\"ph\":\"X\",\"pid\":{},\"tid\":1,\"id\":{n},\"ts\":{}.5,\"dur\":{},\"args\":{{\"fhash\":\"f{}\",\"ret\":{},\"note\":\"{n}\"}}}},\n",
            n % 7,
            n % 3,
            n % 2,
            n * 10,
            n % 100,
            n % 50,
            n * n
        ));
    }
    text.push_str("{\"name\":\"epoch\",\"cat\":\"app\",\"ph\":\"E\",\"ts\":100000,\"pid\":1,\"tid\":1}\n]\n");
    text
}

/// Everything that can be asked, in a form that does not depend on the numbers of ids.
#[derive(Debug, PartialEq, Eq, Default)]
struct Answer {
    /// Count, durations and results per name and path.
    sums: BTreeMap<(String, Option<String>), (u64, i64, i64)>,
    in_order: Vec<(i64, String)>,
    pulled: Vec<(i64, String)>,
    lines: Vec<String>,
}

fn answer(run: Run) -> Answer {
    let ret = Column::RET;
    let columns = [Column::Ts, Column::Dur, Column::Name, Column::File, ret];
    // Whoever asks takes the dictionary before or after: ids must mean the same.
    let before = run.dictionary();
    let (states, _) = run
        .scan(&Request::of(columns), Vec::new, |all: &mut Vec<_>, batch| {
            let (names, files) = (batch.ids(Column::Name).iter(), batch.ids(Column::File).iter());
            let (dur, ret) = (batch.ints(Column::Dur).iter(), batch.ints(ret).iter());
            all.extend(names.zip(files).zip(dur.zip(ret)));
        })
        .expect("scanned");
    let mut found = Answer::default();
    for ((name, file), (dur, ret)) in states.into_iter().flatten() {
        let path = file.and_then(|file| before.path(file).map(str::to_owned));
        let sums = found.sums.entry((before.name(name.expect("a name")).to_owned(), path)).or_default();
        *sums = (sums.0 + 1, sums.1 + dur.unwrap_or(0), sums.2 + ret.unwrap_or(0));
    }
    let named = |batch: &weftline_index::Batch, all: &mut Vec<(i64, String)>| {
        let rows = batch.ints(Column::Ts).iter().flatten().zip(batch.ids(Column::Name).iter().flatten());
        all.extend(rows.map(|(ts, name)| (ts, before.name(name).to_owned())));
    };
    let request = Request::of([Column::Ts, Column::Name]);
    run.scan_in_order(&request, |batch| named(batch, &mut found.in_order)).expect("in order");
    run.lines(|line| found.lines.push(line.to_owned())).expect("lines");
    let run = Arc::new(run);
    let pull = run.pull(request).expect("an index");
    for group in 0..pull.effort().groups_read {
        pull.read(group, &mut |batch| named(batch, &mut found.pulled)).expect("pulled");
    }
    found
}

fn open(directory: &Path) -> Run {
    Run::open(&[directory.to_owned()], &OpenOptions::default()).expect("opened")
}

/// An index as it was built, and the answers.
struct Built {
    directory: tempfile::TempDir,
    index: PathBuf,
    files: BTreeMap<PathBuf, Vec<u8>>,
    truth: Answer,
}

impl Built {
    fn new() -> Built {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::write(directory.path().join("a.pfw"), trace()).expect("written");
        let run = open(directory.path());
        let index = run.index()[0].directory.clone();
        let truth = answer(run);
        assert_eq!((truth.lines.len(), truth.in_order.len()), (9_002, 9_002));
        assert_eq!(truth.sums[&("epoch".to_owned(), None)], (2, 99_999_000, 0));
        let paths = fs::read_dir(&index).expect("there").map(|entry| entry.expect("an entry").path());
        let files: BTreeMap<_, _> = paths.map(|path| (path.clone(), fs::read(path).expect("read"))).collect();
        assert_eq!(files.len(), 4, "rows, strings, catalog, lock");
        Built { directory, index, files, truth }
    }

    /// Puts the index back as it was, but for one file.
    fn check(&self, path: &Path, bytes: &[u8], what: &str) {
        fs::remove_dir_all(&self.index).expect("removed");
        fs::create_dir(&self.index).expect("made");
        for (file, good) in &self.files {
            fs::write(file, if file == path { bytes } else { good }).expect("written");
        }
        let what = format!("{} {what}", path.display());
        assert!(answer(open(self.directory.path())) == self.truth, "{what}");
        assert!(answer(open(self.directory.path())) == self.truth, "{what}, once more");
    }
}

#[test]
fn flipped_bits_change_no_answer() {
    let built = Built::new();
    let mut random = 0x9E37_79B9_7F4A_7C15_u64;
    for (path, good) in built.files.iter().filter(|(_, bytes)| !bytes.is_empty()) {
        // Ends of files hold what all else hangs on.
        let ends = (0..8).chain(good.len() - 48..good.len()).step_by(5);
        let mut spread: Vec<usize> = ends.collect();
        spread.extend((0..24).map(|_| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % good.len()
        }));
        for at in spread {
            let mut bad = good.clone();
            bad[at] ^= 1 << (at % 8);
            built.check(path, &bad, &format!("with a flipped bit in byte {at}"));
        }
    }
}

#[test]
fn cut_and_swapped_files_change_no_answer() {
    let built = Built::new();
    let others: Vec<&Vec<u8>> = built.files.values().collect();
    for (path, good) in &built.files {
        for len in [0, 1, good.len() / 2, good.len().saturating_sub(1)] {
            built.check(path, &good[..len.min(good.len())], &format!("cut to {len} bytes"));
        }
        built.check(path, &[&good[..], b"more"].concat(), "with more behind it");
        built.check(path, &vec![0; good.len()], "of zeros");
        others.iter().for_each(|other| built.check(path, other, "with the content of another file"));
    }
}

/// A file system that can be written only until it is sealed, gone with the value.
struct Sealed(PathBuf);

impl Sealed {
    fn mount(words: &[&str], path: &Path) -> bool {
        std::process::Command::new("mount").args(words).arg(path).status().is_ok_and(|status| status.success())
    }

    fn new(path: &Path) -> Sealed {
        assert!(Sealed::mount(&["-t", "tmpfs", "weft-test"], path), "mounting a file system needs root");
        Sealed(path.to_owned())
    }
}

impl Drop for Sealed {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Nothing can be made there.
const NO_CACHE: &str = "/etc/passwd/none";

/// A damaged index that cannot be replaced, where there is no cache either: the traces are read in its place, and that is told.
#[test]
fn damage_on_a_disk_that_cannot_be_written() {
    // Caches are found by variables, which only a new process can have changed.
    if std::env::var_os("XDG_CACHE_HOME").is_none_or(|cache| cache != NO_CACHE) {
        let name = "rot::damage_on_a_disk_that_cannot_be_written";
        let mut again = std::process::Command::new(std::env::current_exe().expect("this test"));
        let status = again.args(["--exact", name, "--nocapture"]).env("XDG_CACHE_HOME", NO_CACHE).status();
        assert!(status.expect("it runs").success());
        return;
    }
    let place = tempfile::tempdir().expect("a temporary directory");
    let sealed = Sealed::new(place.path());
    for name in ["a.pfw", "b.pfw"] {
        fs::write(sealed.0.join(name), trace()).expect("written");
    }
    let truth = summed(&open(&sealed.0));
    let index = open(&sealed.0).index()[0].directory.clone();
    let files: Vec<PathBuf> = fs::read_dir(&index).expect("there").map(|entry| entry.expect("there").path()).collect();
    let rows = files.iter().find(|path| path.extension().is_some_and(|end| end == "rows")).expect("rows");
    let strings = files.iter().find(|path| path.extension().is_some_and(|end| end == "strings")).expect("strings");
    for damaged in [rows, strings] {
        let good = fs::read(damaged).expect("read");
        let mut bad = good.clone();
        let half = bad.len() / 2;
        bad[100..half].iter_mut().for_each(|byte| *byte ^= 64);
        fs::write(damaged, bad).expect("written");
        assert!(Sealed::mount(&["-o", "remount,ro"], &sealed.0), "a file system that is sealed");
        let run = open(&sealed.0);
        assert!(summed(&run) == truth, "{}", damaged.display());
        assert!(run.refused().is_some() && run.index().is_empty(), "{}: nobody is told", damaged.display());
        let run = Arc::new(open(&sealed.0));
        assert!(run.pull(Request::of([Column::Ts, Column::Name])).is_none(), "{}", damaged.display());
        assert!(summed(&run) == truth, "{}, after an engine asked", damaged.display());
        assert!(Sealed::mount(&["-o", "remount,rw"], &sealed.0), "a file system that is not");
        fs::write(damaged, good).expect("written");
    }
}

/// What a scan finds, by name and path.
fn summed(run: &Run) -> BTreeMap<(String, Option<String>), (u64, i64)> {
    // Without an index nothing is known before a first pass.
    run.prepare().expect("prepared");
    let before = run.dictionary();
    let request = Request::of([Column::Dur, Column::Name, Column::File]);
    let mut sums: BTreeMap<_, (u64, i64)> = BTreeMap::new();
    let mut each = |batch: &weftline_index::Batch| {
        let ids = batch.ids(Column::Name).iter().zip(batch.ids(Column::File).iter());
        for ((name, file), dur) in ids.zip(batch.ints(Column::Dur).iter()) {
            let path = file.and_then(|file| before.path(file).map(str::to_owned));
            let sum = sums.entry((before.name(name.expect("a name")).to_owned(), path)).or_default();
            *sum = (sum.0 + 1, sum.1 + dur.unwrap_or(0));
        }
    };
    run.scan_in_order(&request, &mut each).expect("scanned");
    sums
}

/// Damage that comes while a run is open, before anything of it was read.
#[test]
fn damage_behind_an_open_run() {
    let built = Built::new();
    let rows = built.files.keys().find(|path| path.extension().is_some_and(|end| end == "rows")).expect("rows");
    for at in [100, 1_000, 10_000] {
        let run = open(built.directory.path());
        // In place, as disks rot: what the run has open is the same file.
        let mut bytes = fs::read(rows).expect("read");
        bytes[at] ^= 64;
        let file = fs::File::options().write(true).open(rows).expect("opened");
        std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).expect("written");
        assert!(answer(run) == built.truth, "byte {at}");
        built.check(rows, &built.files[rows], "as it was");
    }
}
