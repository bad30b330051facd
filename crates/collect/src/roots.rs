//! Where the kernel's files are. Samplers never spell `/proc` themselves, so that tests can point them at stub trees and a collector in a
//! container at the host's mounts.

use std::path::{Path, PathBuf};

/// The trees that samplers read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roots {
    /// `/proc`.
    pub proc: PathBuf,
    /// `/sys`.
    pub sys: PathBuf,
    /// The file that names the operating system.
    pub os_release: PathBuf,
    /// NVIDIA's management library; by default the loader looks for it.
    pub nvml: Option<PathBuf>,
    /// The command `nvidia-smi`, for machines where the library cannot be loaded; by default looked for in `PATH`.
    pub nvidia_smi: Option<PathBuf>,
    /// Files or directories with `energy_uj` files besides those of powercap, as Scaphandre puts them into a virtual machine.
    pub energy: Vec<PathBuf>,
}

impl Default for Roots {
    fn default() -> Self {
        Roots {
            proc: "/proc".into(),
            sys: "/sys".into(),
            os_release: "/etc/os-release".into(),
            nvml: None,
            nvidia_smi: None,
            energy: vec!["/var/scaphandre".into()],
        }
    }
}

impl Roots {
    /// The trees below a directory: `DIR/proc`, `DIR/sys`, `DIR/etc/os-release`, `DIR/var/scaphandre`; the library and the command of a GPU only below it too.
    pub fn under(directory: impl AsRef<Path>) -> Roots {
        let directory = directory.as_ref();
        Roots {
            proc: directory.join("proc"),
            sys: directory.join("sys"),
            os_release: directory.join("etc/os-release"),
            nvml: Some(directory.join("libnvidia-ml.so.1")),
            nvidia_smi: Some(directory.join("nvidia-smi")),
            energy: vec![directory.join("var/scaphandre")],
        }
    }

    /// Whether process ids in `proc` are those of our own pid namespace, so that system calls may be asked about them.
    pub fn own_pids(&self) -> bool {
        self.proc == Path::new("/proc")
    }
}
