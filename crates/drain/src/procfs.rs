//! Facts about processes from /proc: alive or not, start time, bytes moved, mapped files.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use weftline_format::manifest::IoCount;
use weftline_recorder::layout::KernelIo;
use weftline_recorder::process::parse_io;

/// The parts of `/proc/PID/stat` that matter here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// State letter; `Z` and `X` are dead.
    pub state: u8,
    pub threads: u32,
    /// Clock ticks since boot when the process started; exec keeps it.
    pub start: u64,
}

impl Stat {
    /// Whether code of the process can still run. A zombie whose other threads live is the exit of a main thread.
    pub(crate) fn runs(&self) -> bool {
        !(matches!(self.state, b'Z' | b'X') && self.threads <= 1)
    }
}

/// `None`: there is no such process. One that cannot be looked at for another reason counts as running: its segments must
/// not be taken away.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    let unknown = Stat { state: b'R', threads: 1, start: 0 };
    match fs::File::open(format!("/proc/{pid}/stat")) {
        Ok(mut file) => {
            let mut buffer = [0; 1024];
            match file.read(&mut buffer) {
                Ok(length) => parse_stat(&buffer[..length]),
                Err(error) => (error.raw_os_error() != Some(libc::ESRCH)).then_some(unknown),
            }
        }
        Err(error) => (error.kind() != io::ErrorKind::NotFound).then_some(unknown),
    }
}

/// Parses a file of `/proc` that fits into one read. Reading it like any file takes eight system calls instead of three.
fn read_small<T>(path: impl AsRef<Path>, parse: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
    let mut buffer = [0; 1024];
    let length = fs::File::open(path).ok()?.read(&mut buffer).ok()?;
    parse(&buffer[..length])
}

fn parse_stat(text: &[u8]) -> Option<Stat> {
    // The name in parentheses may hold anything, parentheses and newlines included.
    let after = text.iter().rposition(|byte| *byte == b')')? + 1;
    let rest = std::str::from_utf8(&text[after..]).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let threads = fields.nth(16)?.parse().ok()?;
    let start = fields.nth(1)?.parse().ok()?;
    Some(Stat { state, threads, start })
}

/// Whether a process has the rights of this user, or had them before it took others.
pub(crate) fn is_of(pid: u32, user: u32) -> bool {
    read_small(format!("/proc/{pid}/status"), |text| {
        let line = text.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
        let mut users = std::str::from_utf8(line).ok()?.split_whitespace();
        users.any(|found| found.parse() == Ok(user)).then_some(())
    })
    .is_some()
}

/// Kernel counters of a process.
pub(crate) fn io(pid: u32) -> Option<KernelIo> {
    read_small(format!("/proc/{pid}/io"), parse_io)
}

/// What all children that were waited for moved, and theirs: what the kernel added to this process's counters and no thread
/// of it moved itself. Threads that ended would be taken for children, so worker threads must still be there.
pub fn tree_io() -> Option<KernelIo> {
    // A thread that reads between two looks, as the sampler does, would be counted in one of them only: it must stand still meanwhile. It works in
    // bursts of less than a millisecond. One that never rests costs accuracy, not time.
    const LOOKS: u32 = 200;
    let with_length = |text: &[u8]| Some((parse_io(text)?, text.len() as u64));
    let this = fs::read_link("/proc/thread-self").ok()?;
    let mut looks = 0;
    loop {
        let others = others_io(this.file_name())?;
        // This thread's own count goes up with every look: by the first before the second is taken.
        let (own, length) = read_small("/proc/thread-self/io", with_length)?;
        let whole = read_small("/proc/self/io", parse_io)?;
        looks += 1;
        if looks < LOOKS && others != others_io(this.file_name())? {
            std::thread::sleep(Duration::from_micros(100));
            continue;
        }
        return Some(KernelIo {
            rchar: whole.rchar.saturating_sub(own.rchar + length + others.rchar),
            wchar: whole.wchar.saturating_sub(own.wchar + others.wchar),
        });
    }
}

/// What the threads of this process but `this` have moved.
fn others_io(this: Option<&OsStr>) -> Option<KernelIo> {
    let tasks = fs::read_dir("/proc/self/task").ok()?.flatten();
    let others = tasks.filter(|task| Some(&*task.file_name()) != this);
    // One that just ended is gone.
    let counts = others.filter_map(|task| read_small(task.path().join("io"), parse_io));
    Some(counts.fold(KernelIo { rchar: 0, wchar: 0 }, |sum, io| KernelIo {
        rchar: sum.rchar + io.rchar,
        wchar: sum.wchar + io.wchar,
    }))
}

