//! The clock of records: the time-stamp counter where the kernel trusts it, else CLOCK_MONOTONIC.
//!
//! Records hold raw ticks. The drain turns them into nanoseconds by anchors, pairs of (ticks, CLOCK_MONOTONIC) that every
//! segment carries and that the supervisor takes once a second. The conversion is piecewise, so that NTP slew over a
//! week does not bend the trace. Measured here: rdtsc 10 ns, clock_gettime through the vdso 24 ns, as a system call 268 ns.
//!
//! A thread can lose the counter: after `prctl(PR_SET_TSC)` and in strict seccomp, rdtsc raises SIGSEGV, also inside the vdso. From then on every
//! thread of the process looks up its own [`Source`], and a segment states the clock of its records.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::{process, sys, thread};

/// Which clock `Record::start` and `end` count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum ClockKind {
    /// The processor's time-stamp counter.
    Tsc = 1,
    /// Nanoseconds of CLOCK_MONOTONIC.
    Monotonic = 2,
}

/// Where a thread gets its time from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Source {
    /// Nobody has asked yet.
    Unknown = 0,
    /// The clock of the run, whichever [`ClockKind`] that is.
    Shared = 1,
    /// CLOCK_MONOTONIC by a real system call: where the counter is forbidden and calls are not.
    Syscall = 2,
    /// CLOCK_MONOTONIC_COARSE, which the vdso reads from memory: where both are forbidden. It moves every 1 to 10 ms.
    Coarse = 3,
}

/// `clock_gettime`, as the C library exports it.
pub type ClockGettime = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;

/// A [`ClockKind`], or [`BY_THREAD`].
static KIND: AtomicU32 = AtomicU32::new(ClockKind::Monotonic as u32);
/// In place of a [`ClockKind`]: some thread has lost its clock, so each looks up its [`Source`].
const BY_THREAD: u32 = 3;
/// The kind that was chosen for the process.
static SHARED: AtomicU32 = AtomicU32::new(ClockKind::Monotonic as u32);
static CLOCK_GETTIME: AtomicUsize = AtomicUsize::new(0);

/// The best clock of this machine: the counter only where the kernel itself keeps time by it, which it does only if the
/// counter is constant and equal on all cores.
pub fn best_kind() -> ClockKind {
    let mut buf = [0u8; 16];
    let source = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match sys::read_file(source, &mut buf) {
        Ok(n) if cfg!(target_arch = "x86_64") && buf[..n].starts_with(b"tsc") => ClockKind::Tsc,
        _ => ClockKind::Monotonic,
    }
}

/// Does CLOCK_MONOTONIC cost a system call on this machine? The vdso can read these clock sources by itself, and no others.
pub fn is_slow() -> bool {
    let mut buf = [0u8; 32];
    let source = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
    let known: [&[u8]; 4] = [b"tsc\n", b"kvm-clock\n", b"hyperv_clocksource_tsc_page\n", b"arch_sys_counter\n"];
    sys::read_file(source, &mut buf).is_ok_and(|length| !known.contains(&&buf[..length]))
}

/// Chooses the clock of this process; `gettime` is used for [`monotonic`] when given.
pub fn set(kind: u32, gettime: Option<ClockGettime>) {
    let kind = if kind == ClockKind::Tsc as u32 { kind } else { ClockKind::Monotonic as u32 };
    SHARED.store(kind, Ordering::Relaxed);
    // What a thread has lost stays lost.
    if KIND.load(Ordering::Relaxed) != BY_THREAD {
        KIND.store(kind, Ordering::Relaxed);
    }
    CLOCK_GETTIME.store(gettime.map_or(0, |f| f as usize), Ordering::Relaxed);
}

/// For a program that has run before it records. One that starts has the counter: without it not even the loader would work.
pub fn look_for_counter() {
    if sys::counter_forbidden() {
        use_source(Source::Syscall);
    }
}

/// From now on the calling thread uses this source. Called before the thread loses the clock that it has used.
pub fn use_source(source: Source) {
    KIND.store(BY_THREAD, Ordering::Relaxed);
    thread::state().change_clock(source);
}

/// The calling thread's source.
pub(crate) fn source() -> Source {
    if KIND.load(Ordering::Relaxed) != BY_THREAD {
        return Source::Shared;
    }
    let thread = thread::state();
    match thread.clock() {
        // A thread is born with what its maker was forbidden.
        Source::Unknown => {
            let found = match process::unrestricted() {
                true if sys::counter_forbidden() => Source::Syscall,
                true => Source::Shared,
                false => Source::Coarse,
            };
            thread.change_clock(found);
            found
        }
        known => known,
    }
}

