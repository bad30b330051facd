//! How the states of `crate::pass` are written where serde's own way would not do: maps in the order of their keys, so that equal states have equal
//! bytes; sums of `weftline_calls`, which knows no serde, as lists of numbers.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Serialize, Serializer};
use weftline_calls::{Activity, ActivitySums, IoSums};

/// Maps as lists of pairs.
pub(crate) mod sorted {
    use super::*;

    pub(crate) fn serialize<K, V, S>(map: &FxHashMap<K, V>, serializer: S) -> Result<S::Ok, S::Error>
    where
        K: Ord + Serialize,
        V: Serialize,
        S: Serializer,
    {
        let mut pairs: Vec<(&K, &V)> = map.iter().collect();
        pairs.sort_unstable_by(|a, b| a.0.cmp(b.0));
        serializer.collect_seq(pairs)
    }

    pub(crate) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<FxHashMap<K, V>, D::Error>
    where
        K: Eq + Hash + Deserialize<'de>,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        let pairs = Vec::<(K, V)>::deserialize(deserializer)?;
        let count = pairs.len();
        let map: FxHashMap<K, V> = pairs.into_iter().collect();
        if map.len() == count { Ok(map) } else { Err(D::Error::custom("a key that is there twice")) }
    }
}

type Numbers = [u64; 12];

fn numbers(sums: &IoSums) -> Numbers {
    let IoSums {
        calls,
        reads,
        writes,
        metadata_calls,
        opens,
        syncs,
        read_bytes,
        write_bytes,
        time_ns,
        read_ns,
        write_ns,
        metadata_ns,
    } = *sums;
    let counts = [calls, reads, writes, metadata_calls, opens, syncs];
    let rest = [read_bytes, write_bytes, time_ns, read_ns, write_ns, metadata_ns];
    std::array::from_fn(|place| if place < 6 { counts[place] } else { rest[place - 6] })
}

fn sums_of(numbers: Numbers) -> IoSums {
    let [calls, reads, writes, metadata_calls, opens, syncs, rest @ ..] = numbers;
    let [read_bytes, write_bytes, time_ns, read_ns, write_ns, metadata_ns] = rest;
    IoSums {
        calls,
        reads,
        writes,
        metadata_calls,
        opens,
        syncs,
        read_bytes,
        write_bytes,
        time_ns,
        read_ns,
        write_ns,
        metadata_ns,
    }
}

/// Lists of [`IoSums`] by id, of which many are empty.
pub(crate) mod sums {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(all: &[IoSums], serializer: S) -> Result<S::Ok, S::Error> {
        let some = |sums: &IoSums| (*sums != IoSums::default()).then(|| numbers(sums));
        serializer.collect_seq(all.iter().map(some))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IoSums>, D::Error> {
        let all = Vec::<Option<Numbers>>::deserialize(deserializer)?;
        Ok(all.into_iter().map(|numbers| numbers.map_or_else(IoSums::default, sums_of)).collect())
    }
}

/// [`IoSums`] by number.
pub(crate) mod sums_by_number {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(map: &FxHashMap<u32, IoSums>, serializer: S) -> Result<S::Ok, S::Error> {
        let map: FxHashMap<u32, Numbers> = map.iter().map(|(number, sums)| (*number, numbers(sums))).collect();
        sorted::serialize(&map, serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<FxHashMap<u32, IoSums>, D::Error> {
        let map: FxHashMap<u32, Numbers> = sorted::deserialize(deserializer)?;
        Ok(map.into_iter().map(|(number, numbers)| (number, sums_of(numbers))).collect())
    }
}

/// [`ActivitySums`].
pub(crate) mod activity_sums {
    use super::*;

    pub(crate) fn serialize<S: Serializer>(sums: &ActivitySums, serializer: S) -> Result<S::Ok, S::Error> {
        Activity::ALL.map(|activity| sums.get(activity)).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<ActivitySums, D::Error> {
        let numbers = <[u64; Activity::ALL.len()]>::deserialize(deserializer)?;
        let mut sums = ActivitySums::default();
        Activity::ALL.into_iter().zip(numbers).for_each(|(activity, ns)| sums.add(activity, ns));
        Ok(sums)
    }
}

/// The activity of a number.
pub(crate) fn activity(number: u8) -> Result<Activity, &'static str> {
    Activity::ALL.get(usize::from(number)).copied().ok_or("an unknown activity")
}

/// What sums of a state that travelled may be together: no run has as many calls, bytes or nanoseconds, and whoever adds some of them up need not look.
pub(crate) fn is_sum(numbers: impl IntoIterator<Item = u64>) -> bool {
    let sum = numbers.into_iter().fold(0u64, u64::saturating_add);
    sum <= i64::MAX as u64
}

/// The same for numbers that may be far larger, or negative.
pub(crate) fn is_wide_sum(number: i128) -> bool {
    number.unsigned_abs() <= 1 << 100
}

/// What the first and last time of something may be: the one before the other, and so that their distance is a number.
pub(crate) fn is_range(start: i64, end: i64) -> bool {
    const MOST: i64 = 1 << 62;
    -MOST <= start && start <= end && end <= MOST
}
