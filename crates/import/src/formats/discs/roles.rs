//! Who is who: master, workers, loaders, Python's resource tracker. By command line, by who is on a GPU and who reads, by parenthood.
//!
//! Only processes that the traces saw, and their ancestors, play a part: lists of all processes of a host hold many that only look alike.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::command::{self, Hint};
use super::facts::{Person, Seen};
use super::overrides::Overrides;

/// The part that a process plays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// It started the others.
    Master,
    /// It computes: on a GPU where there are any.
    Worker,
    /// It reads for a worker.
    Loader,
    /// Python's resource tracker.
    Tracker,
    /// It is on a GPU, and reads nothing.
    Device,
    /// Nothing tells.
    #[default]
    Other,
}

impl Role {
    /// For people.
    pub fn words(self) -> &'static str {
        match self {
            Role::Master => "master",
            Role::Worker => "worker",
            Role::Loader => "loader",
            Role::Tracker => "resource tracker",
            Role::Device => "GPU process",
            Role::Other => "other",
        }
    }

    /// The role in a name such as `worker 2`.
    fn of_name(name: &str) -> Role {
        let kinds = [Role::Master, Role::Worker, Role::Loader, Role::Tracker, Role::Device];
        kinds.into_iter().find(|role| name.starts_with(role.words())).unwrap_or_default()
    }
}

/// Scripts of the benchmarks that the DISCS tools trace: a process that runs one is a worker unless it has others for that.
const KNOWN_SCRIPTS: [(&str, &str); 6] = [
    ("dlio_benchmark", "dlio"),
    ("dlio_benchmark.main", "dlio"),
    ("run_pretraining", "bert"),
    ("dlrm_s_pytorch", "dlrm"),
    ("dlrm_main", "dlrm"),
    ("unet3d", "unet3d"),
];

/// The workload of a script.
pub(super) fn known_script(command: &str) -> Option<&'static str> {
    let script = command::script(command)?;
    KNOWN_SCRIPTS.iter().find(|(name, _)| *name == script).map(|(_, workload)| *workload)
}

struct Cast<'a> {
    processes: &'a BTreeMap<u32, Seen>,
    hints: BTreeMap<u32, Hint>,
    roles: BTreeMap<u32, Role>,
    children: HashMap<u32, Vec<u32>>,
    any_gpu: bool,
    any_read: bool,
}

/// The people of a set, and sentences that say how they were found.
pub(super) fn cast(
    processes: &BTreeMap<u32, Seen>,
    workload: &str,
    overrides: &Overrides,
) -> (BTreeMap<u32, Person>, Vec<String>) {
    let mut cast = Cast {
        processes,
        hints: processes.iter().map(|(pid, seen)| (*pid, command::hint(&seen.command, &seen.comm))).collect(),
        roles: BTreeMap::new(),
        children: HashMap::new(),
        any_gpu: processes.values().any(|seen| !seen.gpus.is_empty()),
        any_read: processes.values().any(|seen| seen.reads > 0),
    };
    for (pid, seen) in processes {
        cast.children.entry(seen.ppid).or_default().push(*pid);
    }
    let relevant = cast.relevant();
    cast.by_command(&relevant);
    cast.by_device();
    cast.by_parent(&relevant, workload);
    let mut people = cast.people();
    for (pid, person) in &mut people {
        let command = person.command.join(" ");
        let told = overrides.commands.iter().find(|told| !told.contains.is_empty() && command.contains(&told.contains));
        if let Some(told) = told {
            person.role = Role::of_name(&told.name);
            person.name = match told.name.as_str() {
                bare @ ("worker" | "loader") => format!("{bare} {pid}"),
                name => name.to_owned(),
            };
        }
        if let Some(name) = overrides.roles.get(&pid.to_string()) {
            person.role = Role::of_name(name);
            person.name.clone_from(name);
        }
    }
    let notes = sentences(&people, processes, cast.any_gpu);
    (people, notes)
}

