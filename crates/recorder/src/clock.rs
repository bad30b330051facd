//! The clock of records: the time-stamp counter where the kernel trusts it, else CLOCK_MONOTONIC.
//!
//! Records hold raw ticks. The drain turns them into nanoseconds by anchors, pairs of (ticks, CLOCK_MONOTONIC) that every
//! segment carries and that the supervisor takes once a second: piece by piece, so that a clock which NTP slews for a
//! week does not bend the trace. Measured here: rdtsc 10 ns, clock_gettime through the vdso 24 ns, as a system call 268 ns.

use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::sys;

/// Which clock `Record::start` and `end` count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// The processor's time-stamp counter.
    Tsc = 1,
    /// Nanoseconds of CLOCK_MONOTONIC.
    Monotonic = 2,
}

/// `clock_gettime`, as the C library exports it.
pub type ClockGettime = unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> libc::c_int;

static KIND: AtomicU32 = AtomicU32::new(Kind::Monotonic as u32);
static CLOCK_GETTIME: AtomicUsize = AtomicUsize::new(0);

/// The best clock of this machine: the counter only where the kernel itself keeps time by it, which it does only if the
/// counter is constant and equal on all cores.
pub fn best_kind() -> Kind {
    let mut buf = [0u8; 16];
    let source = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match sys::read_file(source, &mut buf) {
        Ok(n) if cfg!(target_arch = "x86_64") && buf[..n].starts_with(b"tsc") => Kind::Tsc,
        _ => Kind::Monotonic,
    }
}

/// Chooses the clock of this process; `gettime` is used for [`monotonic`] when given.
pub fn set(kind: u32, gettime: Option<ClockGettime>) {
    KIND.store(if kind == Kind::Tsc as u32 { kind } else { Kind::Monotonic as u32 }, Ordering::Relaxed);
    CLOCK_GETTIME.store(gettime.map_or(0, |f| f as usize), Ordering::Relaxed);
}

/// Ticks now.
#[inline(always)]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    if KIND.load(Ordering::Relaxed) == Kind::Tsc as u32 {
        // SAFETY: rdtsc is available on every x86-64 processor; a kernel that forbids it does not use it as clock source.
        return unsafe { core::arch::x86_64::_rdtsc() };
    }
    monotonic()
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
    if function == 0 {
        return sys::clock(id);
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: only `set` stores here, and only a `ClockGettime`; it writes one timespec.
    unsafe {
        let gettime = core::mem::transmute::<usize, ClockGettime>(function);
        gettime(id, &raw mut time);
    }
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Ticks and CLOCK_MONOTONIC of the same moment: the closest of three tries, since a preemption in between would skew it.
pub fn anchor() -> (u64, u64) {
    let mut best = (0, 0);
    let mut spread = u64::MAX;
    for _ in 0..3 {
        let before = ticks();
        let mono = monotonic();
        let after = ticks();
        if after.wrapping_sub(before) < spread {
            spread = after.wrapping_sub(before);
            best = (before + spread / 2, mono);
        }
    }
    best
}
