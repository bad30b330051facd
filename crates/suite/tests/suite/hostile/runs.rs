//! Mutated run directories under each verb that reads one. Nothing outside the run and the cache changes, nothing hangs, nothing crashes,
//! memory is bounded.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::Path;
use std::time::Duration;

use weftline_testkit::compile::{PLAIN, compile};
use weftline_testkit::hostile::bounded::Bounds;
use weftline_testkit::hostile::index::Rows;
use weftline_testkit::hostile::sandbox::Sandbox;
use weftline_testkit::hostile::{seeds, trial};
use weftline_testkit::product::product;
use weftline_testkit::random::Random;
use weftline_testkit::scratch;

/// How long the search goes on; `WEFT_MUTATE_SECONDS` says otherwise.
const SECONDS: u64 = 60;
/// Failures that are told of: the rest are mostly the same.
const SHOWN: usize = 5;
/// Repeats a trial.
const AGAIN: &str = "WEFT_MUTATE_SECONDS=1 cargo t -p weftline-suite -E 'test(any_run_directory)'";

fn seconds() -> Duration {
    let given = std::env::var("WEFT_MUTATE_SECONDS").ok();
    let given = given.map(|text| text.parse().unwrap_or_else(|_| panic!("WEFT_MUTATE_SECONDS={text} is no number")));
    Duration::from_secs(given.unwrap_or(SECONDS))
}

/// The verbs of the product that read a run, `query` among them.
fn verbs() -> Vec<trial::Verb> {
    let sql = product().with_file_name("weft-sql");
    assert!(sql.is_file(), "no {}, which `weft query` runs: `make sql` builds it", sql.display());
    let mut verbs = trial::reading();
    let mut query = trial::Verb::new(&["query", "--threads", "2"]);
    query.after.push(OsString::from("SELECT count(*), min(ts), max(ts) FROM events"));
    verbs.push(query);
    verbs
}

/// The search is one over accepted indexes, too: what a seed puts down is read, not built again.
#[test]
fn the_index_of_a_seed_is_accepted() {
    let whole = seeds::all().into_iter().find(|seed| seed.name == "whole").expect("there is one");
    let place = Sandbox::within(&scratch::base());
    whole.put(&place);
    let catalog = place.run().join(".weft/index/index.json");
    let before = fs::metadata(&catalog).expect("there").ino();
    for words in [&["index"][..], &["report", "--json"], &["info"]] {
        let mut command = vec![product().as_os_str().to_owned()];
        command.extend(words.iter().map(Into::into));
        command.push(place.run().into_os_string());
        let ended = place.command(&command, &Bounds::READING);
        assert_eq!(ended.code, Some(0), "{words:?}: {ended:?}");
        // Whoever builds one puts a new file in its place.
        assert_eq!(fs::metadata(&catalog).expect("there").ino(), before, "{words:?} built it again");
    }
}

/// An index that was forged page by page, with right sums, never takes a verb down; where it makes no sense the answer is that of the traces.
#[test]
fn a_forged_page_changes_no_answer() {
    let whole = seeds::all().into_iter().find(|seed| seed.name == "whole").expect("there is one");
    let report = |place: &Sandbox| {
        let command: Vec<OsString> =
            [product().as_os_str(), "report".as_ref(), "--json".as_ref(), place.run().as_os_str()]
                .map(Into::into)
                .to_vec();
        let ended = place.command(&command, &Bounds::READING);
        let name = place.run().display().to_string();
        (ended.code, ended.stdout.replace(&name, "RUN"), ended.stderr)
    };
    let place = Sandbox::within(&scratch::base());
    whole.put(&place);
    let truth = report(&place);
    assert_eq!((truth.0, &*truth.2), (Some(0), ""));
    let rows = |place: &Sandbox| {
        let entries = fs::read_dir(place.run().join(".weft/index")).expect("there").flatten();
        entries.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|end| end == "rows")).expect("rows")
    };
    let chunks = Rows::read(&rows(&place)).expect("rows").chunks;
    for chunk in (0..chunks.len()).filter(|place| !chunks[*place].pages.is_empty()) {
        for (what, change) in [
            ("is cut", (|page: &mut Vec<u8>| page.truncate(9)) as fn(&mut Vec<u8>)),
            ("has nine planes", |page| page[1] = 9),
            ("is said to be packed", |page| page.splice(.., [4, 0, 255, 255, 255, 63]).for_each(drop)),
        ] {
            let place = Sandbox::within(&scratch::base());
            whole.put(&place);
            let path = rows(&place);
            let mut forged = Rows::read(&path).expect("rows");
            forged.change_page(chunk, 0, change).expect("a page");
            forged.write(&path, 0).expect("written");
            assert_eq!(report(&place), truth, "page 0 of chunk {chunk} {what}");
        }
    }
}

