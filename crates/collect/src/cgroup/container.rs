//! Finds the container of a process by the names that runtimes give to control groups.
//!
//! | runtime | last parts of the path |
//! |---|---|
//! | Docker | `docker/ID`, `docker-ID.scope` |
//! | containerd | `cri-containerd-ID.scope`, `nerdctl-ID.scope`, `…:cri-containerd:ID` |
//! | Podman | `libpod-ID.scope`, `libpod-payload-ID`; not `libpod-conmon-ID`, which is the container's supervisor |
//! | CRI-O | `crio-ID.scope`; not `crio-conmon-ID.scope` |
//! | Kubernetes | pods as `podUID` or `kubepods-…-podU_I_D.slice`; containers below by their runtime, or as a bare `ID` |
//! | Slurm | `job_1/step_2/…/task_3` below `slurm` or `slurmstepd.scope` |
//! | LXC | `lxc/NAME`, `lxc.payload.NAME` |
//!
//! A process that sees only its own part of the tree (a private namespace of control groups) has `/` there. Then the files that
//! Docker, Podman and Kubernetes mount into every container (`/etc/hostname`, `/etc/hosts`) tell.

use std::path::Path;

use serde::Serialize;

use crate::read::{Kept, lines, words};
use crate::roots::Roots;

use super::files::paths_of;

/// A container, found by a control group's path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Container {
    /// `docker`, `containerd`, `podman`, `crio`, `kubernetes` (a pod whose runtime is not told), `slurm`, `lxc`.
    pub runtime: &'static str,
    /// The container's id; with Slurm `JOB`, `JOB.STEP` or `JOB.STEP.TASK`.
    pub id: String,
    /// The Kubernetes pod that it belongs to.
    pub pod: Option<String>,
}

/// The container of a process.
pub fn container_of(roots: &Roots, pid: u32) -> Option<Container> {
    let paths = paths_of(roots, pid).ok()?;
    // The most telling one: hybrid machines have containers in some hierarchies only.
    let found = paths.iter().find_map(|(_, path)| of_path(path));
    found.or_else(|| {
        let mut buffer = Vec::new();
        let mounts = Kept::open(roots.proc.join(pid.to_string()).join("mountinfo")).ok()?;
        of_mounts(mounts.read(&mut buffer).ok()?)
    })
}

/// Parses a path. The innermost container counts.
pub(super) fn of_path(path: &Path) -> Option<Container> {
    let parts: Vec<&str> = path.components().filter_map(|part| part.as_os_str().to_str()).collect();
    let pod = parts.iter().rev().find_map(|part| pod_of(part));
    for (place, part) in parts.iter().enumerate().rev() {
        let above = place.checked_sub(1).map_or("", |place| parts[place]);
        let found = prefixed(part).or_else(|| {
            let name = part.strip_suffix(".scope").unwrap_or(part);
            if above == "docker" || above.starts_with("docker-") && !above.ends_with(".scope") {
                return is_id(name).then(|| ("docker", name.to_owned()));
            }
            if above == "lxc" {
                return Some(("lxc", name.to_owned()));
            }
            let name = part.rsplit(':').next().unwrap_or(part);
            (is_id(name) && pod_of(above).is_some()).then(|| {
                let runtime = if part.contains(":cri-containerd:") { "containerd" } else { "kubernetes" };
                (runtime, name.to_owned())
            })
        });
        if let Some((runtime, id)) = found {
            return Some(Container { runtime, id, pod });
        }
    }
    slurm(&parts).or_else(|| Some(Container { runtime: "kubernetes", id: pod.clone()?, pod }))
}

/// Names that carry their runtime.
fn prefixed(part: &str) -> Option<(&'static str, String)> {
    let name = part.strip_suffix(".scope").unwrap_or(part);
    if let Some(name) = name.strip_prefix("lxc.payload.") {
        return Some(("lxc", name.to_owned()));
    }
    const PREFIXES: [(&str, &str); 6] = [
        ("docker-", "docker"),
        ("cri-containerd-", "containerd"),
        ("nerdctl-", "containerd"),
        ("libpod-payload-", "podman"),
        ("libpod-", "podman"),
        ("crio-", "crio"),
    ];
    for (prefix, runtime) in PREFIXES {
        if let Some(id) = name.strip_prefix(prefix).filter(|id| is_id(id)) {
            return Some((runtime, id.to_owned()));
        }
    }
    // The systemd driver's own notation: `kubepods-…slice:cri-containerd:ID`.
    let (before, id) = part.rsplit_once(':')?;
    (before.ends_with("cri-containerd") && is_id(id)).then(|| ("containerd", id.to_owned()))
}

/// Ids are 64 hexadecimal digits; some tools cut them to twelve.
fn is_id(name: &str) -> bool {
    (12..=64).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// `pod5f…` and `kubepods-burstable-pod5f_….slice[:…]`; systemd writes dashes as underscores.
fn pod_of(part: &str) -> Option<String> {
    let part = part.split(':').next().unwrap_or(part);
    let name = part.strip_suffix(".slice").unwrap_or(part);
    let uid = match name.strip_prefix("pod") {
        Some(uid) => uid,
        None => name.strip_prefix("kubepods").and_then(|rest| rest.rsplit_once("-pod")).map(|(_, uid)| uid)?,
    };
    let long_enough =
        uid.len() >= 32 && uid.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-' || byte == b'_');
    long_enough.then(|| uid.replace('_', "-"))
}

fn slurm(parts: &[&str]) -> Option<Container> {
    let start = parts.iter().position(|part| part.starts_with("slurm") || part.ends_with("slurmstepd.scope"))?;
    let find = |prefix: &str| {
        parts[start..].iter().find_map(|part| part.strip_prefix(prefix)).filter(|found| !found.is_empty())
    };
    let mut id = find("job_")?.to_owned();
    for part in [find("step_"), find("task_")] {
        // `task_special` holds what belongs to the step as a whole.
        let Some(part) = part.filter(|part| *part != "special") else { break };
        id.push('.');
        id.push_str(part);
    }
    Some(Container { runtime: "slurm", id, pod: None })
}

/// What the files that runtimes mount into a container tell by the place that they come from.
fn of_mounts(text: &[u8]) -> Option<Container> {
    for line in lines(text) {
        let mut words = words(line).skip(3);
        let (Some(root), Some(point)) = (words.next(), words.next()) else { continue };
        if !matches!(point, b"/etc/hostname" | b"/etc/hosts" | b"/etc/resolv.conf") {
            continue;
        }
        let root = String::from_utf8_lossy(root);
        let behind =
            |mark: &str| root.split_once(mark).map(|(_, rest)| rest.split('/').next().unwrap_or(rest).to_owned());
        if let Some(uid) = behind("/kubelet/pods/").or_else(|| behind("/pods/")).filter(|uid| uid.len() >= 32) {
            return Some(Container { runtime: "kubernetes", id: uid.clone(), pod: Some(uid) });
        }
        for (mark, runtime) in
            [("/overlay-containers/", "podman"), ("/docker/containers/", "docker"), ("/containers/", "docker")]
        {
            if let Some(id) = behind(mark).filter(|id| is_id(id)) {
                return Some(Container { runtime, id, pod: None });
            }
        }
    }
    None
}

#[cfg(test)]
#[path = "container_test.rs"]
mod tests;
