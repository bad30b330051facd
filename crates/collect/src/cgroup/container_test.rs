//! Paths as each runtime writes them.

use super::*;

const ID: &str = "3f4a9c0b7d1e2f3a4b5c6d7e8f90123456789abcdef0123456789abcdef01234";
const POD: &str = "9b1c7e52-5d0f-4b8e-9f34-0a6d1c2b3e4f";

fn check(path: &str, expected: Option<(&str, &str, Option<&str>)>) {
    let path = path.replace("ID", ID).replace("P_OD", &POD.replace('-', "_")).replace("POD", POD);
    let found = of_path(Path::new(&path));
    let expected = expected.map(|(runtime, id, pod)| {
        (runtime.to_owned(), id.replace("ID", ID).replace("POD", POD), pod.map(|pod| pod.replace("POD", POD)))
    });
    assert_eq!(found.map(|found| (found.runtime.to_owned(), found.id, found.pod)), expected, "{path}");
}

#[test]
fn runtimes() {
    check("/docker/ID", Some(("docker", "ID", None)));
    check("/system.slice/docker-ID.scope", Some(("docker", "ID", None)));
    check("/docker/ID/init.scope", Some(("docker", "ID", None)));
    check("/machine.slice/libpod-ID.scope", Some(("podman", "ID", None)));
    check(
        "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-ID.scope/container",
        Some(("podman", "ID", None)),
    );
    check("/libpod_parent/libpod-payload-ID", Some(("podman", "ID", None)));
    check("/machine.slice/libpod-conmon-ID.scope", None);
    check("/system.slice/nerdctl-ID.scope", Some(("containerd", "ID", None)));
    check(
        "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podP_OD.slice/cri-containerd-ID.scope",
        Some(("containerd", "ID", Some("POD"))),
    );
    check(
        "/system.slice/containerd.service/kubepods-besteffort-podP_OD.slice:cri-containerd:ID",
        Some(("containerd", "ID", Some("POD"))),
    );
    check("/kubepods.slice/kubepods-podP_OD.slice/crio-ID.scope", Some(("crio", "ID", Some("POD"))));
    check("/kubepods.slice/kubepods-podP_OD.slice/crio-conmon-ID.scope", Some(("kubernetes", "POD", Some("POD"))));
    check("/kubepods/burstable/podPOD/ID", Some(("kubernetes", "ID", Some("POD"))));
    check("/kubepods.slice/kubepods-podP_OD.slice/docker-ID.scope", Some(("docker", "ID", Some("POD"))));
    check(
        "/docker/0123456789ab0123456789ab0123456789ab0123456789ab0123456789abcdef/kubepods/podPOD/ID",
        Some(("kubernetes", "ID", Some("POD"))),
    );
    check("/slurm/uid_1000/job_42/step_0/task_3", Some(("slurm", "42.0.3", None)));
    check("/slurm_node7/uid_1000/job_42/step_batch/task_0", Some(("slurm", "42.batch.0", None)));
    check("/system.slice/slurmstepd.scope/job_42/step_1/user/task_special", Some(("slurm", "42.1", None)));
    check("/system.slice/node7_slurmstepd.scope/job_42/step_1/user", Some(("slurm", "42.1", None)));
    check("/slurm/uid_1000/job_42", Some(("slurm", "42", None)));
    check("/lxc.payload.web/init.scope", Some(("lxc", "web", None)));
    check("/lxc/web", Some(("lxc", "web", None)));
}

#[test]
fn what_is_no_container() {
    for path in [
        "/",
        "",
        "/user.slice/user-0.slice/session-1.scope",
        "/system.slice/docker.service",
        "/docker/not-an-id",
        "/slurm/uid_1000",
        "/slurm/job_",
    ] {
        check(path, None);
    }
}

#[test]
fn mounts() {
    let line = |root: &str, point: &str| format!("700 600 254:1 {root} {point} rw,relatime - ext4 /dev/vda1 rw\n");
    let cases = [
        (line(&format!("/var/lib/docker/containers/{ID}/hostname"), "/etc/hostname"), Some(("docker", ID))),
        (line(&format!("/containers/{ID}/hosts"), "/etc/hosts"), Some(("docker", ID))),
        (
            line(
                &format!("/home/u/.local/share/containers/storage/overlay-containers/{ID}/userdata/hosts"),
                "/etc/hosts",
            ),
            Some(("podman", ID)),
        ),
        (line(&format!("/var/lib/kubelet/pods/{POD}/etc-hosts"), "/etc/hosts"), Some(("kubernetes", POD))),
        // The host itself sees what Docker mounted, at other places.
        (line("/", &format!("/var/lib/docker/containers/{ID}/mounts/shm")), None),
        ("cut off".to_owned(), None),
    ];
    for (text, expected) in cases {
        let found = of_mounts(text.as_bytes());
        assert_eq!(found.as_ref().map(|found| (found.runtime, found.id.as_str())), expected, "{text}");
    }
}