/// The counters for the manifest; nothing if they could not be read.
pub(crate) fn counted(io: KernelIo) -> Option<IoCount> {
    (io != KernelIo::UNKNOWN).then_some(IoCount { rchar: io.rchar, wchar: io.wchar })
}

/// Does the process map the file with this inode, whose path ends like `path`? When that cannot be read it may. The caller maps it
/// once to look at it, which does not count when the process is the caller itself.
pub(crate) fn maps(pid: u32, inode: u64, path: &Path) -> bool {
    let file = match fs::File::open(format!("/proc/{pid}/maps")) {
        Ok(file) => file,
        Err(error) => return error.kind() == io::ErrorKind::PermissionDenied,
    };
    // Another mount namespace may show another beginning; file systems in layers may show another inode.
    let name: Vec<u8> =
        path.iter().rev().take(2).collect::<Vec<_>>().into_iter().rev().fold(Vec::new(), |mut name, part| {
            name.push(b'/');
            name.extend_from_slice(part.as_encoded_bytes());
            name
        });
    let inode = format!(" {inode} ");
    let mut needless = u32::from(pid == std::process::id());
    for line in BufReader::new(file).split(b'\n') {
        match line {
            Ok(line) if shows(&line, &inode, &name) && needless == 0 => return true,
            Ok(line) if shows(&line, &inode, &name) => needless -= 1,
            Ok(_) => {}
            // The process went away under our eyes, or hides; the next look tells.
            Err(error) => return error.raw_os_error() != Some(libc::ESRCH),
        }
    }
    false
}

fn shows(line: &[u8], inode: &str, name: &[u8]) -> bool {
    let path_at = line.iter().position(|byte| *byte == b'/').unwrap_or(line.len());
    let (numbers, path) = line.split_at(path_at);
    !path.is_empty() && (path.ends_with(name) || numbers.windows(inode.len()).any(|window| window == inode.as_bytes()))
}

/// Is the thread still there?
pub(crate) fn has_thread(pid: u32, tid: u32) -> bool {
    Path::new(&format!("/proc/{pid}/task/{tid}")).exists()
}

/// Inode of a process's pid namespace.
pub(crate) fn pid_namespace(pid: &str) -> Option<u64> {
    fs::metadata(format!("/proc/{pid}/ns/pid")).ok().map(|data| data.ino())
}

/// The pid by which we see the process that is `pid` in the namespace with inode `namespace`. A process in another namespace than
/// ours has one pid per level; one with a single pid is in ours, also where its namespace may not be looked at. Sandboxed processes hide theirs,
/// and the same pids come again in each: of several the one counts that started last, but not behind `born` (clock ticks since boot). 0 for a
/// namespace that is not known.
pub(crate) fn find_in_namespace(pid: u32, namespace: u64, born: u64) -> Option<u32> {
    let own = pid.to_string();
    let levels = if namespace == 0 || pid_namespace("self") == Some(namespace) { 1 } else { 2 };
    let found = fs::read_dir("/proc").ok()?.flatten().filter_map(|entry| {
        let seen: u32 = entry.file_name().to_str()?.parse().ok()?;
        let status = fs::read_to_string(entry.path().join("status")).ok()?;
        let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?.split_ascii_whitespace();
        let inner = pids.clone().last()?;
        let fits = inner == own
            && pids.count() >= levels
            && (namespace == 0 || pid_namespace(&seen.to_string()).is_none_or(|found| found == namespace));
        let stat = fits.then(|| stat(seen)).flatten()?;
        (stat.runs() && stat.start <= born).then_some((stat.start, seen))
    });
    found.max().map(|(_, seen)| seen)
}

/// Does the process have an io_uring? Its transfers pass by every hook.
pub(crate) fn uses_io_uring(pid: u32) -> bool {
    fs::read_dir(format!("/proc/{pid}/fd")).is_ok_and(|entries| {
        entries
            .flatten()
            .any(|entry| fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str() == "anon_inode:[io_uring]"))
    })
}

/// The machine and the process that drains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    pub name: String,
    pub boot: String,
    pub pid: u32,
    /// Start of the draining process, in clock ticks since boot.
    pub start: u64,
    pub pid_namespace: u64,
    pub clock_ticks: u64,
}