#[test]
fn any_run_directory_is_read_without_harm() {
    let first = Random::new().seed;
    let found = trial::search(first, seconds(), SHOWN, product(), &seeds::all(), &verbs(), Path::new("/dev/shm"));
    let failures: Vec<String> = found.failed.iter().map(|trial| trial.description(AGAIN)).collect();
    assert!(failures.is_empty(), "{} of {} trials failed:\n{}", failures.len(), found.trials, failures.join("\n"));
    assert!(found.trials > 1, "no time for more than one trial");
}

/// The search finds what it was made for: a recovery that removes whatever a pointer names.
#[test]
fn the_pointer_that_deleted_is_found() {
    let old = compile("old_recovery", PLAIN);
    let first = Random::new().seed;
    let seeds = seeds::all();
    let verbs = [trial::Verb::new(&["recover"])];
    let found = trial::search(first, Duration::from_secs(60), 1, &old, &seeds, &verbs, Path::new("/dev/shm"));
    let [trial] = &found.failed[..] else { panic!("not found in {} trials from seed {first}", found.trials) };
    let fault = trial.fault.as_deref().unwrap_or_default();
    assert!(fault.contains("changed outside the run"), "{}", trial.description(AGAIN));
    // The same number over the same runs is the same trial.
    let again = trial::try_once(trial.seed, &old, &seeds, &verbs, Path::new("/dev/shm"));
    assert!(again.fault.is_some(), "{}", trial.description(AGAIN));
    // It may have removed the whole place.
    for place in [&trial.place, &again.place].into_iter().flatten().filter(|place| place.exists()) {
        fs::remove_dir_all(place).expect("a sandbox of this test");
    }
}

/// A run whose shared memory was not taken in is not complete, whatever its manifest says.
#[test]
fn what_could_not_be_taken_in_is_missed() {
    type Plant = fn(&Sandbox, &str);
    let cases: [(&str, i32, Plant); 6] = [
        ("nothing", 0, |_, _| {}),
        ("a directory of the user's", 1, |place, host| point(place, host, &place.path("decoy"))),
        ("a directory without a control page", 1, |place, host| {
            let live = place.run().join(".live/x-1-2");
            fs::DirBuilder::new().recursive(true).mode(0o700).create(&live).expect("made");
            point(place, host, &live);
        }),
        ("another host", 1, |place, _| point(place, "another-host", Path::new("/nowhere"))),
        ("no pointer at all", 1, |place, _| {
            fs::write(place.run().join("run.d/x-1-2.live"), "{").expect("written");
        }),
        ("a tail that is a directory", 1, |place, _| {
            fs::create_dir(place.run().join(".x-1-2.samples.tail")).expect("made");
        }),
    ];
    let whole = seeds::all().into_iter().find(|seed| seed.name == "whole").expect("there is one");
    let host = fs::read_to_string("/proc/sys/kernel/hostname").expect("a name");
    for (name, status, plant) in cases {
        let place = Sandbox::within(&scratch::base());
        whole.put(&place);
        plant(&place, host.trim());
        let command = [product().as_os_str().to_owned(), "check".into(), place.run().into_os_string()];
        let ended = place.command(&command, &Bounds::READING);
        let verdict = if status == 0 { "complete" } else { "not complete" };
        assert!(ended.code == Some(status) && ended.stdout.starts_with(verdict), "{name}: {ended:?}");
    }
}

/// Makes the run name a directory as its shared memory.
fn point(place: &Sandbox, host: &str, path: &Path) {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot");
    let pointer =
        serde_json::json!({"run_id": "x", "path": path, "host": host, "boot": boot.trim(), "pid": 1, "start": 2});
    fs::write(place.run().join("run.d/x-1-2.live"), pointer.to_string()).expect("written");
}
