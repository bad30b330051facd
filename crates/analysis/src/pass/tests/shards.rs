//! However a run is cut, its shards tell together what the run tells as a whole; and states that somebody damaged or forged cost an error, no more.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use twox_hash::XxHash64;
use weftline_index::{Filter, OpenOptions, Run, Shard};

use super::super::*;
use crate::condition::Condition;
use crate::findings::tests::builder::Trace;

/// Something that a process does, by numbers that a test draws.
#[derive(Debug, Clone)]
struct Deed {
    kind: u8,
    file: u8,
    start: i64,
    dur: i64,
    number: i64,
}

/// A process; `cut`: its events are in two files, and so in two row groups.
#[derive(Debug, Clone)]
struct Doer {
    cut: bool,
    host: u8,
    deeds: Vec<Deed>,
}

/// Kinds of deeds; the first ones are not followed in order.
const UNFOLLOWED: u8 = 9;
const KINDS: u8 = 16;

fn deed() -> impl Strategy<Value = Deed> {
    (0..KINDS, 0u8..4, 0i64..3_000_000, 0i64..400_000, 0i64..6).prop_map(|(kind, file, start, dur, number)| Deed {
        kind,
        file,
        start,
        dur,
        number,
    })
}

fn doers() -> impl Strategy<Value = Vec<Doer>> {
    let doer = (any::<bool>(), 0u8..2, prop::collection::vec(deed(), 1..30)).prop_map(|(cut, host, deeds)| Doer {
        cut,
        host,
        deeds,
    });
    prop::collection::vec(doer, 1..7)
}

fn act(trace: Trace, pid: i64, deed: &Deed, cut: bool) -> Trace {
    let Deed { kind, file, start, dur, number } = *deed;
    let kind = if cut { kind % UNFOLLOWED } else { kind };
    let path = format!("/data/{file}");
    let bytes = 1 << (6 + 3 * number);
    let mut trace = trace;
    let step = format!("\"epoch\":{},\"step\":{number}", number / 3);
    match kind {
        0 => trace.span(pid, "compute", "forward", start, dur, &step),
        1 => trace.span(pid, "data_loader", "fetch.iter", start, dur, ""),
        2 => trace.span(pid, "checkpoint", "save", start, dur, ""),
        3 => trace.span(pid, "pipeline", "step", start, dur, &step),
        4 => trace.span(pid, "app", "main", start, dur * 9, ""),
        5 => trace.span(pid, "POSIX", "wait4", start, dur, &format!("\"ret\":{}", 1 + number)),
        6 => trace.call(pid, "fstat", &path, dur, "\"fd\":3,\"ret\":0").clone(),
        7 => trace.call(pid, "fwrite", &path, dur, &format!("\"size\":{bytes},\"ret\":{bytes}")).clone(),
        8 => trace.call(pid, "mkdir", &path, dur, "\"ret\":0").clone(),
        9 => trace.call(pid, "open", &path, dur, &format!("\"flags\":{},\"ret\":3", 64 * (number % 2))).clone(),
        10 => trace.call(pid, "close", &path, dur, "\"fd\":3,\"ret\":0").clone(),
        11 => {
            let at = number * 4096;
            trace.call(pid, "lseek", &path, dur, &format!("\"fd\":3,\"whence\":{},\"ret\":{at}", number % 3)).clone()
        }
        12 => trace.call(pid, "read", &path, dur, &format!("\"size\":{bytes},\"ret\":{bytes}")).clone(),
        13 => trace.call(pid, "read", "pipe:[77]", dur, &format!("\"fd\":0,\"ret\":{bytes}")).clone(),
        14 => trace.transfer(pid, "write", &path, dur, number * 5000, bytes).clone(),
        _ => trace.transfer(pid, "read", &path, dur, number * 5000, bytes).clone(),
    }
}

/// A run of which every file is a row group.
struct Made {
    _kept: tempfile::TempDir,
    run: Run,
}

fn made(doers: &[Doer]) -> Made {
    let kept = tempfile::tempdir().expect("a directory");
    let mut paths: Vec<PathBuf> = Vec::new();
    for (place, doer) in doers.iter().enumerate() {
        let pid = place as i64 + 1;
        for half in 0..=usize::from(doer.cut) {
            let rank = (pid % 3 == 0).then_some(pid);
            let mut trace = Trace::new().process(pid, ["near", "far"][usize::from(doer.host)], rank);
            // Something is in every file, so that each is a row group.
            trace = trace.span(pid, "app", "begin", 0, 1, "");
            let deeds = doer.deeds.iter().enumerate().filter(|(number, _)| !doer.cut || number % 2 == half);
            for (_, deed) in deeds {
                trace = act(trace, pid, deed, doer.cut);
            }
            let path = kept.path().join(format!("{pid}-{half}.pfw"));
            std::fs::write(&path, trace.text()).expect("written");
            paths.push(path);
        }
    }
    let run = opened(&paths);
    Made { _kept: kept, run }
}

