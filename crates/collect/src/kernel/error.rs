//! Why kernel tracing cannot start, in one sentence that says what is missing.

use std::path::{Path, PathBuf};

use thiserror::Error;

/// Why kernel tracing did not start.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The process may not load BPF programs.
    #[error(
        "kernel tracing needs {missing}: run as root, or give weft both capabilities (setcap cap_bpf,cap_perfmon+ep)"
    )]
    Capability {
        /// The capabilities that are not there.
        missing: String,
    },
    /// The kernel refuses despite the capabilities.
    #[error(
        "the kernel refuses BPF programs ({reason}) although CAP_BPF and CAP_PERFMON are there: it is locked down, or this container \
         does not allow the system call bpf"
    )]
    Refused {
        /// What it said.
        reason: String,
    },
    /// The kernel does not describe its types.
    #[error(
        "kernel tracing needs {path}, which this kernel does not have: it was built without CONFIG_DEBUG_INFO_BTF, or /sys is not mounted"
    )]
    NoTypes {
        /// Where they would be.
        path: PathBuf,
    },
    /// Process numbers here are not those that the kernel uses.
    #[error(
        "kernel tracing needs the host's process numbers, and this process is in a pid namespace of its own: start it outside, or with the host's pid namespace"
    )]
    PidNamespace,
    /// A part without which nothing is seen could not be put in place.
    #[error("kernel tracing cannot start: {what}: {reason}")]
    Attach {
        /// The program or map.
        what: String,
        /// Why.
        reason: String,
    },
    /// The ring could not be waited for.
    #[error("cannot wait for kernel events: {0}")]
    Wait(#[from] std::io::Error),
    /// The trace file could not be written.
    #[error("cannot write kernel events to {path}: {error}")]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
}

/// The kernel's description of its types.
pub(super) const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// The inode of the first pid namespace, the same in every kernel (`PROC_PID_INIT_INO`).
const FIRST_PID_NAMESPACE: &str = "pid:[4026531836]";

const ADMIN: u32 = 21;
const PERFMON: u32 = 38;
const BPF: u32 = 39;

/// What is missing before anything was tried.
pub(super) fn check(proc: &Path) -> Result<(), KernelError> {
    let effective = std::fs::read_to_string(proc.join("self/status")).ok().and_then(|status| capabilities(&status));
    if let Some(missing) = effective.and_then(missing) {
        return Err(KernelError::Capability { missing });
    }
    if !Path::new(TYPES).exists() {
        return Err(KernelError::NoTypes { path: TYPES.into() });
    }
    match std::fs::read_link(proc.join("self/ns/pid")) {
        Ok(namespace) if namespace != Path::new(FIRST_PID_NAMESPACE) => Err(KernelError::PidNamespace),
        _ => Ok(()),
    }
}

fn capabilities(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(line.trim(), 16).ok()
}

fn missing(effective: u64) -> Option<String> {
    let has = |capability: u32| effective >> capability & 1 == 1;
    if has(ADMIN) {
        return None;
    }
    match (has(BPF), has(PERFMON)) {
        (true, true) => None,
        (true, false) => Some("the capability CAP_PERFMON".into()),
        (false, true) => Some("the capability CAP_BPF".into()),
        (false, false) => Some("the capabilities CAP_BPF and CAP_PERFMON".into()),
    }
}

/// The whole chain of an error's causes in one line, without the verifier's log.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string().lines().next().unwrap_or_default().to_owned();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        let line = message.lines().next().unwrap_or_default();
        if !text.contains(line) {
            text.push_str(": ");
            text.push_str(line);
        }
        cause = error.source();
    }
    text
}

/// Whether somewhere in the chain the kernel said EPERM or EACCES.
pub(super) fn is_refusal(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.raw_os_error() == Some(1)) {
            return true;
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_missing_capability_is_named() {
        for (effective, sentence) in [
            (0, Some("the capabilities CAP_BPF and CAP_PERFMON")),
            (1 << BPF, Some("the capability CAP_PERFMON")),
            (1 << PERFMON, Some("the capability CAP_BPF")),
            (1 << BPF | 1 << PERFMON, None),
            (1 << ADMIN, None),
        ] {
            assert_eq!(missing(effective).as_deref(), sentence);
        }
        assert_eq!(capabilities("Name:\tx\nCapEff:\t000001fffeffffff\nCapBnd:\t0\n"), Some(0x1ff_feff_ffff));
    }
}
