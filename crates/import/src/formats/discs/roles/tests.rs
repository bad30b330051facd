//! Folders of all launchers, in small.

use super::*;

const SPAWN: &str =
    "python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5) --multiprocessing-fork";
const TRACK: &str = "python -c from multiprocessing.resource_tracker import main;main(4)";

/// pid, ppid, command, comm, GPU, whether it reads.
type Told<'a> = (u32, u32, &'a str, &'a str, Option<u32>, bool);

fn check(told: &[Told<'_>], workload: &str, expected: &[(u32, &str)]) {
    let seen = |(pid, ppid, command, comm, gpu, reads): &Told<'_>| {
        let seen = Seen {
            ppid: *ppid,
            command: (*command).to_owned(),
            comm: (*comm).to_owned(),
            gpus: gpu.iter().copied().collect(),
            reads: u64::from(*reads),
            calls: u64::from(*reads),
            ..Seen::default()
        };
        (*pid, seen)
    };
    let (people, _) = cast(&told.iter().map(seen).collect(), workload, &Overrides::default());
    let found: Vec<_> = people.iter().map(|(pid, person)| (*pid, person.name.as_str())).collect();
    assert_eq!(found, expected);
}

#[test]
fn launched_with_ranks() {
    check(
        &[
            (10, 0, "python -m torch.distributed.launch --nproc_per_node=2 main.py", "python", None, true),
            (11, 0, "python -u main.py --local_rank=1", "python", Some(1), true),
            (12, 0, "python -u main.py --local_rank=0", "python", Some(0), true),
            (13, 0, "/usr/bin/python3 /usr/bin/networkd-dispatcher", "python3", None, true),
            (14, 0, "", "python", None, true),
        ],
        "unet3d",
        &[(10, "master"), (11, "worker 2"), (12, "worker 1"), (13, "networkd-dispatcher 13"), (14, "loader 1")],
    );
}

#[test]
fn spawned_with_uneven_loaders() {
    let told: [Told<'_>; 9] = [
        (10, 1, "python main.py --epochs 5", "python", None, true),
        (11, 10, TRACK, "python", None, false),
        (12, 10, SPAWN, "python", Some(0), true),
        (13, 10, SPAWN, "python", Some(1), true),
        (20, 12, SPAWN, "python", None, true),
        (21, 13, SPAWN, "python", None, true),
        (22, 12, SPAWN, "python", None, true),
        (30, 1, "/sbin/init", "init", None, false),
        (31, 1, TRACK, "python", None, false),
    ];
    let names = [
        (10, "master"),
        (11, "resource tracker"),
        (12, "worker 1"),
        (13, "worker 2"),
        (20, "loader 1"),
        (21, "loader 3"),
        (22, "loader 2"),
        (30, "init 30"),
    ];
    let with_other: Vec<_> = names.into_iter().chain([(31, "python 31")]).collect();
    check(&told, "unet3d", &with_other);
    // The same without parents: GPUs tell, and loaders have no order but their numbers.
    let orphans: Vec<Told<'_>> = told[..7].iter().map(|told| (told.0, 0, told.2, told.3, told.4, told.5)).collect();
    let mut names = names[..7].to_vec();
    (names[5].1, names[6].1) = ("loader 2", "loader 3");
    check(&orphans, "unet3d", &names);
    // And without GPUs.
    let hidden: Vec<Told<'_>> = told[..7].iter().map(|told| (told.0, told.1, told.2, told.3, None, told.5)).collect();
    (names[5].1, names[6].1) = ("loader 3", "loader 2");
    check(&hidden, "unet3d", &names);
}

#[test]
fn mpi_and_forked_loaders() {
    check(
        &[
            (5, 1, "mpirun -np 2 python3 dlio_benchmark.py", "mpirun", None, true),
            (6, 5, "hydra_pmi_proxy --x", "hydra_pmi_proxy", None, false),
            (7, 6, "python3 src/dlio_benchmark.py", "python3", None, true),
            (8, 6, "python3 src/dlio_benchmark.py", "python3", None, true),
            (9, 7, "python3 src/dlio_benchmark.py", "python3", None, true),
        ],
        "dlio",
        &[(5, "master"), (6, "master (hydra_pmi_proxy 6)"), (7, "worker 1"), (8, "worker 2"), (9, "loader 1")],
    );
    check(
        &[(7, 0, "", "python3", None, true), (8, 0, "", "cat", None, true)],
        "dlio",
        &[(7, "worker 1"), (8, "cat 8")],
    );
}

#[test]
fn devices_and_readers_without_a_list() {
    check(
        &[
            (1, 0, "", "python", Some(1), true),
            (2, 0, "", "python", Some(0), true),
            (3, 0, "", "python", Some(0), false),
            (4, 0, "", "python", None, true),
            (5, 0, "", "kworker/1:2", None, true),
        ],
        "",
        &[(1, "worker 2"), (2, "worker 1"), (3, "GPU process 3"), (4, "loader 1"), (5, "kworker/1:2 5")],
    );
}

#[test]
fn unknown_is_command_and_pid() {
    check(
        &[
            (1, 1, "", "", None, false),
            (2, 1, "/usr/bin/render --all x", "render", None, true),
            (3, 0, "", "ls", None, true),
        ],
        "",
        &[(1, "pid 1"), (2, "render 2"), (3, "ls 3")],
    );
    check(&[], "", &[]);
}

#[test]
fn users_say_otherwise() {
    let seen = Seen { command: "python serve.py".to_owned(), calls: 1, ..Seen::default() };
    let mut overrides = Overrides::default();
    overrides.roles.insert("7".to_owned(), "worker 9".to_owned());
    overrides
        .commands
        .push(super::super::overrides::CommandName { contains: "serve".to_owned(), name: "server".to_owned() });
    let (people, _) = cast(&BTreeMap::from([(7, seen.clone()), (8, seen)]), "", &overrides);
    assert_eq!(
        (people[&7].name.as_str(), people[&7].role, people[&8].name.as_str()),
        ("worker 9", Role::Worker, "server")
    );
}
