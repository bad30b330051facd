//! Survives files that are truncated while they are mapped.
//!
//! A traced program can truncate the file of its arena, and so can anybody who may write to a run. A page of a mapping beyond the file's end
//! does not exist: touching it raises SIGBUS, which kills a process by default. A supervisor must not die of that. So it installs a handler ([`install`])
//! that maps a page of zeros, "nothing was recorded", in place of the missing one, and notes that the mapping is torn.
//!
//! Only our own commands install it. A program that encodes its own records has its own handlers, and truncates only its own files.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Mappings that are watched at once. Processes have 65,530 mappings by default.
const MOST: usize = 1 << 15;
/// Of a range that is being entered. No mapping begins there.
const RESERVED: usize = 1;

/// A mapping: where it begins (0: nobody's), its length, and whether a page of it was missing.
struct Range {
    start: AtomicUsize,
    length: AtomicUsize,
    torn: AtomicBool,
}

impl Range {
    const fn unused() -> Range {
        Range { start: AtomicUsize::new(0), length: AtomicUsize::new(0), torn: AtomicBool::new(false) }
    }
}

static RANGES: [Range; MOST] = [const { Range::unused() }; MOST];
/// How many of them were ever used: the handler looks no further.
static USED: AtomicUsize = AtomicUsize::new(0);

/// A mapping's entry, which goes with it.
pub(super) struct Entry(usize);

impl Entry {
    /// Enters a mapping; nothing when there are too many.
    pub(super) fn new(start: usize, length: usize) -> Option<Entry> {
        let free =
            |range: &Range| range.start.compare_exchange(0, RESERVED, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let index = RANGES.iter().position(free)?;
        USED.fetch_max(index + 1, Ordering::AcqRel);
        let range = &RANGES[index];
        range.torn.store(false, Ordering::Relaxed);
        range.length.store(length, Ordering::Relaxed);
        range.start.store(start, Ordering::Release);
        Some(Entry(index))
    }

    /// Whether a page of the mapping was missing.
    pub(super) fn is_torn(&self) -> bool {
        RANGES[self.0].torn.load(Ordering::Acquire)
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        RANGES[self.0].start.store(0, Ordering::Release);
    }
}

/// How SIGBUS was handled before.
static BEFORE: std::sync::OnceLock<libc::sigaction> = std::sync::OnceLock::new();

/// Lets this process survive files that are cut while it maps them. Later calls do nothing.
pub fn install() {
    // SAFETY: sigaction is plain data, valid when zero; the handler keeps to what a handler may do.
    BEFORE.get_or_init(|| unsafe {
        let (mut action, mut before): (libc::sigaction, libc::sigaction) = (std::mem::zeroed(), std::mem::zeroed());
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_missing_page;
        action.sa_sigaction = handler as libc::sighandler_t;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigaction(libc::SIGBUS, std::ptr::null(), &raw mut before);
        libc::sigaction(libc::SIGBUS, &raw const action, std::ptr::null_mut());
        before
    });
}

/// Looks at nothing but atomics, and makes system calls that may be made in a handler.
extern "C" fn on_missing_page(signal: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel gives a handler with SA_SIGINFO the facts of the signal; the place of errno is this thread's.
    let (address, errno) = unsafe { ((*info).si_addr() as usize, *libc::__errno_location()) };
    let used = USED.load(Ordering::Acquire);
    let holds = |range: &&Range| {
        let start = range.start.load(Ordering::Acquire);
        start > RESERVED && (start..start + range.length.load(Ordering::Relaxed)).contains(&address)
    };
    let found = RANGES[..used].iter().find(holds);
    let replaced = found.is_some_and(|range| {
        range.torn.store(true, Ordering::Release);
        put_zeros(address)
    });
    if !replaced {
        // Not ours: restore the previous handler. The instruction is retried, and that handler gets the signal.
        // SAFETY: the action is one that the kernel gave, or the default, which is zero.
        unsafe {
            let default: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, BEFORE.get().map_or(&raw const default, std::ptr::from_ref), std::ptr::null_mut());
        }
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Puts a page of zeros of this process alone in the place of the one that is missing.
fn put_zeros(address: usize) -> bool {
    const PAGE: usize = 4096;
    let flags = libc::MAP_FIXED | libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: the page lies in a mapping that is entered above, and does not exist: nothing can be lost.
    let at = unsafe {
        libc::mmap((address & !(PAGE - 1)) as *mut libc::c_void, PAGE, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    at != libc::MAP_FAILED
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use weftline_recorder::layout::PIECE_SIZE;

    use super::super::Arena;
    use super::install;

    /// From any thread, also one that was started with its signals blocked, as workers are.
    #[test]
    fn a_file_that_is_cut_reads_as_zeros() {
        install();
        let place = tempfile::tempdir().expect("a directory");
        Arena::create(place.path(), 0, 1, crate::system::user()).expect("made");
        let arena = Arena::open(place.path(), 0).expect("mapped").expect("of this layout");
        assert!(!arena.is_damaged());
        let file = File::options().write(true).open(Arena::path(place.path(), 0)).expect("opened");
        file.set_len(PIECE_SIZE as u64 / 2).expect("cut");
        let look =
            || crate::system::with_signals_blocked(|| arena.record(super::super::SegmentAt { piece: 0, index: 27 }, 0));
        let found = std::thread::scope(|scope| crate::system::with_signals_blocked(|| scope.spawn(look)).join());
        assert!(found.expect("the thread lives").is_none() && arena.is_damaged());
        file.set_len(0).expect("cut");
        assert_eq!(arena.slots_used(), 0);
        assert!(Arena::open(place.path(), 0).is_err(), "too short");
    }
}
