//! The unsafe code of this crate: calls through the recorder's table, `atexit`, and running a program where only
//! system calls are allowed.
//!
//! A process that ends by `_exit` runs no exit handlers, and may do so from a signal handler or with locks held. Then this module
//! starts a child that executes the command line of [`prepare`], and waits for it. The child shares this process's memory until it
//! executes (as with `vfork`, so that its cost does not grow with the program). It calls no function of the C library,
//! since those are hooked.
//!
//! After an interrupt (Ctrl-C, `kill`, the end of a job) the next session could finish the trace. But users of other tracers
//! expect the file at once, so [`take_interrupts`] finishes it.

use std::ffi::{CString, OsString, c_char, c_int};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use weftline_recorder::sys;
use weftline_recorder::table::Table;

/// Starts the recorder on a live directory.
pub(crate) fn start(table: &Table, live: &Path) -> bool {
    let path = live.as_os_str().as_bytes();
    // SAFETY: a path of the length given.
    unsafe { (table.start)(path.as_ptr(), path.len()) == 0 }
}

/// Lets the C library call `then` at `exit`, once however often this is asked. Should it have no room for that, the trace is
/// finished by whoever finds it.
pub(crate) fn call_at_exit(then: extern "C" fn()) {
    static ASKED: AtomicBool = AtomicBool::new(false);
    if !ASKED.swap(true, Ordering::AcqRel) {
        // SAFETY: a function without arguments in a library that is never unloaded.
        unsafe { libc::atexit(then) };
    }
}

/// Writes a line to stderr. Not by `std`: its lock may belong to a thread that a fork left behind in the parent.
pub(crate) fn say(line: &str) {
    let text = format!("weftline: {line}\n");
    // SAFETY: a text of the length given. There is nobody left to tell when stderr is closed.
    let _ = unsafe { sys::syscall(libc::SYS_write, [2, text.as_ptr() as usize, text.len(), 0, 0, 0]) };
}

/// What to do at a sudden end: a recorder to stop, and a command line in the form that `execve` takes.
struct Prepared {
    table: &'static Table,
    program: CString,
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
    /// What the pointers point at.
    _texts: Vec<CString>,
    _earlier: *mut Prepared,
}

static PREPARED: AtomicPtr<Prepared> = AtomicPtr::new(std::ptr::null_mut());
/// The newest one that was ever made. All are reached from it, so that memory checkers know them.
static KEPT: AtomicPtr<Prepared> = AtomicPtr::new(std::ptr::null_mut());

/// Makes a command ready for [`run_prepared`]. What was ready before is never freed: a thread that is ending may be using it.
pub(crate) fn prepare(
    table: &'static Table,
    program: &Path,
    arguments: &[OsString],
    environment: impl Iterator<Item = (OsString, OsString)>,
) {
    let text = |bytes: Vec<u8>| CString::new(bytes).ok();
    let Some(program) = text(program.as_os_str().as_bytes().to_vec()) else { return };
    let given: Vec<CString> = arguments.iter().filter_map(|word| text(word.as_bytes().to_vec())).collect();
    let variables: Vec<CString> =
        environment.filter_map(|(name, value)| text([name.into_vec(), value.into_vec()].join(&b'='))).collect();
    let null = std::ptr::null();
    let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).chain([null]).collect::<Vec<_>>();
    let mut words = vec![program.as_ptr()];
    words.extend(pointers(&given));
    let prepared = Prepared {
        table,
        program,
        arguments: words,
        environment: pointers(&variables),
        _texts: given.into_iter().chain(variables).collect(),
        _earlier: KEPT.load(Ordering::Acquire),
    };
    let made = Box::into_raw(Box::new(prepared));
    KEPT.store(made, Ordering::Release);
    PREPARED.store(made, Ordering::Release);
}

/// Nothing more has to be run.
pub(crate) fn unprepare() {
    PREPARED.store(std::ptr::null_mut(), Ordering::Release);
}

/// Stops the recorder, runs what was prepared and waits for it. Async-signal-safe; does nothing when nothing was prepared or no child
/// can be made.
pub(crate) fn run_prepared(status: c_int) {
    // SAFETY: null, or a box that is never freed.
    let Some(command) = (unsafe { PREPARED.load(Ordering::Acquire).as_ref() }) else { return };
    // Other threads run on while the command reads what they have recorded.
    (command.table.stop)(status);
    let (all, mut before) = (u64::MAX, 0u64);
    let set = |mask: *const u64, old: *mut u64| {
        // SAFETY: masks of eight bytes; a signal handler in the child would run in this process's memory, so none may.
        let _ = unsafe {
            let how = libc::SIG_SETMASK as usize;
            sys::syscall(libc::SYS_rt_sigprocmask, [how, mask as usize, old as usize, 8, 0, 0])
        };
    };
    set(&raw const all, &raw mut before);
    // SAFETY: all signals are blocked, and the command's arrays end with null and live for ever.
    if let Ok(child) = unsafe { spawn(command) } {
        let options = libc::__WALL as usize;
        // SAFETY: waits for a child of this thread, without looking at how it ended.
        while unsafe { sys::syscall(libc::SYS_wait4, [child, 0, options, 0, 0, 0]) } == Err(libc::EINTR) {}
    }
    set(&raw const before, std::ptr::null_mut());
}

/// The signals by which people and batch systems end a program.
const INTERRUPTS: [c_int; 3] = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];

/// Publishes before the process dies of the signal, as it would have.
extern "C" fn interrupted(signal: c_int) {
    run_prepared(-1);
    let default = [0usize; 4];
    let number = signal as usize;
    // SAFETY: a disposition of zeros is the default one; the signal is blocked until this returns, and then ends the process.
    unsafe {
        let _ = sys::syscall(libc::SYS_rt_sigaction, [number, default.as_ptr() as usize, 0, 8, 0, 0]);
        let _ = sys::syscall(libc::SYS_tgkill, [sys::getpid() as usize, sys::gettid() as usize, number, 0, 0, 0]);
    }
}

