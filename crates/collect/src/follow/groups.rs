//! Control groups and containers: which processes are in them, by `/proc/PID/cgroup`.

use std::path::{Path, PathBuf};

use crate::cgroup::container_of;
use crate::error::{CollectError, Result};
use crate::read::text;
use crate::roots::Roots;

/// Processes of one control group, or of one container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Group {
    /// A container, by its id or the beginning of it, as the runtimes' commands show it.
    Container(String),
    /// A control group and those below it: a directory below `/sys/fs/cgroup`, or a path as `/proc/PID/cgroup` has it.
    Path(PathBuf),
}

impl Group {
    pub(super) fn describe(&self) -> String {
        match self {
            Group::Container(id) => format!("container {id}"),
            Group::Path(path) => format!("control group {}", path.display()),
        }
    }

    /// A control group must be there; a container may come later.
    pub(super) fn verify(&self, roots: &Roots) -> Result<()> {
        match self {
            Group::Path(path) if crate::cgroup::CgroupSampler::open(roots, path).is_err() => {
                Err(CollectError::NoGroup(path.clone()))
            }
            _ => Ok(()),
        }
    }

    /// Whether a process is in it.
    pub(super) fn holds(&self, roots: &Roots, pid: u32) -> bool {
        match self {
            Group::Container(id) => {
                container_of(roots, pid).is_some_and(|container| container.id.starts_with(id.as_str()))
            }
            Group::Path(path) => {
                let wanted = within(path, roots);
                text(roots.proc.join(format!("{pid}/cgroup")))
                    .is_some_and(|lines| lines.lines().any(|line| line_is_in(line, &wanted)))
            }
        }
    }
}

/// The path of a group from the root of its hierarchy; for version 1 without the controller's directory.
fn within(path: &Path, roots: &Roots) -> PathBuf {
    let mount = roots.sys.join("fs/cgroup");
    let Ok(below) = path.strip_prefix(&mount) else { return path.to_owned() };
    let version_2 = mount.join("cgroup.controllers").exists();
    let below: PathBuf = if version_2 { below.to_owned() } else { below.components().skip(1).collect() };
    Path::new("/").join(below)
}

/// `4:memory:/docker/0a1b` or `0::/user.slice`.
fn line_is_in(line: &str, wanted: &Path) -> bool {
    line.splitn(3, ':').nth(2).is_some_and(|path| Path::new(path).starts_with(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cgroup_files() {
        for (line, wanted, expected) in [
            ("0::/user.slice/a.scope", "/user.slice", true),
            ("0::/user.slice", "/user.slice", true),
            ("0::/user.slice-2", "/user.slice", false),
            ("4:memory:/docker/0a:1b", "/docker/0a:1b", true),
            ("0::/", "/docker", false),
            ("nonsense", "/", false),
        ] {
            assert_eq!(line_is_in(line, Path::new(wanted)), expected, "{line}");
        }
    }

    #[test]
    fn directories_become_paths() {
        let place = tempfile::tempdir().expect("a directory");
        let roots = Roots::under(place.path());
        let mount = roots.sys.join("fs/cgroup");
        std::fs::create_dir_all(&mount).expect("made");
        assert_eq!(within(&mount.join("memory/docker/7"), &roots), Path::new("/docker/7"));
        std::fs::write(mount.join("cgroup.controllers"), "cpu").expect("written");
        assert_eq!(within(&mount.join("docker/7"), &roots), Path::new("/docker/7"));
        assert_eq!(within(Path::new("/docker/7"), &roots), Path::new("/docker/7"));
    }
}
