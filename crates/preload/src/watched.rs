//! Hooks of calls without an event of their own. They show what the process may still do, which namespace its children
//! will be in, the names of its threads, and which I/O no hook will see.

use core::ffi::{c_char, c_int, c_long, c_uint};

use weftline_calls::Call;
use weftline_recorder::layout::unseen_io;
use weftline_recorder::thread::{self, Fields};
use weftline_recorder::{clock, process};

use crate::hooks::real;
use crate::{files, life};

#[unsafe(no_mangle)]
unsafe extern "C" fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    let real = real!(prctl(c_int, usize, usize, usize, usize) -> c_int);
    let known = life::traced();
    if known {
        before_prctl(option, a);
    }
    // SAFETY: the program's own arguments; those that it did not give are read by nobody.
    let ret = unsafe { real(option, a, b, c, d) };
    if known {
        after_prctl(option, a, ret);
    }
    ret
}

/// What a call of `prctl` forbids, the recorder must not do from before the call.
fn before_prctl(option: c_int, a: usize) {
    match option {
        libc::PR_SET_SECCOMP => {
            if a == libc::SECCOMP_MODE_STRICT as usize {
                clock::use_source(clock::Source::Coarse);
            }
            process::restrict();
        }
        libc::PR_SET_TSC if a == libc::PR_TSC_SIGSEGV as usize => clock::use_source(clock::Source::Syscall),
        _ => {}
    }
}

fn after_prctl(option: c_int, a: usize, ret: c_int) {
    match option {
        libc::PR_SET_SECCOMP if ret != 0 => process::restriction_failed(),
        _ if ret != 0 => {}
        libc::PR_SET_TSC if a == libc::PR_TSC_ENABLE as usize && process::unrestricted() => {
            clock::use_source(clock::Source::Shared);
        }
        // SAFETY: the kernel has read the text.
        libc::PR_SET_NAME => unsafe { note_name(thread::state().tid(), a as *const c_char) },
        _ => {}
    }
}

/// Longest name that the kernel keeps.
const NAME_LENGTH: usize = 15;

/// A thread has a name now; the main thread's is the process's.
///
/// # Safety
/// `name` must be readable up to a NUL or [`NAME_LENGTH`] bytes.
unsafe fn note_name(tid: u32, name: *const c_char) {
    if thread::state().in_vfork() {
        return;
    }
    let mut text = [0u8; NAME_LENGTH];
    let mut length = 0;
    while length < NAME_LENGTH {
        // SAFETY: the caller vouches for every byte up to the first NUL.
        match unsafe { *name.add(length) } {
            0 => break,
            byte => text[length] = byte as u8,
        }
        length += 1;
    }
    let path = process::intern(0, &text[..length]);
    let now = clock::ticks();
    thread::record(Call::thread_name, now, now, &Fields { path, fd: tid as i32, ..Fields::NONE });
    if process::pid() == tid {
        process::set_own_name(path);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn pthread_setname_np(thread: usize, name: *const c_char) -> c_int {
    let real = real!(pthread_setname_np(usize, *const c_char) -> c_int);
    // SAFETY: the program's own arguments.
    let ret = unsafe { real(thread, name) };
    if ret == 0 && life::traced() {
        // SAFETY: the C library has just used both.
        unsafe {
            let tid = thread::id_of(thread);
            note_name(if tid == 0 { thread::state().tid() } else { tid }, name);
        }
    }
    ret
}

#[unsafe(no_mangle)]
unsafe extern "C" fn unshare(flags: c_int) -> c_int {
    let real = real!(unshare(c_int) -> c_int);
    if life::traced() {
        process::prepare_for_sandbox();
    }
    process::namespace_changed();
    // SAFETY: the program's own argument.
    unsafe { real(flags) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn setns(fd: c_int, kind: c_int) -> c_int {
    let real = real!(setns(c_int, c_int) -> c_int);
    if life::traced() {
        process::prepare_for_sandbox();
    }
    process::namespace_changed();
    // SAFETY: the program's own arguments.
    unsafe { real(fd, kind) }
}

/// Of `seccomp(2)`; the libc crate does not have them for all targets.
const SECCOMP_SET_MODE_STRICT: usize = 0;
const SECCOMP_SET_MODE_FILTER: usize = 1;
const SECCOMP_FILTER_FLAG_TSYNC: usize = 1;

/// `syscall(2)` passes up to six words through; a few numbers tell us something.
#[unsafe(no_mangle)]
unsafe extern "C" fn syscall(number: c_long, a: usize, b: usize, c: usize, d: usize, e: usize, f: usize) -> c_long {
    let real = real!(syscall(c_long, usize, usize, usize, usize, usize, usize) -> c_long);
    if !life::own_thread() {
        // SAFETY: the program's own words.
        return unsafe { real(number, a, b, c, d, e, f) };
    }
    // Also reported by `prctl`: its option and first argument.
    let request = match (number, a) {
        (libc::SYS_prctl, option) => Some((option as c_int, b)),
        (libc::SYS_seccomp, SECCOMP_SET_MODE_STRICT) => {
            Some((libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_STRICT as usize))
        }
        (libc::SYS_seccomp, SECCOMP_SET_MODE_FILTER) => {
            Some((libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER as usize))
        }
        _ => None,
    };
    if let Some((option, argument)) = request.filter(|_| life::traced()) {
        before_prctl(option, argument);
        // SAFETY: the program's own words.
        let ret = unsafe { real(number, a, b, c, d, e, f) };
        // With a flag of its own the call returns a descriptor, or the thread that hindered it.
        let failed = ret < 0 || (ret > 0 && number == libc::SYS_seccomp && b & SECCOMP_FILTER_FLAG_TSYNC != 0);
        after_prctl(option, argument, if failed { -1 } else { 0 });
        return ret;
    }
    match number {
        libc::SYS_io_uring_setup => process::note_unseen_io(unseen_io::IO_URING),
        libc::SYS_io_setup => process::note_unseen_io(unseen_io::NATIVE_AIO),
        libc::SYS_clone if a & libc::CLONE_NEWPID as usize != 0 => process::namespace_changed(),
        // Its flags are behind a pointer that has not been checked yet.
        libc::SYS_clone3 => process::namespace_changed(),
        libc::SYS_close => {
            files::closing(a as c_int);
        }
        libc::SYS_close_range if c & 4 == 0 => files::closing_range(a as c_uint, b as c_uint),
        libc::SYS_read
        | libc::SYS_write
        | libc::SYS_pread64
        | libc::SYS_pwrite64
        | libc::SYS_readv
        | libc::SYS_writev
        | libc::SYS_openat => process::note_unseen_io(unseen_io::RAW_SYSCALLS),
        libc::SYS_exit_group => life::ends_suddenly(a as c_int),
        _ => {}
    }
    // SAFETY: the program's own words; those that it did not give are read by nobody.
    unsafe { real(number, a, b, c, d, e, f) }
}
