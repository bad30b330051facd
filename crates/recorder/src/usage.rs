//! CPU time and memory that a thread and its process have used so far.
//!
//! This takes four raw system calls and a small file, about three microseconds, so spans do it only on request.

use crate::annotation::Usage;
use crate::{process, sys};

unsafe extern "C" {
    fn getauxval(kind: u64) -> u64;
}

/// A reading of now; zeros where a seccomp filter may forbid to ask.
pub fn now() -> Usage {
    if !process::unrestricted() {
        return Usage::default();
    }
    Usage {
        thread: sys::clock(libc::CLOCK_THREAD_CPUTIME_ID),
        thread_user: sys::user_time(libc::RUSAGE_THREAD),
        process: sys::clock(libc::CLOCK_PROCESS_CPUTIME_ID),
        process_user: sys::user_time(libc::RUSAGE_SELF),
        rss: resident(),
    }
}

fn resident() -> u64 {
    let mut text = [0u8; 128];
    let Ok(length) = sys::read_file(c"/proc/self/statm", &mut text) else { return 0 };
    // SAFETY: reads a word that the kernel gave every process.
    resident_pages(&text[..length]) * unsafe { getauxval(libc::AT_PAGESZ) }
}

/// The second number of `/proc/PID/statm`.
fn resident_pages(text: &[u8]) -> u64 {
    let word = text.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
    word.iter().filter(|byte| byte.is_ascii_digit()).fold(0, |n, digit| n * 10 + u64::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read() {
        assert_eq!(resident_pages(b"2345 678 90 1 0 2 0\n"), 678);
        assert_eq!(resident_pages(b""), 0);
    }
}
