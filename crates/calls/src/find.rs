//! Finding a call by its name: a hash table that the compiler fills.

use crate::CallInfo;
use crate::foreign::NAMES;
use crate::hooked::CALLS;

/// More than twice as many places as names, so that a search ends soon.
const PLACES: usize = 1024;
const _: () = assert!((CALLS.len() + NAMES.len()) * 2 < PLACES, "the table of names needs more places");

/// By hash: 1 + the place of a call in [`CALLS`] or behind it in [`NAMES`]; 0 is none.
static INDEX: [u16; PLACES] = index();

const fn hash(name: &[u8]) -> usize {
    let mut hash = 0x811c_9dc5u32;
    let mut at = 0;
    while at < name.len() {
        hash = (hash ^ name[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    (hash ^ hash >> 15) as usize % PLACES
}

const fn equal(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}

const fn call(place: usize) -> &'static CallInfo {
    if place < CALLS.len() { &CALLS[place] } else { &NAMES[place - CALLS.len()] }
}

const fn index() -> [u16; PLACES] {
    let mut index = [0; PLACES];
    // The first call is none.
    let mut place = 1;
    while place < CALLS.len() + NAMES.len() {
        let name = call(place).name.as_bytes();
        let mut at = hash(name);
        while index[at] != 0 {
            assert!(!equal(call(index[at] as usize - 1).name.as_bytes(), name), "a name stands in the table twice");
            at = (at + 1) % PLACES;
        }
        index[at] = place as u16 + 1;
        place += 1;
    }
    index
}

const fn place_of(name: &str) -> Option<usize> {
    let mut at = hash(name.as_bytes());
    while INDEX[at] != 0 {
        let place = INDEX[at] as usize - 1;
        if equal(call(place).name.as_bytes(), name.as_bytes()) {
            return Some(place);
        }
        at = (at + 1) % PLACES;
    }
    None
}

/// The call of this name, whatever the category that it was recorded in.
pub const fn find(name: &str) -> Option<&'static CallInfo> {
    match place_of(name) {
        Some(place) => Some(call(place)),
        None => None,
    }
}

/// The number of the hooked call of this name: its place in [`CALLS`].
pub const fn number_of(name: &str) -> Option<usize> {
    match place_of(name) {
        Some(place) if place < CALLS.len() => Some(place),
        _ => None,
    }
}
