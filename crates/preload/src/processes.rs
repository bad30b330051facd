//! Hooks of calls that make, replace and end processes.
//!
//! An exec that succeeds does not return, so its record is stored before the call and corrected in place when it failed.

use core::ffi::{CStr, c_char, c_int, c_void};

use libc::pid_t;
use weftline_calls::Call;
use weftline_recorder::elf::Verdict;
use weftline_recorder::layout::{Record, unseen_io};
use weftline_recorder::thread::{self, Fields};
use weftline_recorder::{clock, process, sys};

use crate::hooks::real;
use crate::{environment, errno, files, life};

#[unsafe(no_mangle)]
unsafe extern "C" fn fork() -> pid_t {
    let real = real!(fork() -> pid_t);
    if !life::traced() {
        // SAFETY: takes no arguments.
        return unsafe { real() };
    }
    process::before_fork();
    let start = clock::ticks();
    // SAFETY: takes no arguments.
    let child = unsafe { real() };
    if child == 0 {
        process::forked();
        files::forked(true);
    } else {
        process::after_fork_in_parent(child);
        files::forked(false);
        record_child(Call::fork, start, child);
    }
    child
}

fn record_child(call: Call, start: u64, child: pid_t) {
    let ret = if child < 0 { -i64::from(errno::get()) } else { i64::from(child) };
    thread::record(call, start, clock::ticks(), &Fields { ret, ..Fields::NONE });
}

/// The child of a `vfork` runs on its parent's stack until it execs or exits, so it would destroy the frame of an ordinary
/// hook. This one keeps the return address in a register, which each of the two has for itself.
#[cfg(target_arch = "x86_64")]
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn vfork() -> pid_t {
    core::arch::naked_asm!(
        "sub rsp, 8",
        "call {before}",
        "add rsp, 8",
        "pop rdi",
        "mov eax, {number}",
        "syscall",
        "push rdi",
        "test rax, rax",
        "jz 2f",
        "sub rsp, 8",
        "mov rdi, rax",
        "call {after}",
        "add rsp, 8",
        "2:",
        "ret",
        before = sym before_vfork,
        after = sym after_vfork,
        number = const libc::SYS_vfork,
    )
}

#[cfg(target_arch = "x86_64")]
extern "C" fn before_vfork() {
    if life::own_thread() {
        thread::state().enter_vfork();
    }
}

/// Runs in the parent only. `ret` is the kernel's answer.
#[cfg(target_arch = "x86_64")]
extern "C" fn after_vfork(ret: i64) -> pid_t {
    let start = if life::own_thread() { thread::state().leave_vfork() } else { 0 };
    if life::traced() {
        thread::record(Call::vfork, start, clock::ticks(), &Fields { ret, ..Fields::NONE });
    }
    if ret < 0 {
        errno::set(-ret as i32);
        return -1;
    }
    ret as pid_t
}

type CloneStart = extern "C" fn(*mut c_void) -> c_int;

#[unsafe(no_mangle)]
unsafe extern "C" fn clone(
    run: CloneStart,
    stack: *mut c_void,
    flags: c_int,
    arg: *mut c_void,
    parent_tid: *mut c_void,
    tls: *mut c_void,
    child_tid: *mut c_void,
) -> c_int {
    let real =
        real!(clone(CloneStart, *mut c_void, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_void) -> c_int);
    if !life::traced() {
        // SAFETY: the program's own arguments; those that it did not give are read by nobody.
        return unsafe { real(run, stack, flags, arg, parent_tid, tls, child_tid) };
    }
    if flags & libc::CLONE_NEWPID != 0 {
        process::namespace_changed();
    }
    let shares_memory = flags & libc::CLONE_VM != 0 && flags & libc::CLONE_THREAD == 0;
    let suspends = shares_memory && flags & libc::CLONE_VFORK != 0;
    if shares_memory {
        process::note_unseen_io(unseen_io::SHARED_MEMORY);
    }
    if suspends {
        thread::state().enter_vfork();
    }
    let start = clock::ticks();
    // SAFETY: as above.
    let make = || unsafe { real(run, stack, flags, arg, parent_tid, tls, child_tid) };
    // The C library's own threads are not made by this function: whoever passes a base has made it up.
    let child = match flags & libc::CLONE_SETTLS {
        0 => make(),
        // Chromium's changes the root directory of its parent.
        _ => {
            process::prepare_for_sandbox();
            life::with_foreign_child(tls, suspends, make)
        }
    };
    if suspends {
        thread::state().leave_vfork();
    }
    record_child(Call::clone, start, child);
    child
}

/// An exec under way: the record that stands in the trace if it succeeds.
struct Exec {
    record: Option<*mut Record>,
}

impl Exec {
    fn begin(call: Call, path: u32, verdict: Verdict) -> Exec {
        let now = clock::ticks();
        let record = thread::record(call, now, now, &Fields { path, detail: verdict as u32, ..Fields::NONE });
        process::before_exec(verdict as u32, path);
        Exec { record }
    }