impl<'a> Cast<'a> {
    fn seen(&self, pid: u32) -> Option<&Seen> {
        self.processes.get(&pid)
    }

    fn hint(&self, pid: u32) -> Hint {
        self.hints.get(&pid).copied().unwrap_or_default()
    }

    fn role(&self, pid: u32) -> Option<Role> {
        self.roles.get(&pid).copied()
    }

    fn parent(&self, pid: u32) -> u32 {
        self.seen(pid).map_or(0, |seen| seen.ppid)
    }

    /// What traces saw, what those come from, and trackers of theirs.
    fn relevant(&self) -> BTreeSet<u32> {
        let active = |seen: &Seen| seen.calls > 0 || !seen.gpus.is_empty();
        let mut found: BTreeSet<u32> =
            self.processes.iter().filter(|(_, seen)| active(seen)).map(|(pid, _)| *pid).collect();
        for mut pid in found.clone() {
            // A list may tell a circle: each process is added once.
            loop {
                pid = self.parent(pid);
                if pid == 0 || !self.processes.contains_key(&pid) || !found.insert(pid) {
                    break;
                }
            }
        }
        for (pid, hint) in &self.hints {
            let parent = self.parent(*pid);
            if *hint == Hint::Tracker && (parent == 0 || found.contains(&parent)) {
                found.insert(*pid);
            }
        }
        found
    }

    fn by_command(&mut self, relevant: &BTreeSet<u32>) {
        // The first process with a rank has it; later ones with the same words were forked from it.
        let mut ranks: BTreeMap<(&str, u32), u32> = BTreeMap::new();
        for pid in relevant {
            let Some(seen) = self.processes.get(pid) else { continue };
            let role = match self.hint(*pid) {
                Hint::Tracker => Role::Tracker,
                Hint::Launcher => Role::Master,
                Hint::Ranked(rank) => {
                    let first = *ranks.entry((&seen.command, rank)).or_insert(*pid);
                    let child = matches!(self.hint(seen.ppid), Hint::Ranked(_));
                    let elsewhere = first != *pid && seen.gpus.is_empty();
                    if child || elsewhere { Role::Loader } else { Role::Worker }
                }
                Hint::Spawned => match self.hint(seen.ppid) {
                    // A child of what was spawned itself reads for it.
                    Hint::Spawned | Hint::Ranked(_) => Role::Loader,
                    _ if !seen.gpus.is_empty() => Role::Worker,
                    // Without a parent, GPUs tell who computes; and a master on a GPU has no other workers.
                    _ if self.any_gpu && (seen.ppid == 0 || self.on_gpu(seen.ppid)) => Role::Loader,
                    _ => Role::Worker,
                },
                Hint::None => continue,
            };
            self.roles.insert(*pid, role);
        }
    }

    fn on_gpu(&self, pid: u32) -> bool {
        self.seen(pid).is_some_and(|seen| !seen.gpus.is_empty())
    }

    /// On a GPU and reading: a worker.
    fn by_device(&mut self) {
        for (pid, seen) in self.processes {
            if seen.gpus.is_empty() || self.roles.contains_key(pid) {
                continue;
            }
            let role = if seen.reads > 0 || !self.any_read { Role::Worker } else { Role::Device };
            self.roles.insert(*pid, role);
        }
    }

