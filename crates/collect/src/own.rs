//! The identity of the collector: host, boot, process. Its files are named by it.

use std::fs;

use weftline_format::manifest::{SupervisorRecord, record_stem};

/// Identity of the collecting process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    /// The host's name.
    pub host: String,
    /// The kernel's boot id.
    pub boot: String,
    /// This process.
    pub pid: u32,
    /// Its start time in clock ticks since boot.
    pub start: u64,
}

impl Own {
    /// Reads it from the kernel. A collector's own identity is never a stub's, so this looks at the real `/proc`.
    pub fn read() -> Own {
        let line = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned());
        Own {
            host: line("/proc/sys/kernel/hostname").unwrap_or_else(|_| "localhost".into()),
            boot: line("/proc/sys/kernel/random/boot_id").unwrap_or_default(),
            pid: std::process::id(),
            start: start_of("self").unwrap_or(0),
        }
    }

    /// What the names of its files begin with.
    pub fn stem(&self, session: u32) -> String {
        let host: String = self.host.chars().map(|c| if c == '/' || c == '\0' { '_' } else { c }).collect();
        record_stem(&host, self.pid, self.start, session)
    }

    /// A manifest record of its own, still empty.
    pub fn record(&self, session: u32) -> SupervisorRecord {
        SupervisorRecord {
            host: self.host.clone(),
            pid: self.pid,
            start: self.start,
            session,
            boot: self.boot.clone(),
            ..SupervisorRecord::default()
        }
    }
}

/// When a process started, in clock ticks since boot; nothing when there is none. One that has ended is none, even if nobody has waited
/// for it yet: in containers without an init nobody ever does.
pub fn start_of(pid: &str) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X");
    fields.nth(18)?.parse().ok().filter(|_| !ended)
}

/// Leaves the session of the terminal, so that the terminal's end is not this process's.
pub fn detach() {
    // It fails where this process leads a session already, which is as good.
    let _ = rustix::process::setsid();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_itself() {
        let own = Own::read();
        assert_eq!(start_of(&own.pid.to_string()), Some(own.start));
        assert!(own.start > 0 && !own.boot.is_empty());
        assert_eq!(own.stem(0), format!("{}-{}-{}", own.host, own.pid, own.start));
        assert!(own.stem(2).ends_with("-2"));
        assert_eq!(start_of("4294967295"), None);
        let mut ended = std::process::Command::new("true").spawn().expect("it starts");
        let (pid, began) = (ended.id().to_string(), std::time::Instant::now());
        while start_of(&pid).is_some() {
            assert!(began.elapsed() < std::time::Duration::from_secs(20), "a zombie is not alive");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        ended.wait().expect("waited");
    }
}