    /// The call came back, so it failed.
    fn failed(self) {
        let error = errno::get();
        process::exec_failed();
        if let Some(record) = self.record {
            // SAFETY: our own record in our current segment; nobody reads a segment that is being written.
            unsafe {
                (*record).end = clock::ticks();
                (*record).ret = -i64::from(error);
            }
        }
        errno::set(error);
    }
}

/// Runs an exec function on an environment that suits the target.
///
/// # Safety
/// `path` must be a C string or null, `environment` a null-terminated array or null.
unsafe fn exec(
    call: Call,
    path: *const c_char,
    search: bool,
    environment: *const *const c_char,
    run: impl FnOnce(*const *const c_char) -> c_int,
) -> c_int {
    if !life::traced() || path.is_null() {
        return run(environment);
    }
    // SAFETY: the caller vouches for the string; exec itself will read it.
    let name = unsafe { CStr::from_ptr(path) };
    let id = program_id(name, search);
    let verdict = foresee(name, search);
    let under_way = Exec::begin(call, id, verdict);
    // SAFETY: the caller vouches for the array.
    let ret = unsafe { environment::with_environment(environment, verdict, run) };
    under_way.failed();
    ret
}

/// What will become of the program; where the next image decides for itself whether it is traced, there is nothing to say.
fn foresee(name: &CStr, search: bool) -> Verdict {
    match (life::follows_children(), search) {
        (false, _) => Verdict::Traceable,
        (true, true) => search_path(name),
        (true, false) => environment::verdict(name),
    }
}

/// Name id of a program; one that is searched for along PATH is not in the working directory.
fn program_id(name: &CStr, search: bool) -> u32 {
    if search && !name.to_bytes().contains(&b'/') {
        return process::intern(0, name.to_bytes());
    }
    // SAFETY: a C string of the program's.
    unsafe { files::path(libc::AT_FDCWD, name.as_ptr()) }
}