impl Host {
    pub(crate) fn here() -> Host {
        let line = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
        let name = line("/proc/sys/kernel/hostname");
        // The name becomes part of file names.
        let name: String = name.chars().map(|c| if c == '/' || c.is_control() { '_' } else { c }).collect();
        let pid = std::process::id();
        Host {
            name: if name.is_empty() { "localhost".to_owned() } else { name },
            boot: line("/proc/sys/kernel/random/boot_id"),
            pid,
            start: stat(pid).map_or(0, |stat| stat.start),
            pid_namespace: pid_namespace("self").unwrap_or(0),
            clock_ticks: crate::system::clock_ticks(),
        }
    }

    /// `<host>-<pid>-<start>`, the name of this drain's own files; with a number from the process's second drain on.
    pub(crate) fn file_stem(&self, session: u32) -> String {
        weftline_format::manifest::record_stem(&self.name, self.pid, self.start, session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines_are_understood() {
        let tail = "S 1 7 7 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 3 0 98765 1 2 3";
        for name in ["sh", "a b", "x) S 9 (y", "new\nline"] {
            let stat = parse_stat(format!("7 ({name}) {tail}\n").as_bytes());
            assert_eq!(stat, Some(Stat { state: b'S', threads: 3, start: 98765 }), "{name}");
        }
        assert_eq!(parse_stat(b""), None);
        assert_eq!(parse_stat(b"7 (sh) S 1"), None);
        for (state, threads, runs) in [(b'R', 1, true), (b'Z', 1, false), (b'Z', 2, true), (b'X', 0, false)] {
            assert_eq!(Stat { state, threads, start: 0 }.runs(), runs);
        }
    }

    #[test]
    fn lines_of_maps_are_understood() {
        let name = b"/live-1/a0";
        for (line, shown) in [
            ("7f00-7f01 rw-s 00000000 fe:00 4242                       /tmp/live-1/a0", true),
            ("7f00-7f01 rw-s 00000000 fe:00 9                          /elsewhere/live-1/a0", true),
            ("7f00-7f01 rw-s 00000000 fe:00 4242                       /other/name", true),
            ("7f00-7f01 rw-s 00000000 fe:00 14242                      /other/a0", false),
            ("7f00-7f01 rw-p 00000000 00:00 0 ", false),
        ] {
            assert_eq!(shows(line.as_bytes(), " 4242 ", name), shown, "{line}");
        }
    }

    /// A child's bytes are those of the tree, to the byte; our own are not, however often we look.
    #[test]
    fn the_tree_is_what_children_moved() {
        let tree = || tree_io().expect("the kernel tells");
        let before = tree();
        for _ in 0..3 {
            fs::read("/proc/self/maps").expect("the kernel tells");
            assert_eq!(tree(), before);
        }
        let mut child = std::process::Command::new("/bin/dd");
        child.args(["if=/dev/zero", "of=/dev/null", "bs=1000000", "count=3", "status=none"]);
        assert!(child.status().is_ok_and(|status| status.success()));
        let after = tree();
        // Its loader reads some headers.
        assert!((3_000_000..3_100_000).contains(&(after.rchar - before.rchar)), "{before:?} {after:?}");
        assert_eq!(after.wchar - before.wchar, 3_000_000);
    }

    /// What another thread reads in bursts, as the sampler does, is never taken for a child's, wherever in a burst the looks fall.
    #[test]
    fn threads_that_read_meanwhile_are_no_children() {
        let before = tree_io().expect("the kernel tells");
        let done = std::sync::atomic::AtomicBool::new(false);
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !done.load(relaxed) {
                    for _ in 0..20 {
                        fs::read("/proc/self/maps").expect("the kernel tells");
                    }
                    std::thread::sleep(Duration::from_micros(200));
                }
            });
            let found: Vec<_> = (0..1000).map(|_| tree_io().expect("the kernel tells")).collect();
            done.store(true, relaxed);
            let wrong: Vec<_> = found.iter().filter(|tree| **tree != before).collect();
            assert!(wrong.is_empty(), "{before:?} {wrong:?}");
        });
    }

    #[test]
    fn the_own_process_is_seen() {
        let host = Host::here();
        assert!(stat(host.pid).is_some_and(|stat| stat.runs() && stat.start == host.start));
        assert!(io(host.pid).is_some_and(|io| io.rchar > 0));
        assert!(has_thread(host.pid, host.pid));
        assert_eq!(find_in_namespace(host.pid, host.pid_namespace, u64::MAX), Some(host.pid));
        assert!(!uses_io_uring(host.pid));
        let exe = fs::read_link("/proc/self/exe").expect("the kernel tells");
        let inode = fs::metadata(&exe).expect("it is there").ino();
        assert!(maps(host.pid, inode, &exe));
        assert!(!maps(host.pid, u64::MAX, Path::new("/no/such")));
    }
}
