//! Signals, descriptors and children: the system calls that std does not have. All `unsafe` code of this crate is here.
//!
//! The supervisor blocks the signals that could end it and takes them when it has time: Ctrl-C ends the program, not the
//! trace. The terminal sends its signals to the program by itself (both are in one process group), so only signals that
//! a process sent are passed on.

use std::ffi::CString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Signals that the supervisor takes over. SIGCHLD tells of the program's end.
const TAKEN: [libc::c_int; 10] = [
    libc::SIGINT,
    libc::SIGTERM,
    libc::SIGHUP,
    libc::SIGQUIT,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGTSTP,
    libc::SIGWINCH,
    libc::SIGCHLD,
];

/// Signals whose disposition differs here from what this command was started with. SIGPIPE: Rust's runtime ignores it. SIGXFSZ: a file size
/// limit that the user set is for the program; to us it is an error like a full disk.
const CHANGED: [libc::c_int; 2] = [libc::SIGPIPE, libc::SIGXFSZ];

/// How [`CHANGED`] were handled when the process started, before Rust's runtime did anything.
static AT_START: [AtomicUsize; 2] = [const { AtomicUsize::new(libc::SIG_DFL) }; 2];

/// Which of stdin, stdout and stderr were closed when the process started: Rust's runtime opens /dev/null in their place, and a program that is
/// to find them closed must not find that.
static CLOSED_AT_START: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];

extern "C" fn note_start() {
    for (descriptor, closed) in (0..).zip(&CLOSED_AT_START) {
        // SAFETY: no memory is involved; a descriptor that is not open is an error and nothing else.
        closed.store(unsafe { libc::fcntl(descriptor, libc::F_GETFD) } < 0, Ordering::Relaxed);
    }
    for (signal, handler) in CHANGED.iter().zip(&AT_START) {
        // SAFETY: sigaction is plain data which the call fills in.
        let action = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(*signal, std::ptr::null(), &raw mut action);
            action
        };
        handler.store(action.sa_sigaction, Ordering::Relaxed);
    }
}

#[used]
// SAFETY: the loader calls functions of this section, which take no arguments that matter here, once before `main`.
#[unsafe(link_section = ".init_array")]
static NOTE_START: extern "C" fn() = note_start;

/// Closes what was closed at the start, in a child or before this process becomes the program. Async-signal-safe.
fn close_again() {
    for (descriptor, closed) in (0..).zip(&CLOSED_AT_START) {
        if closed.load(Ordering::Relaxed) {
            // SAFETY: nobody owns these numbers but std, which takes an error on them for an answer.
            unsafe { libc::close(descriptor) };
        }
    }
}

/// Lets a command that is executed next find closed what this one found closed.
pub(crate) fn close_what_was_closed(command: &mut Command) {
    // SAFETY: the closure makes only async-signal-safe calls.
    unsafe {
        command.pre_exec(|| {
            close_again();
            Ok(())
        });
    }
}

/// The signals as they were before [`Signals::block`]; the program gets them back.
#[derive(Clone, Copy)]
pub(crate) struct Signals {
    taken: libc::sigset_t,
    before: libc::sigset_t,
}

/// What [`Signals::wait`] saw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caught {
    /// The time is over.
    Nothing,
    /// A child changed its state.
    Child,
    /// A process sent this signal.
    Sent(libc::c_int),
}

impl Signals {
    /// Blocks the signals in this thread and all that it starts later. Call before anything is written.
    pub(crate) fn block() -> Signals {
        // SAFETY: sigset_t is plain data that sigemptyset initialises; the calls only touch our two sets and the mask.
        unsafe {
            let mut taken = std::mem::zeroed();
            let mut before = std::mem::zeroed();
            libc::sigemptyset(&raw mut taken);
            for signal in TAKEN {
                libc::sigaddset(&raw mut taken, signal);
            }
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const taken, &raw mut before);
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
            Signals { taken, before }
        }
    }

    /// Gives the program the signal mask and the closed descriptors that this command was started with, and makes its pid file.
    pub(crate) fn prepare(self, command: &mut Command, pid_file: Option<PidFile>) {
        // SAFETY: the closure runs between fork and exec and makes only async-signal-safe calls on memory that was prepared before.
        unsafe {
            command.pre_exec(move || {
                if let Some(pid_file) = &pid_file {
                    pid_file.make()?;
                }
                for (signal, handler) in CHANGED.iter().zip(&AT_START) {
                    libc::signal(*signal, handler.load(Ordering::Relaxed));
                }
                libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut());
                close_again();
                Ok(())
            });
        }
    }

    /// Waits for a signal, or until `time` is over.
    pub(crate) fn wait(&self, time: Duration) -> Caught {
        let time = libc::timespec { tv_sec: time.as_secs() as libc::time_t, tv_nsec: time.subsec_nanos().into() };
        // SAFETY: siginfo_t is plain data which the call fills in.
        let (signal, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            (libc::sigtimedwait(&raw const self.taken, &raw mut info, &raw const time), info)
        };
        match signal {
            libc::SIGCHLD => Caught::Child,
            // Positive codes are the kernel's own, such as the terminal's.
            signal if signal > 0 && info.si_code <= 0 => Caught::Sent(signal),
            _ => Caught::Nothing,
        }
    }
}

