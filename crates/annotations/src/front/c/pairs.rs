//! Ids that join two events of woven code: the ends of an async span, the ends of an arrow.
//!
//! An `around_async` function knows its own id. An `after_async` alone ends the oldest open `before_async` of the same scope,
//! on any thread: first begun, first ended. An arrow's end takes the oldest open arrow. An end without a beginning has an id of
//! its own.

use std::collections::{HashMap, VecDeque};
use std::sync::{LazyLock, Mutex, MutexGuard, TryLockError};

use crate::front;

/// Beginnings that are remembered for each scope; a program that never ends anything must not fill its memory.
const REMEMBERED: usize = 1 << 16;
/// How often the lock is tried: a child that was forked while another thread had it will never get it.
const TRIES: u32 = 2000;

#[derive(Default)]
struct Open {
    scopes: HashMap<Box<[u8]>, VecDeque<u64>>,
    flows: VecDeque<u64>,
}

static OPEN: LazyLock<Mutex<Open>> = LazyLock::new(Mutex::default);

fn open() -> Option<MutexGuard<'static, Open>> {
    for _ in 0..TRIES {
        match OPEN.try_lock() {
            Ok(open) => return Some(open),
            Err(TryLockError::Poisoned(open)) => return Some(open.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}

fn remember(queue: &mut VecDeque<u64>, id: u64) {
    if queue.len() == REMEMBERED {
        queue.pop_front();
    }
    queue.push_back(id);
}

/// An id that no other span or arrow has, of this process or another.
pub fn fresh() -> u64 {
    front::new_id()
}

/// The running number in an id: what the original tells.
pub fn number(id: u64) -> u64 {
    id & 0xFF_FFFF_FFFF
}

/// The id of an async span that begins in this scope.
pub fn begin(scope: &[u8]) -> u64 {
    let id = fresh();
    if let Some(mut open) = open() {
        match open.scopes.get_mut(scope) {
            Some(queue) => remember(queue, id),
            None => {
                open.scopes.insert(scope.into(), VecDeque::from([id]));
            }
        }
    }
    id
}

/// The id of the async span that ends in this scope.
pub fn end(scope: &[u8]) -> u64 {
    let begun = open().and_then(|mut open| open.scopes.get_mut(scope)?.pop_front());
    begun.unwrap_or_else(fresh)
}

/// The id of an arrow that starts.
pub fn flow_out() -> u64 {
    let id = fresh();
    if let Some(mut open) = open() {
        remember(&mut open.flows, id);
    }
    id
}

/// The id of the arrow that ends.
pub fn flow_in() -> u64 {
    open().and_then(|mut open| open.flows.pop_front()).unwrap_or_else(fresh)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_first_ends_first() {
        let ids = [begin(b"a"), begin(b"b"), begin(b"a")];
        assert_eq!([end(b"a"), end(b"a"), end(b"b")], [ids[0], ids[2], ids[1]]);
        let alone = end(b"a");
        assert!(!ids.contains(&alone) && alone != end(b"a"), "an end without a beginning");
    }

    #[test]
    fn arrows_are_joined_in_order() {
        let (first, second) = (flow_out(), flow_out());
        assert_eq!([flow_in(), flow_in()], [first, second]);
        assert_ne!(flow_in(), flow_in());
    }

    #[test]
    fn what_never_ends_is_forgotten() {
        let first = begin(b"leak");
        let second = begin(b"leak");
        for _ in 1..REMEMBERED {
            begin(b"leak");
        }
        assert_eq!(end(b"leak"), second, "and not {first}");
    }
}
