//! Children with thread storage of their own: `clone` with CLONE_SETTLS, as Chromium's sandbox makes them.
//!
//! Hooks keep their state in the thread storage of the C library, and in such a child the thread pointer leads elsewhere. Its
//! calls are passed through, not recorded, and counted. A base with a first word of zero is recognised at every call for two instructions
//! ([`weftline_recorder::thread::has_state`]); any other base is known only from the hook of `clone`. While such a child may live, all threads of
//! the process check their base at every call; otherwise none does.

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};

use weftline_recorder::{process, sys};

/// Children of this kind that may live at the same time; of more, those with a base that looks like the C library's are not recognised.
const PLACES: usize = 32;
static BASES: [AtomicUsize; PLACES] = [const { AtomicUsize::new(0) }; PLACES];
/// How many of them are taken.
static TAKEN: AtomicUsize = AtomicUsize::new(0);

/// A base that is being watched for.
pub(crate) struct Expected(Option<&'static AtomicUsize>);

/// A child is about to be made that will run on this base.
pub(crate) fn expect(base: *mut c_void) -> Expected {
    let free =
        |place: &&AtomicUsize| place.compare_exchange(0, base as usize, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    let place = if base.is_null() { None } else { BASES.iter().find(free) };
    if place.is_some() {
        TAKEN.fetch_add(1, Ordering::AcqRel);
    }
    Expected(place)
}

impl Expected {
    /// The child is gone, or never came.
    pub(crate) fn forget(self) {
        if let Some(place) = self.0 {
            place.store(0, Ordering::Release);
            TAKEN.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// May there be such children?
#[inline(always)]
pub(crate) fn any() -> bool {
    TAKEN.load(Ordering::Relaxed) != 0
}

/// Does the calling thread run on one of these bases?
pub(crate) fn here() -> bool {
    any() && base().is_some_and(|base| BASES.iter().any(|place| place.load(Ordering::Relaxed) == base))
}

/// The thread pointer; nothing where it would take a system call that may be forbidden.
#[cfg(target_arch = "x86_64")]
fn base() -> Option<usize> {
    const HAS_FSGSBASE: u64 = 2;
    const ARCH_GET_FS: usize = 0x1003;
    unsafe extern "C" {
        fn getauxval(kind: u64) -> u64;
    }
    // SAFETY: the kernel says that it lets programs use the instruction, which reads a register. Else it writes one word to a place of ours.
    unsafe {
        if getauxval(libc::AT_HWCAP2) & HAS_FSGSBASE != 0 {
            let base: usize;
            core::arch::asm!("rdfsbase {}", out(reg) base, options(nomem, nostack, preserves_flags));
            return Some(base);
        }
        let mut base = 0usize;
        let asked = process::unrestricted()
            .then(|| sys::syscall(libc::SYS_arch_prctl, [ARCH_GET_FS, (&raw mut base) as usize, 0, 0, 0, 0]));
        asked.is_some_and(|asked| asked.is_ok()).then_some(base)
    }
}

#[cfg(target_arch = "aarch64")]
fn base() -> Option<usize> {
    let base: usize;
    // SAFETY: reads a register.
    unsafe { core::arch::asm!("mrs {}, tpidr_el0", out(reg) base, options(nomem, nostack, preserves_flags)) };
    Some(base)
}
