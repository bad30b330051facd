//! Random moments that can be repeated: every test prints its seed when it fails, and `WEFT_TEST_SEED` sets it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A small generator (splitmix64).
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
    /// What to put into `WEFT_TEST_SEED` to see the same numbers again.
    pub seed: u64,
}

impl Random {
    /// Seeded by `WEFT_TEST_SEED`, else by the clock.
    pub fn new() -> Random {
        let seed = match std::env::var("WEFT_TEST_SEED") {
            Ok(text) => text.parse().unwrap_or_else(|_| panic!("WEFT_TEST_SEED={text} is not a number")),
            Err(_) => SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_nanos() as u64,
        };
        Random { state: seed, seed }
    }

    /// Seeded by a number: the same one gives the same choices.
    pub fn seeded(seed: u64) -> Random {
        Random { state: seed, seed }
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.state;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// A number below `limit`, which is not zero.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.number() % limit
    }

    /// One of a list, which is not empty.
    pub fn one_of<'l, T>(&mut self, list: &'l [T]) -> &'l T {
        &list[self.below(list.len() as u64) as usize]
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A duration shorter than `limit`.
    pub fn duration(&mut self, limit: Duration) -> Duration {
        Duration::from_micros(self.below(limit.as_micros() as u64 + 1))
    }
}

impl Default for Random {
    fn default() -> Self {
        Random::new()
    }
}
