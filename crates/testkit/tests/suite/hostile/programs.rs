//! Programs that attack the shared memory they record into. `weft run` neither crashes nor hangs nor takes all memory; it returns the program's
//! status, writes nothing outside the run, and does not call a trace complete of which a part is gone.

use std::path::Path;

use weftline_testkit::hostile::attack::{WAYS, attack};
use weftline_testkit::random::Random;
use weftline_testkit::scratch;

const SCRIBBLER: &str = env!("CARGO_BIN_EXE_scribbler");
/// Times that each way is tried.
const ROUNDS: u64 = 3;

/// Tries one way with some seeds.
fn check(way: &str) {
    assert!(WAYS.contains(&way), "{way}");
    let first = Random::new().seed;
    let faults: Vec<String> = (0..ROUNDS)
        .filter_map(|round| {
            let place = if round % 2 == 0 { scratch::base() } else { "/dev/shm".into() };
            attack(Path::new(SCRIBBLER), way, first.wrapping_add(round), &place)
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

macro_rules! ways {
    ($($name:ident),* $(,)?) => {
        $(#[test] fn $name() { check(stringify!($name)); })*

        #[test]
        fn every_way_has_its_test() {
            assert_eq!(WAYS, [$(stringify!($name)),*]);
        }
    };
}

ways!(noise, fields, processes, segments, names, control, cut, delete, links, flood);
