//! Programs that attack the shared memory they record into. `weft run` neither crashes nor hangs nor takes all memory; it returns the program's
//! status, writes nothing outside the run, and never calls an incomplete trace complete. That holds for the user's own programs, and
//! for those of another user in root's shared run, which also cannot read others' records.

use std::path::Path;

use weftline_testkit::hostile::attack::{Attacker, WAYS, WAYS_OF_OTHERS, attack};
use weftline_testkit::random::Random;
use weftline_testkit::scratch;

const SCRIBBLER: &str = env!("CARGO_BIN_EXE_scribbler");
/// Times that each way is tried.
const ROUNDS: u64 = 3;

/// Tries one way with some seeds.
fn check(way: &str, attacker: Attacker, rounds: u64) {
    let first = Random::new().seed;
    let faults: Vec<String> = (0..rounds)
        .filter_map(|round| {
            let place = if round % 2 == 0 { scratch::base() } else { "/dev/shm".into() };
            attack(Path::new(SCRIBBLER), way, first.wrapping_add(round), &place, attacker)
        })
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

macro_rules! ways {
    ($attacker:ident, $rounds:expr, $all:expr; $($name:ident),* $(,)?) => {
        use super::*;

        $(#[test] fn $name() { check(stringify!($name), Attacker::$attacker, $rounds); })*

        #[test]
        fn every_way_has_its_test() {
            assert_eq!($all, [$(stringify!($name)),*]);
        }
    };
}

mod own {
    ways!(Own, ROUNDS, WAYS; noise, fields, processes, segments, names, control, cut, delete, links, flood);
}

mod of_another_user {
    // Once on a disk and once in memory.
    ways!(Nobody, 2, [&WAYS[..], &WAYS_OF_OTHERS].concat();
        noise, fields, processes, segments, names, control, cut, delete, links, flood, spy, offer, hold, ask);
}
