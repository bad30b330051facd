//! Processes a list in parallel, on threads that end with the work: no pool stays behind in a process that only reads a
//! trace, and a library that reads on the calling thread alone does not link one.

use std::num::NonZero;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How many threads are worth having: one per processor that this process may use.
pub(crate) fn available() -> usize {
    static FOUND: OnceLock<usize> = OnceLock::new();
    *FOUND.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}

/// Maps all items, in their order, on up to `threads` threads; the calling one is the first of them.
pub(crate) fn map_all<'t, T: Sync, R: Send>(
    threads: usize,
    items: &'t [T],
    map: impl Fn(&'t T) -> R + Sync + Send,
) -> Vec<R> {
    let workers = threads.min(items.len());
    if workers < 2 {
        return items.iter().map(map).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(place) else { return done };
            done.push((place, map(item)));
        }
    };
    let mut all = thread::scope(|scope| {
        // A system that refuses a thread leaves more to the others.
        let others: Vec<_> =
            (1..workers).filter_map(|_| thread::Builder::new().spawn_scoped(scope, work).ok()).collect();
        let mut all = work();
        for other in others {
            match other.join() {
                Ok(done) => all.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_unstable_by_key(|(place, _)| *place);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_whatever_the_threads() {
        for (threads, items) in [(1, 0), (1, 5), (2, 1), (2, 1000), (16, 3), (16, 1000)] {
            let numbers: Vec<usize> = (0..items).collect();
            let squares: Vec<usize> = numbers.iter().map(|n| n * n).collect();
            assert_eq!(map_all(threads, &numbers, |n| n * n), squares, "{threads} {items}");
        }
    }

    #[test]
    fn one_thread_is_the_calling_one() {
        let own = thread::current().id();
        assert!(map_all(1, &[1, 2, 3], |_| thread::current().id()).into_iter().all(|id| id == own));
    }
}