fn opened(paths: &[PathBuf]) -> Run {
    Run::open(paths, &OpenOptions { threads: Some(2), ..OpenOptions::default() }).expect("opened")
}

/// All that a report says, as text.
fn said((summary, verdict): &(Summary, Verdict)) -> String {
    let verdict = serde_json::to_string(verdict).expect("JSON");
    format!("{summary:?}\n{:?}\n{verdict}", summary.tables())
}

/// What shards say together, read with so many ranges at once, carried as bytes or not, merged in an order.
fn together(
    run: &Run,
    question: &Question,
    rules: Option<&Config>,
    shards: &[Shard],
    (at_once, carried, turn): (u64, bool, usize),
) -> (Summary, Verdict) {
    let plan = || Plan { at_once, ..Plan::new(run, question, rules).expect("planned") };
    let mut states: Vec<State> = shards.iter().map(|shard| plan().gather(run, shard).expect("gathered")).collect();
    for state in states.iter_mut().enumerate().filter(|(place, _)| carried || place % 2 == 0).map(|(_, state)| state) {
        let bytes = state.to_bytes();
        *state = State::from_bytes(&bytes).expect("read again");
        assert_eq!(state.to_bytes(), bytes, "nothing is lost on the way");
    }
    let count = states.len();
    states.rotate_left(turn % count);
    if turn % 2 == 1 {
        states.reverse();
    }
    let mut all = states.pop().expect("a shard");
    states.into_iter().for_each(|state| all.merge(state).expect("merged"));
    plan().conclude(run, question, all).expect("concluded")
}

