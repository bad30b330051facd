//! What a command line says about the part that its process plays.

/// What a command line says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Hint {
    /// Nothing.
    #[default]
    None,
    /// It starts the others: `mpirun`, `torchrun`, `python -m torch.distributed.launch`.
    Launcher,
    /// Python's helper that cleans up after multiprocessing.
    Tracker,
    /// A child of Python's `spawn` or `forkserver`.
    Spawned,
    /// A worker that is told its rank.
    Ranked(u32),
}

const LAUNCHERS: [&str; 14] = [
    "mpirun",
    "mpiexec",
    "mpiexec.hydra",
    "hydra_pmi_proxy",
    "horovodrun",
    "orterun",
    "orted",
    "prted",
    "prterun",
    "srun",
    "slurmstepd",
    "torchrun",
    "deepspeed",
    "accelerate",
];

/// Modules and scripts that start others.
const LAUNCHING: [&str; 8] = [
    "torch.distributed.launch",
    "torch.distributed.launch.py",
    "torch.distributed.run",
    "torch.distributed.elastic",
    "launch.py",
    "horovod.runner",
    "horovod.runner.launch",
    "accelerate.commands.launch",
];

/// The part of a path behind its last `/`.
pub(super) fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Whether a program is Python.
pub(super) fn is_python(program: &str) -> bool {
    ["python", "pypy"].iter().any(|name| base(program).starts_with(name))
}

/// What is run: the script, module or code of an interpreter, else the program.
pub(super) fn target(command: &str) -> &str {
    let mut words = command.split_ascii_whitespace();
    let program = words.next().unwrap_or_default();
    if !is_python(program) {
        return program;
    }
    while let Some(word) = words.next() {
        match word {
            "-m" => return words.next().unwrap_or(program),
            "-c" => {
                let at = word.as_ptr() as usize - command.as_ptr() as usize + word.len();
                return command[at..].trim();
            }
            "-X" | "-W" => _ = words.next(),
            _ if word.starts_with('-') => {}
            script => return script,
        }
    }
    program
}

/// A name for what is run: short, without folder and ending. None where it is code or an interpreter alone.
pub(super) fn script(command: &str) -> Option<&str> {
    let target = target(command);
    if target.is_empty() || target.contains([' ', ';', '(']) || is_python(target) {
        return None;
    }
    let name = base(target);
    Some(name.strip_suffix(".py").or_else(|| name.strip_suffix(".sh")).unwrap_or(name))
}

/// What a command line, or the short name where there is none, says.
pub(super) fn hint(command: &str, comm: &str) -> Hint {
    if command.is_empty() {
        return if LAUNCHERS.contains(&comm) { Hint::Launcher } else { Hint::None };
    }
    let what = target(command);
    if what.contains("resource_tracker") || what.contains("semaphore_tracker") {
        return Hint::Tracker;
    }
    if what.contains("spawn_main")
        || what.contains("multiprocessing.spawn")
        || what.contains("multiprocessing.forkserver")
    {
        return Hint::Spawned;
    }
    if LAUNCHERS.contains(&base(what)) || LAUNCHING.contains(&base(what)) {
        return Hint::Launcher;
    }
    match rank(command) {
        Some(rank) => Hint::Ranked(rank),
        None => Hint::None,
    }
}

/// The rank that options tell: `--local_rank=3`, `--local-rank 3`.
fn rank(command: &str) -> Option<u32> {
    let mut words = command.split_ascii_whitespace();
    while let Some(word) = words.next() {
        let (option, value) = word.split_once('=').map_or((word, None), |(option, value)| (option, Some(value)));
        if matches!(option, "--local_rank" | "--local-rank" | "--rank" | "--node_rank_local") {
            return value.or_else(|| words.next())?.parse().ok().filter(|rank| *rank < 1 << 20);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints() {
        let spawned = "/opt/conda/bin/python -c from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=5, pipe_handle=7) --multiprocessing-fork";
        let tracker = "/usr/bin/python3 -c from multiprocessing.resource_tracker import main;main(4)";
        for (command, comm, expected) in [
            ("/opt/conda/bin/python -m torch.distributed.launch.py --nproc_per_node=4 main.py", "", Hint::Launcher),
            ("/opt/conda/bin/python /x/launch.py main.py --local_rank 1", "", Hint::Launcher),
            ("/usr/bin/python -u main.py --local_rank=3 --data_dir /data", "", Hint::Ranked(3)),
            ("python main.py --local-rank 12", "", Hint::Ranked(12)),
            ("mpirun -np 4 python3 dlio_benchmark.py", "", Hint::Launcher),
            (spawned, "", Hint::Spawned),
            (tracker, "", Hint::Tracker),
            ("python main.py --launcher mpirun", "", Hint::None),
            ("", "horovodrun", Hint::Launcher),
            ("", "python", Hint::None),
            ("python", "", Hint::None),
            ("", "", Hint::None),
        ] {
            assert_eq!(hint(command, comm), expected, "{command:?} {comm:?}");
        }
    }

    #[test]
    fn targets() {
        for (command, expected) in [
            ("/usr/bin/python3 -u -X dev src/dlio_benchmark.py --x", Some("dlio_benchmark")),
            ("python -m torch.distributed.run a.py", Some("torch.distributed.run")),
            ("python -c import", Some("import")),
            ("python -c import x; y()", None),
            ("/usr/sbin/sshd -D", Some("sshd")),
            ("python3", None),
            ("", None),
        ] {
            assert_eq!(script(command), expected, "{command}");
        }
    }
}
