//! Asks the scheduler for short slices for the sampling thread, so that it runs sooner.
//!
//! Since Linux 6.12 a thread may choose its own slice: how long it may run before others do. A thread with a short slice has an earlier
//! deadline, and when it wakes up it may preempt a thread with a longer one. It does not get more time than before,
//! and needs no privilege. Older kernels accept the call and change nothing.
#![allow(unsafe_code, reason = "two system calls that neither rustix nor nix has")]

use rustix::process::getpriority_process;

/// The shortest slice that the kernel takes. A tick of few processes needs less.
const SLICE_NS: u64 = 100_000;

/// Linux's `struct sched_attr` in its first version.
#[repr(C)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    /// The slice, for policies without real time.
    runtime: u64,
    deadline: u64,
    period: u64,
}

impl Attributes {
    /// Linux's `SCHED_FLAG_RESET_ON_FORK`: what this thread starts (`nvidia-smi`) is scheduled as if nothing had been asked for. The kernel
    /// takes it only together with a policy.
    const RESET_ON_FORK: u64 = 0x01;
}

/// Asks for a short slice for the calling thread and nobody else; whether the kernel took it. One that refuses leaves all as it was.
pub(crate) fn prefer_promptness() -> bool {
    // SAFETY: it takes a number and gives one; 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    if policy != libc::SCHED_OTHER {
        // Somebody has chosen another one for us.
        return false;
    }
    // The call sets all of them: the niceness is to stay what it is.
    let Ok(nice) = getpriority_process(None) else { return false };
    let attributes = Attributes {
        size: size_of::<Attributes>() as u32,
        policy: policy.cast_unsigned(),
        flags: Attributes::RESET_ON_FORK,
        nice,
        priority: 0,
        runtime: SLICE_NS,
        deadline: 0,
        period: 0,
    };
    // SAFETY: the kernel reads `size` bytes of a structure that outlives the call; 0 is the calling thread, and there are no flags.
    unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number of this thread in the kernel's own words; none on kernels that were built without them or have no slices of one's own.
    fn scheduled(key: &str) -> Option<u64> {
        let text = std::fs::read_to_string("/proc/thread-self/sched").ok()?;
        let line = text.lines().find(|line| line.split_whitespace().next() == Some(key))?;
        line.rsplit(char::is_whitespace).next()?.parse().ok()
    }

    #[test]
    fn only_the_calling_thread_has_a_short_slice() {
        let before = scheduled("se.slice");
        let of_thread = move || {
            let nice = getpriority_process(None).expect("a niceness");
            let taken = prefer_promptness();
            let own = scheduled("se.slice");
            assert!(own == before || taken && own == Some(SLICE_NS), "taken, or a kernel that takes none: {own:?}");
            assert_eq!(getpriority_process(None).expect("a niceness"), nice);
            let child = std::thread::spawn(|| scheduled("se.slice")).join().expect("no panic");
            assert_eq!(child, before, "not inherited");
        };
        std::thread::spawn(of_thread).join().expect("no panic");
        assert_eq!(scheduled("se.slice"), before);
    }
}