    /// What is left: by whom it was started, and by whose likeness it reads.
    fn by_parent(&mut self, relevant: &BTreeSet<u32>, workload: &str) {
        let interpreter = |seen: &'a Seen| seen.command.split_ascii_whitespace().next().unwrap_or(&seen.comm);
        let no_parents = self.processes.values().all(|seen| seen.ppid == 0);
        let spawned = self.hints.iter().filter(|(_, hint)| **hint == Hint::Spawned);
        let spawned: HashSet<&str> = spawned.filter_map(|(pid, _)| self.processes.get(pid)).map(interpreter).collect();
        let mut firsts: HashMap<&str, u32> = HashMap::new();
        for (pid, seen) in self.processes.iter().filter(|(_, seen)| seen.calls > 0) {
            firsts.entry(&seen.command).or_insert(*pid);
        }
        let mut alike = Alike::default();
        for (pid, _) in self.roles.iter().filter(|(_, role)| **role == Role::Worker) {
            alike.add(self.processes.get(pid));
        }
        // Parents have smaller numbers, but for a wrap-around.
        for pid in relevant {
            if self.roles.contains_key(pid) {
                continue;
            }
            let Some(seen) = self.processes.get(pid) else { continue };
            let script = command::script(&seen.command).is_some();
            let mut children = self.children.get(pid).into_iter().flatten();
            let works = children.any(|child| self.role(*child) == Some(Role::Worker) && !self.is_same(*child, *pid));
            let spawns = no_parents && script && spawned.contains(interpreter(seen));
            let python = command::is_python(interpreter(seen));
            let role = match self.role(seen.ppid) {
                Some(Role::Worker) if seen.reads > 0 || python => Role::Loader,
                Some(Role::Master) if python && !works && script => Role::Worker,
                _ if python && (works || spawns) => Role::Master,
                _ if known_script(&seen.command).is_some() && seen.calls > 0 => {
                    // Forked without anybody telling from whom.
                    let forked = firsts.get(seen.command.as_str()) != Some(pid);
                    if forked && self.any_gpu { Role::Loader } else { Role::Worker }
                }
                _ if seen.reads > 0 && self.any_gpu && alike.holds(seen) => Role::Loader,
                // DLIO computes on no device: who reads works.
                _ if seen.reads > 0 && !self.any_gpu && workload == "dlio" && python && seen.command.is_empty() => {
                    Role::Worker
                }
                _ => continue,
            };
            self.roles.insert(*pid, role);
            if role == Role::Worker {
                alike.add(Some(seen));
            }
        }
    }

    fn is_same(&self, one: u32, other: u32) -> bool {
        let (one, other) = (self.seen(one), self.seen(other));
        one.zip(other).is_some_and(|(one, other)| one.command == other.command && !one.command.is_empty())
    }

    fn people(&self) -> BTreeMap<u32, Person> {
        let of = |role: Role| self.roles.iter().filter(move |(_, other)| **other == role).map(|(pid, _)| *pid);
        let rank = |pid: &u32| match self.hint(*pid) {
            Hint::Ranked(rank) => Some(rank),
            _ => None,
        };
        let mut workers: Vec<u32> = of(Role::Worker).collect();
        workers.sort_by_key(|pid| {
            let gpu = self.seen(*pid).and_then(|seen| seen.gpus.first().copied());
            (rank(pid).unwrap_or(u32::MAX), gpu.unwrap_or(u32::MAX), *pid)
        });
        let told: BTreeSet<u32> = workers.iter().filter_map(rank).collect();
        let ranks_tell = told.len() == workers.len();
        let places = |list: &[u32]| -> HashMap<u32, usize> {
            list.iter().enumerate().map(|(place, pid)| (*pid, place)).collect()
        };
        let numbers = places(&workers);
        let number_of = |pid: u32| numbers.get(&pid).copied();
        let worker_of = |pid: u32| match number_of(self.parent(pid)) {
            Some(number) => Some(number),
            None => (workers.len() == 1).then_some(0),
        };
        let mut loaders: Vec<u32> = of(Role::Loader).collect();
        loaders.sort_by_key(|pid| (worker_of(*pid).unwrap_or(usize::MAX), *pid));
        let loaders = places(&loaders);
        // The one that no other master started.
        let top = of(Role::Master).find(|pid| self.role(self.parent(*pid)) != Some(Role::Master));
        let mut people: BTreeMap<u32, Person> = BTreeMap::new();
        for (pid, seen) in self.processes {
            let role = self.role(*pid).unwrap_or_default();
            let place = |places: &HashMap<u32, usize>| places.get(pid).map_or(0, |place| place + 1);
            let short = match (command::script(&seen.command), seen.comm.as_str()) {
                (Some(script), _) => script,
                (None, "") => command::base(seen.command.split_ascii_whitespace().next().unwrap_or("pid")),
                (None, comm) => comm,
            };
            let name = match role {
                Role::Worker => format!("worker {}", place(&numbers)),
                Role::Loader => format!("loader {}", place(&loaders)),
                Role::Master if top == Some(*pid) => "master".to_owned(),
                Role::Master => format!("master ({short} {pid})"),
                Role::Tracker => "resource tracker".to_owned(),
                Role::Device => format!("GPU process {pid}"),
                Role::Other => format!("{short} {pid}"),
            };
            let rank = (role == Role::Worker).then(|| {
                if ranks_tell { rank(pid) } else { number_of(*pid).and_then(|number| u32::try_from(number).ok()) }
            });
            let ppid = match (seen.ppid, role) {
                (0, Role::Loader) => worker_of(*pid).and_then(|number| workers.get(number)).copied().unwrap_or(0),
                (ppid, _) => ppid,
            };
            let command = if seen.command.is_empty() { &seen.comm } else { &seen.command };
            let command = command.split_ascii_whitespace().map(str::to_owned).collect();
            people.insert(*pid, Person { name, role, rank: rank.flatten(), ppid, command });
        }
        people
    }
}