fn disposition(signal: c_int) -> Option<libc::sigaction> {
    let mut now = std::mem::MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: room for what is asked.
    unsafe { (libc::sigaction(signal, std::ptr::null(), now.as_mut_ptr()) == 0).then(|| now.assume_init()) }
}

fn dispose(signal: c_int, handler: libc::sighandler_t) {
    // SAFETY: a disposition of zeros is a valid one, the mask is emptied, and the handler only makes system calls.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler;
        action.sa_flags = libc::SA_ONSTACK | libc::SA_RESTART;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(signal, &raw const action, std::ptr::null_mut());
    }
}

fn own_handler() -> libc::sighandler_t {
    interrupted as extern "C" fn(c_int) as libc::sighandler_t
}

/// Lets [`INTERRUPTS`] run what was prepared before they end the process. Whatever anybody else wants of a signal, to ignore it included, stays.
pub(crate) fn take_interrupts() {
    for signal in INTERRUPTS {
        if disposition(signal).is_some_and(|now| now.sa_sigaction == libc::SIG_DFL) {
            dispose(signal, own_handler());
        }
    }
}

/// Takes that back, where it still holds.
pub(crate) fn leave_interrupts() {
    for signal in INTERRUPTS {
        if disposition(signal).is_some_and(|now| now.sa_sigaction == own_handler()) {
            dispose(signal, libc::SIG_DFL);
        }
    }
}

/// A child that executes the command; its pid.
///
/// # Safety
/// All signals must be blocked.
#[cfg(target_arch = "x86_64")]
unsafe fn spawn(command: &Prepared) -> sys::SysResult {
    let child: isize;
    // SAFETY: the child shares stack and memory but touches neither: it makes two system calls from registers, and this
    // thread sleeps until the first of them is done. rcx and r11 are what `syscall` clobbers.
    unsafe {
        std::arch::asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "mov rdi, r12",
            "mov rsi, r13",
            "mov rdx, r14",
            "mov eax, {execve}",
            "syscall",
            "mov edi, 127",
            "mov eax, {exit}",
            "syscall",
            "2:",
            execve = const libc::SYS_execve,
            exit = const libc::SYS_exit,
            inlateout("rax") libc::SYS_clone as isize => child,
            inlateout("rdi") (libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD) as usize => _,
            inlateout("rsi") 0usize => _,
            inlateout("rdx") 0usize => _,
            in("r10") 0usize,
            in("r8") 0usize,
            in("r12") command.program.as_ptr(),
            in("r13") command.arguments.as_ptr(),
            in("r14") command.environment.as_ptr(),
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    if child < 0 { Err(-child as c_int) } else { Ok(child as usize) }
}

/// The same with a copy of the process's memory.
///
/// # Safety
/// All signals must be blocked.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn spawn(command: &Prepared) -> sys::SysResult {
    // SAFETY: a child as `fork` makes it.
    let child = unsafe { sys::syscall(libc::SYS_clone, [libc::SIGCHLD as usize, 0, 0, 0, 0, 0]) }?;
    if child == 0 {
        let (words, variables) = (command.arguments.as_ptr() as usize, command.environment.as_ptr() as usize);
        // SAFETY: a path and two arrays that end with null; the child ends where the execution fails.
        unsafe {
            let _ = sys::syscall(libc::SYS_execve, [command.program.as_ptr() as usize, words, variables, 0, 0, 0]);
            loop {
                let _ = sys::syscall(libc::SYS_exit, [127, 0, 0, 0, 0, 0]);
            }
        }
    }
    Ok(child)
}

#[cfg(test)]
mod tests {
    use weftline_recorder::table;

    use super::*;

    /// Handlers are installed only for signals without one, and removed only if they are still ours.
    #[test]
    fn signals_of_others_are_left_alone() {
        let is = |signal: c_int, handler: libc::sighandler_t| {
            assert_eq!(disposition(signal).map(|now| now.sa_sigaction), Some(handler), "{signal}");
        };
        dispose(libc::SIGINT, libc::SIG_IGN);
        dispose(libc::SIGTERM, libc::SIG_DFL);
        dispose(libc::SIGHUP, libc::SIG_DFL);
        take_interrupts();
        is(libc::SIGINT, libc::SIG_IGN);
        is(libc::SIGTERM, own_handler());
        is(libc::SIGHUP, own_handler());
        is(libc::SIGUSR1, libc::SIG_DFL);
        dispose(libc::SIGHUP, libc::SIG_IGN);
        leave_interrupts();
        is(libc::SIGINT, libc::SIG_IGN);
        is(libc::SIGHUP, libc::SIG_IGN);
        is(libc::SIGTERM, libc::SIG_DFL);
    }

    #[test]
    fn what_was_prepared_is_run_and_waited_for() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mark = directory.path().join("mark");
        let script = OsString::from("sleep 0.05; echo \"$GREETING $#\" > \"$1\"");
        let words = ["-c".into(), script, "sh".into(), mark.clone().into_os_string(), "two".into()];
        prepare(table::local(), Path::new("/bin/sh"), &words, [("GREETING".into(), "hello".into())].into_iter());
        run_prepared(-1);
        assert_eq!(std::fs::read_to_string(&mark).expect("the child ran"), "hello 2\n");
        std::fs::remove_file(&mark).expect("removed");

        unprepare();
        run_prepared(-1);
        assert!(!mark.exists());
        prepare(table::local(), Path::new("/no/such/program"), &[], std::iter::empty());
        run_prepared(-1);
        unprepare();
    }
}