fn questions() -> [Question; 3] {
    let filter = Condition::parse("name != 'read'").expect("a condition").filter(Filter::default());
    [
        Question::default(),
        Question { from: Some(900_000_000), to: Some(2_000_000_000), ..Question::default() },
        Question { filter, ..Question::default() },
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn shards_tell_what_the_run_tells(
        doers in doers(),
        parts in prop::collection::vec(0usize..5, 12),
        which in 0usize..3,
        carried in any::<bool>(),
        turn in 0usize..10,
    ) {
        let made = made(&doers);
        let question = &questions()[which];
        let config = Config::default();
        let rules = (turn != 9).then_some(&config);
        let expected = said(&report(&made.run, question, rules).expect("judged"));
        let groups = made.run.row_groups();
        prop_assert_eq!(groups, doers.iter().map(|doer| 1 + usize::from(doer.cut)).sum::<usize>());
        let of = |part: usize| Shard::of((0..groups).filter(|group| parts[group % parts.len()] == part));
        let shards: Vec<Shard> = (0..5).map(of).collect();
        for at_once in [SPANS_AT_ONCE, 7, 1] {
            let whole = together(&made.run, question, rules, &[Shard::whole()], (at_once, carried, turn));
            prop_assert_eq!(&said(&whole), &expected, "{} at once", at_once);
            let found = together(&made.run, question, rules, &shards, (at_once, carried, turn));
            prop_assert_eq!(&said(&found), &expected, "{} at once, cut as {:?}", at_once, shards);
        }
    }
}

/// Two processes with something of everything.
fn example() -> Made {
    let deeds =
        |from: u8| (from..from + KINDS).map(|kind| Deed { kind, file: kind % 4, start: 1000, dur: 90, number: 2 });
    let doer = |cut, from| Doer {
        cut,
        host: 0,
        deeds: deeds(from).map(|deed| Deed { kind: deed.kind % KINDS, ..deed }).collect(),
    };
    made(&[doer(false, 0), doer(true, 5), doer(false, 9)])
}

fn halves(run: &Run) -> [Shard; 2] {
    let groups = run.row_groups();
    [0, 1].map(|half| Shard::of((0..groups).filter(|group| group % 2 == half)))
}

#[test]
fn shards_keep_processes_together() {
    let made = example();
    let count = |most: usize| made.run.shards(most).len();
    assert_eq!([count(1), count(2), count(3), count(9)], [1, 2, 3, 3], "four row groups, of which two share a process");
    let shards = made.run.shards(2);
    let cut = |shard: &Shard| made.run.processes_cut_by(shard).expect("an index").contains(&true);
    assert!(!shards.iter().any(cut) && halves(&made.run).iter().any(cut));
    let expected = said(&report(&made.run, &Question::default(), Some(&Config::default())).expect("judged"));
    let found = together(&made.run, &Question::default(), Some(&Config::default()), &shards, (5, true, 1));
    assert_eq!(said(&found), expected);
}

#[test]
fn states_that_do_not_fit_are_refused() {
    let (made, other) = (example(), example());
    let (question, config) = (Question::default(), Config::default());
    let gathered = |run: &Run, question: &Question, rules: Option<&Config>, shard: &Shard| {
        State::from_bytes(&gather(run, question, rules, shard).expect("gathered").to_bytes()).expect("read again")
    };
    let [left, right] = halves(&made.run);
    let state = gathered(&made.run, &question, Some(&config), &left);
    let refused = |other: State| state.clone().merge(other).expect_err("another one");
    assert_eq!(refused(state.clone()), StateError::Twice { group: 0 });
    let coarse = Question { width_ns: Some(7), ..Question::default() };
    assert!(matches!(refused(gathered(&made.run, &coarse, Some(&config), &right)), StateError::Different { .. }));
    assert!(matches!(refused(gathered(&made.run, &question, None, &right)), StateError::Different { .. }));
    let mut strict = Config::default();
    strict.set("small-reads.size=8").expect("a setting");
    assert!(matches!(refused(gathered(&made.run, &question, Some(&strict), &right)), StateError::Different { .. }));
    let incomplete = conclude(&made.run, &question, Some(&config), state.clone()).expect_err("half a run");
    assert!(incomplete.to_string().contains("2 of 4 row groups"), "{incomplete}");
    // Another run that looks alike, but its files have other paths.
    let paths: Vec<PathBuf> = other.run.sources().into_iter().map(|source| source.path).collect();
    for path in &paths {
        let text = std::fs::read_to_string(path).expect("own file");
        std::fs::write(path, text.replace("/data/", "/tada/")).expect("written");
    }
    let whole = gathered(&made.run, &question, Some(&config), &Shard::whole());
    let other = opened(&paths);
    let foreign = conclude(&other, &question, Some(&config), whole).expect_err("of another run");
    assert!(foreign.to_string().contains("of another run, which has \"/data/"), "{foreign}");
}

fn sealed(bytes: &[u8]) -> Vec<u8> {
    let content = &bytes[..bytes.len().saturating_sub(8)];
    [content, &XxHash64::oneshot(0, content).to_le_bytes()].concat()
}

/// What a forged state leads to; it must lead somewhere.
fn forged(run: &Run, bytes: &[u8], beside: Option<&State>) -> bool {
    let Ok(mut state) = State::from_bytes(bytes) else { return false };
    if let Some(beside) = beside {
        let _ = state.merge(beside.clone());
    }
    conclude(run, &Question::default(), Some(&Config::default()), state).is_ok()
}

#[test]
fn damage_and_forgery_cost_an_error_at_most() {
    let made = example();
    let whole = gather(&made.run, &Question::default(), Some(&Config::default()), &Shard::whole()).expect("gathered");
    let bytes = whole.to_bytes();
    assert!(forged(&made.run, &bytes, None));
    assert_eq!(State::from_bytes(b"").err(), Some(StateError::NotAState));
    assert_eq!(State::from_bytes(b"{}").err(), Some(StateError::NotAState));
    let mut newer = bytes.clone();
    newer[8] = 9;
    assert_eq!(State::from_bytes(&newer).err(), Some(StateError::Version { found: 9 }));
    for (place, bit) in (12..bytes.len()).zip((0..8).cycle()) {
        let mut damaged = bytes.clone();
        damaged[place] ^= 1 << bit;
        assert!(matches!(State::from_bytes(&damaged), Err(StateError::Damaged { .. })), "byte {place}");
        assert!(State::from_bytes(&bytes[..place]).is_err(), "cut at {place}");
        assert!(State::from_bytes(&sealed(&bytes[..place])).is_err(), "cut at {place}, with a right sum");
    }
    // With a right sum: some are believed, as far as a sum may be anything; nobody panics or asks for more memory than there are bytes.
    let [left, right] = halves(&made.run);
    let gathered = |shard| gather(&made.run, &Question::default(), Some(&Config::default()), shard).expect("gathered");
    let (left, right) = (gathered(&left).to_bytes(), gathered(&right));
    let mut believed = 0;
    for place in 12..left.len() - 8 {
        for value in [0, 0x7f, 0xff, left[place].wrapping_add(1)] {
            let mut other = left.clone();
            other[place] = value;
            believed += usize::from(forged(&made.run, &sealed(&other), Some(&right)));
        }
    }
    assert!(believed > 0);
}

/// The tests' own traces in a directory: names of files do not matter.
#[test]
fn a_run_without_an_index_is_one_shard() {
    let made = example();
    let directory: &Path = made._kept.path();
    let options = OpenOptions { no_index: true, ..OpenOptions::default() };
    let run = Run::open(&[directory.to_owned()], &options).expect("opened");
    let expected = said(&report(&run, &Question::default(), Some(&Config::default())).expect("judged"));
    assert_eq!((run.row_groups(), run.shards(4).len()), (1, 1));
    for shards in [vec![Shard::of([0]), Shard::of([])], run.shards(4)] {
        let found = together(&run, &Question::default(), Some(&Config::default()), &shards, (3, true, 0));
        assert_eq!(said(&found), expected);
    }
}
