//! Tests that depend on the machine: rates, seconds and tools that check the product, and programs on a disk that others use.
//!
//! These tests take real time and can fail because other programs load the machine, so they have a stage of their own: the profile
//! `live` of nextest finds them by this module's name.

mod oracles;
mod ordinary;
mod seeded;
mod verdicts;

use std::time::Duration;

use weftline_testkit::Scratch;

use crate::collect::{asked_to_end, killed_after};
use crate::top::check_rates;

/// SIGTERM and Ctrl-C end a collector within a second.
#[test]
fn it_ends_within_a_second() {
    for (how, took) in asked_to_end(&Scratch::new("collect-end-soon")) {
        assert!(took < Duration::from_secs(1), "{how:?}: {took:?}");
    }
}

/// SIGKILL loses the last interval at most.
#[test]
fn a_killed_collector_loses_one_interval_at_most() {
    let scratch = Scratch::new("collect-kill-live");
    // At different places of an interval.
    for pause in [5, 40, 75] {
        // A tick may be late on a busy machine; the interval before it is there.
        let lost = killed_after(&scratch, 6, Duration::from_millis(pause));
        assert!(lost < Duration::from_millis(160), "the last sample is {lost:?} older");
    }
}

#[test]
fn rates_are_the_programs() {
    check_rates("top-rates", &["300"], 0.5);
}

/// Faster than anybody can look: segments are used again before they were read, and still counted.
#[test]
fn rates_of_a_fast_program_are_right_too() {
    check_rates("top-fast", &["300", "fast"], 0.001);
}