impl Signals {
    /// Waits until this command should end, for any reason.
    pub(crate) fn wait_for_end(&self) {
        loop {
            // SAFETY: the call reads our set; without a place for details it writes nothing.
            let signal = unsafe { libc::sigwaitinfo(&raw const self.taken, std::ptr::null_mut()) };
            if [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT].contains(&signal) {
                return;
            }
        }
    }
}

/// The signal that asks a process to end.
pub(crate) const TERMINATE: libc::c_int = libc::SIGTERM;

/// The program's state from `waitpid`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChildState {
    Running,
    Stopped,
    Exited(i32),
    Killed(i32),
}

/// Looks at the program without waiting.
pub(crate) fn look_at(child: u32) -> io::Result<ChildState> {
    let mut status = 0;
    // SAFETY: the call writes one int.
    match unsafe { libc::waitpid(child as libc::pid_t, &raw mut status, libc::WNOHANG | libc::WUNTRACED) } {
        0 => Ok(ChildState::Running),
        pid if pid > 0 && libc::WIFSTOPPED(status) => Ok(ChildState::Stopped),
        pid if pid > 0 && libc::WIFSIGNALED(status) => Ok(ChildState::Killed(libc::WTERMSIG(status))),
        pid if pid > 0 => Ok(ChildState::Exited(libc::WEXITSTATUS(status))),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Sends a signal to a process.
pub(crate) fn send(pid: u32, signal: libc::c_int) {
    // SAFETY: no memory is involved.
    unsafe { libc::kill(pid as libc::pid_t, signal) };
}

/// Stops this command, as the shell expects when the program was stopped; returns when it is continued.
pub(crate) fn stop_self() {
    // SAFETY: no memory is involved.
    unsafe { libc::raise(libc::SIGSTOP) };
}

/// Ends this command by the signal that ended the program, as if there were no command in between. Returns where that is not possible: the
/// first process of a pid namespace is not killed by its own signals.
pub(crate) fn die_by(signal: libc::c_int) {
    let no_core = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the limit and the set are ours; the other calls take numbers. Nothing runs after this that needs the old handlers.
    unsafe {
        // The program has left its core; one of ours would be written over it, or be taken for it. A core that goes to a pipe is made whatever the
        // limit says, unless the process may not be dumped.
        libc::setrlimit(libc::RLIMIT_CORE, &raw const no_core);
        libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0);
        libc::signal(signal, libc::SIG_DFL);
        let mut only = std::mem::zeroed();
        libc::sigemptyset(&raw mut only);
        libc::sigaddset(&raw mut only, signal);
        libc::kill(libc::getpid(), signal);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const only, std::ptr::null_mut());
    }
}

/// CPU time in nanoseconds of all children that were waited for.
pub(crate) fn children_cpu_ns() -> u64 {
    // SAFETY: rusage is plain data which the call fills in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

/// A file named by the program's pid, made in the child before it becomes the program.
pub(crate) struct PidFile {
    directory: CString,
}

impl PidFile {
    pub(crate) fn new(directory: CString) -> PidFile {
        PidFile { directory }
    }

    /// Only async-signal-safe calls, no allocation.
    fn make(&self) -> io::Result<()> {
        let mut name = [0u8; 21];
        let mut digits = [0u8; 20];
        // SAFETY: getpid has no preconditions; the paths are C strings that live through the calls.
        unsafe {
            let pid = weftline_recorder::sys::decimal(libc::getpid() as u64, &mut digits);
            name[..pid.len()].copy_from_slice(pid);
            let directory = libc::open(self.directory.as_ptr(), libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC);
            if directory < 0 {
                return Err(io::Error::last_os_error());
            }
            let file =
                libc::openat(directory, name.as_ptr().cast(), libc::O_CREAT | libc::O_WRONLY | libc::O_CLOEXEC, 0o644);
            let made = if file < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
            if file >= 0 {
                libc::close(file);
            }
            libc::close(directory);
            made
        }
    }
}
