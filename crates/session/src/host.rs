//! Facts about this host and process, to distinguish leftovers from the work of a running process.

use std::fs;

use serde::{Deserialize, Serialize};

/// One process among all that ever ran: pids repeat, start times within a boot do not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Owner {
    pub host: String,
    pub boot: String,
    pub pid: u32,
    /// Clock ticks from boot to its start.
    pub start: u64,
}

impl Owner {
    /// This process.
    pub(crate) fn here() -> Owner {
        let line = |path: &str| fs::read_to_string(path).map(|text| text.trim().to_owned()).unwrap_or_default();
        let pid = std::process::id();
        Owner {
            host: line("/proc/sys/kernel/hostname"),
            boot: line("/proc/sys/kernel/random/boot_id"),
            pid,
            start: start_of(pid).unwrap_or_default(),
        }
    }

    /// Whether the process is there, or lies where this host cannot see.
    pub(crate) fn may_live(&self, here: &Owner) -> bool {
        self.host != here.host || (self.boot == here.boot && start_of(self.pid) == Some(self.start))
    }
}

/// Field 22 of `/proc/PID/stat`; nothing for a process that is gone or waits to be reaped.
fn start_of(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    if matches!(state, "Z" | "X") { None } else { fields.nth(18)?.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_others_do_not() {
        let here = Owner::here();
        assert!(here.start > 0 && !here.host.is_empty() && !here.boot.is_empty());
        for (owner, expected) in [
            (here.clone(), true),
            (Owner { start: here.start + 1, ..here.clone() }, false),
            (Owner { boot: "another".into(), ..here.clone() }, false),
            (Owner { host: "elsewhere".into(), boot: "another".into(), ..here.clone() }, true),
            (Owner { pid: u32::MAX, ..here.clone() }, false),
        ] {
            assert_eq!(owner.may_live(&here), expected, "{owner:?}");
        }
    }
}