/// Ticks now.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if KIND.load(Ordering::Relaxed) == ClockKind::Tsc as u32 {
        // SAFETY: rdtsc is available on every x86-64 processor; a kernel that forbids it does not use it as clock source.
        return unsafe { core::arch::x86_64::_rdtsc() };
    }
    other_ticks()
}

#[cold]
#[inline(never)]
fn other_ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if SHARED.load(Ordering::Relaxed) == ClockKind::Tsc as u32 && source() == Source::Shared {
        // SAFETY: as in `ticks`; this thread was not forbidden it.
        return unsafe { core::arch::x86_64::_rdtsc() };
    }
    monotonic()
}

/// Ticks of the run's clock; 0 where the calling thread cannot read it.
pub fn shared_ticks() -> u64 {
    match source() {
        Source::Syscall | Source::Coarse if SHARED.load(Ordering::Relaxed) == ClockKind::Tsc as u32 => 0,
        _ => ticks(),
    }
}

/// CLOCK_MONOTONIC in nanoseconds. Out of line: where the counter is used, hooks should not carry this code.
#[cold]
#[inline(never)]
pub fn monotonic() -> u64 {
    read(libc::CLOCK_MONOTONIC)
}

/// Any clock, through the vdso when the front-end gave us the function.
pub fn read(id: libc::clockid_t) -> u64 {
    let function = CLOCK_GETTIME.load(Ordering::Relaxed);
    let id = match source() {
        Source::Syscall => return sys::clock(id),
        Source::Coarse if function == 0 => return 0,
        Source::Coarse if id == libc::CLOCK_REALTIME => libc::CLOCK_REALTIME_COARSE,
        Source::Coarse => libc::CLOCK_MONOTONIC_COARSE,
        Source::Shared | Source::Unknown if function == 0 => return sys::clock(id),
        Source::Shared | Source::Unknown => id,
    };
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: only `set` stores here, and only a `ClockGettime`; it writes one timespec.
    unsafe {
        let gettime = core::mem::transmute::<usize, ClockGettime>(function);
        gettime(id, &raw mut time);
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Ticks and CLOCK_MONOTONIC of the same instant.
pub fn anchor() -> (u64, u64) {
    closest(ticks, monotonic)
}

/// All clocks at the same instant.
#[derive(Clone, Copy, Debug)]
pub struct Readings {
    /// Ticks of the run's clock; 0 where the calling thread cannot read it.
    pub ticks: u64,
    /// CLOCK_MONOTONIC.
    pub monotonic: u64,
    /// CLOCK_REALTIME.
    pub realtime: u64,
    /// CLOCK_BOOTTIME.
    pub boottime: u64,
}

/// All clocks at the same instant.
pub fn readings() -> Readings {
    let (monotonic, (ticks, realtime, boottime)) =
        closest(monotonic, || (shared_ticks(), read(libc::CLOCK_REALTIME), read(libc::CLOCK_BOOTTIME)));
    Readings { ticks, monotonic, realtime, boottime }
}

/// Two clocks at the same instant: the closest of three tries, because a thread that loses its processor between two readings would skew them
/// (50 ms were seen on two busy cores, by which a whole trace was off).
fn closest<T>(mut outer: impl FnMut() -> u64, mut inner: impl FnMut() -> T) -> (u64, T) {
    let mut reading = || {
        let before = outer();
        let value = inner();
        let spread = outer().wrapping_sub(before);
        (spread, before.wrapping_add(spread / 2), value)
    };
    let mut best = reading();
    for _ in 1..3 {
        let next = reading();
        if next.0 < best.0 {
            best = next;
        }
    }
    (best.1, best.2)
}

#[cfg(test)]
mod tests {
    use core::cell::Cell;

    use super::closest;

    /// Whichever of the three tries are interrupted, as long as one is not: the clocks are read together.
    #[test]
    fn a_lost_processor_does_not_skew_a_reading() {
        for interrupted in 0..7 {
            let (now, tries) = (Cell::new(1_000_u64), Cell::new(0));
            let outer = || {
                now.set(now.get() + 20);
                now.get()
            };
            let inner = || {
                if interrupted >> tries.get() & 1 == 1 {
                    now.set(now.get() + 50_000_000);
                }
                tries.set(tries.get() + 1);
                now.get() + 7_000
            };
            let (one, other) = closest(outer, inner);
            assert!(other.abs_diff(one + 7_000) <= 20, "tries {interrupted:03b}: {one}, {other}");
        }
    }
}