/// Looks along PATH the way `execvp` does, only to see what it will find.
fn search_path(name: &CStr) -> Verdict {
    if name.to_bytes().contains(&b'/') {
        return environment::verdict(name);
    }
    // SAFETY: the process's own environment.
    let path = unsafe { process::variable(life::environment(), "PATH") }.unwrap_or(b"/bin:/usr/bin");
    for directory in path.split(|byte| *byte == b':') {
        let mut full = [0u8; 4096];
        let name = name.to_bytes();
        if directory.len() + name.len() + 2 > full.len() {
            continue;
        }
        let mut at = 0;
        for part in [directory, if directory.is_empty() { b"" } else { b"/" }, name] {
            full[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        if let Ok(candidate) = CStr::from_bytes_until_nul(&full)
            && sys::accessible(candidate, libc::X_OK)
        {
            return environment::verdict(candidate);
        }
    }
    Verdict::Traceable
}

type Strings = *const *const c_char;

/// Hooks below that call another real function than their own, and which (with its NUL).
pub(crate) const CALLED_INSTEAD: &[(&str, &str)] = &[
    ("execv", "execve\0"),
    ("execl", "execve\0"),
    ("execle", "execve\0"),
    ("execvp", "execvpe\0"),
    ("execlp", "execvpe\0"),
];

#[unsafe(no_mangle)]
unsafe extern "C" fn execve(path: *const c_char, argv: Strings, environment: Strings) -> c_int {
    let real = real!(execve(*const c_char, Strings, Strings) -> c_int);
    // SAFETY: the program's own arguments, with an environment of the same form.
    unsafe { exec(Call::execve, path, false, environment, |environment| real(path, argv, environment)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execv(path: *const c_char, argv: Strings) -> c_int {
    let real = real!(execve(*const c_char, Strings, Strings) -> c_int);
    // SAFETY: as above; execv passes on the process's environment.
    unsafe { exec(Call::execv, path, false, life::environment(), |environment| real(path, argv, environment)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execvp(path: *const c_char, argv: Strings) -> c_int {
    let real = real!(execvpe(*const c_char, Strings, Strings) -> c_int);
    // SAFETY: as above.
    unsafe { exec(Call::execvp, path, true, life::environment(), |environment| real(path, argv, environment)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execvpe(path: *const c_char, argv: Strings, environment: Strings) -> c_int {
    let real = real!(execvpe(*const c_char, Strings, Strings) -> c_int);
    // SAFETY: as above.
    unsafe { exec(Call::execvpe, path, true, environment, |environment| real(path, argv, environment)) }
}

/// `execl`, `execlp` and `execle` after the shim has made an array of their arguments.
#[unsafe(no_mangle)]
unsafe extern "C" fn weft_execl(which: c_int, path: *const c_char, argv: Strings, environment: Strings) -> c_int {
    const EXECLP: c_int = 1;
    const EXECLE: c_int = 2;
    let (direct, search) = (
        real!(execve(*const c_char, Strings, Strings) -> c_int),
        real!(execvpe(*const c_char, Strings, Strings) -> c_int),
    );
    // SAFETY: as above.
    unsafe {
        match which {
            EXECLP => {
                exec(Call::execlp, path, true, life::environment(), |environment| search(path, argv, environment))
            }
            EXECLE => exec(Call::execle, path, false, environment, |environment| direct(path, argv, environment)),
            _ => exec(Call::execl, path, false, life::environment(), |environment| direct(path, argv, environment)),
        }
    }
}

/// `/proc/self/fd/N`, where a program given by descriptor can be looked at.
fn descriptor_path(fd: c_int) -> [u8; 40] {
    let mut path = [0u8; 40];
    let mut digits = [0u8; 20];
    let digits = sys::decimal(fd.max(0) as u64, &mut digits);
    path[..14].copy_from_slice(b"/proc/self/fd/");
    path[14..14 + digits.len()].copy_from_slice(digits);
    path
}

#[unsafe(no_mangle)]
unsafe extern "C" fn fexecve(fd: c_int, argv: Strings, environment: Strings) -> c_int {
    let real = real!(fexecve(c_int, Strings, Strings) -> c_int);
    let path = descriptor_path(fd);
    // SAFETY: the path is a C string of our own; the rest as above.
    unsafe { exec(Call::fexecve, path.as_ptr().cast(), false, environment, |environment| real(fd, argv, environment)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn execveat(
    directory: c_int,
    path: *const c_char,
    argv: Strings,
    environment: Strings,
    flags: c_int,
) -> c_int {
    let real = real!(execveat(c_int, *const c_char, Strings, Strings, c_int) -> c_int);
    // SAFETY: the program passes a C string or null.
    let by_descriptor = path.is_null() || unsafe { *path == 0 };
    let own = descriptor_path(directory);
    // A path relative to a directory descriptor is looked at as if it were relative to the working directory: at worst the
    // file is not found there and the loader decides.
    let shown = if by_descriptor { own.as_ptr().cast() } else { path };
    // SAFETY: as above.
    unsafe {
        exec(Call::execveat, shown, false, environment, |environment| real(directory, path, argv, environment, flags))
    }
}

type Spawn = unsafe extern "C" fn(*mut pid_t, *const c_char, *const c_void, *const c_void, Strings, Strings) -> c_int;

/// # Safety
/// As for `posix_spawn`.
unsafe fn spawn(
    call: Call,
    real: Spawn,
    search: bool,
    (pid, path, actions, attributes, argv, environment): (
        *mut pid_t,
        *const c_char,
        *const c_void,
        *const c_void,
        Strings,
        Strings,
    ),
) -> c_int {
    if !life::traced() || path.is_null() {
        // SAFETY: the program's own arguments.
        return unsafe { real(pid, path, actions, attributes, argv, environment) };
    }
    // SAFETY: posix_spawn will read the same string; `pid` may be null, so a place of our own receives it.
    unsafe {
        let name = CStr::from_ptr(path);
        let verdict = foresee(name, search);
        let mut child: pid_t = 0;
        let start = clock::ticks();
        let ret = environment::with_environment(environment, verdict, |environment| {
            real(&raw mut child, path, actions, attributes, argv, environment)
        });
        let end = clock::ticks();
        if ret == 0 && !pid.is_null() {
            *pid = child;
        }
        let result = if ret == 0 { i64::from(child) } else { -i64::from(ret) };
        let id = program_id(name, search);
        thread::record(call, start, end, &Fields { path: id, ret: result, detail: verdict as u32, ..Fields::NONE });
        ret
    }
}

macro_rules! spawns {
    ($($name:ident, search: $search:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(
            pid: *mut pid_t,
            path: *const c_char,
            actions: *const c_void,
            attributes: *const c_void,
            argv: Strings,
            environment: Strings,
        ) -> c_int {
            let real = real!($name(*mut pid_t, *const c_char, *const c_void, *const c_void, Strings, Strings) -> c_int);
            // SAFETY: the program's own arguments.
            unsafe { spawn(Call::$name, real, $search, (pid, path, actions, attributes, argv, environment)) }
        }
    )* };
}

spawns! {
    posix_spawn, search: false;
    posix_spawnp, search: true;
}

macro_rules! exits {
    ($($name:ident => $announce:expr;)*) => { $(
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name(status: c_int) -> ! {
            let real = real!($name(c_int) -> !);
            $announce(status);
            // SAFETY: the program's own argument; the function does not return.
            unsafe { real(status) }
        }
    )* };
}

exits! {
    _exit => life::ends_suddenly;
    _Exit => life::ends_suddenly;
    quick_exit => life::ends_suddenly;
    exit => life::exit_called;
}