/// What workers have in common: their words or, for those born after a list was made, their short names.
#[derive(Default)]
struct Alike<'a> {
    commands: HashSet<&'a str>,
    comms: HashSet<&'a str>,
}

impl<'a> Alike<'a> {
    fn add(&mut self, worker: Option<&'a Seen>) {
        if let Some(worker) = worker {
            self.commands.insert(&worker.command);
            self.comms.insert(&worker.comm);
        }
    }

    fn holds(&self, seen: &Seen) -> bool {
        match seen.command.as_str() {
            "" if seen.comm.is_empty() => false,
            "" => self.comms.contains(seen.comm.as_str()) || seen.comm.starts_with("pt_data_"),
            command => self.commands.contains(command),
        }
    }
}

fn sentences(people: &BTreeMap<u32, Person>, processes: &BTreeMap<u32, Seen>, any_gpu: bool) -> Vec<String> {
    let of =
        |role: Role| people.iter().filter(|(_, person)| person.role == role).map(|(pid, _)| *pid).collect::<Vec<_>>();
    let list = |pids: &[u32]| {
        let some: Vec<String> = pids.iter().take(16).map(u32::to_string).collect();
        if pids.len() > 16 { format!("{} and {} more", some.join(", "), pids.len() - 16) } else { some.join(", ") }
    };
    let mut parts = Vec::new();
    for (role, one, many) in [
        (Role::Master, "master", "masters"),
        (Role::Worker, "worker", "workers"),
        (Role::Loader, "loader", "loaders"),
        (Role::Tracker, "resource tracker", "resource trackers"),
        (Role::Device, "process that is on a GPU and reads nothing", "processes that are on a GPU and read nothing"),
    ] {
        let pids = of(role);
        if !pids.is_empty() {
            parts.push(format!("{} {} ({})", pids.len(), if pids.len() == 1 { one } else { many }, list(&pids)));
        }
    }
    if people.is_empty() {
        return Vec::new();
    }
    let by = match (processes.values().any(|seen| !seen.command.is_empty()), any_gpu) {
        (true, true) => "command lines, GPUs, readers and parents",
        (true, false) => "command lines and parents",
        (false, true) => "who is on a GPU and who reads",
        (false, false) => "names of programs",
    };
    vec![match parts.is_empty() {
        true => "Processes: nothing tells their parts; they are shown by command and pid.".to_owned(),
        false => format!("Processes, by {by}: {}.", parts.join(", ")),
    }]
}

#[cfg(test)]
mod tests;
