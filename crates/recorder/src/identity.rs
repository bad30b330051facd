//! The identity of a process in a parallel job: rank, world size and launcher, from the variables that launchers set.
//!
//! No MPI library is needed: every launcher passes the rank to its processes in the environment.

/// The launcher whose variables were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[allow(missing_docs, reason = "the names are the launchers' own")]
pub enum Launcher {
    None = 0,
    Torchrun = 1,
    OpenMpi = 2,
    Pmix = 3,
    Mpich = 4,
    Slurm = 5,
    Flux = 6,
    Lsf = 7,
}

/// Names of the launchers by number, as written to traces and manifests.
pub const LAUNCHER_NAMES: [&str; 8] = ["", "torchrun", "openmpi", "pmix", "mpich", "slurm", "flux", "lsf"];

/// What the environment says about this process's place in a parallel job. -1 is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Which launcher told us.
    pub launcher: Launcher,
    /// Global rank.
    pub rank: i32,
    /// Number of ranks.
    pub world_size: i32,
    /// Rank on this node.
    pub local_rank: i32,
}

impl Place {
    /// Not part of a parallel job.
    pub const ALONE: Place = Place { launcher: Launcher::None, rank: -1, world_size: -1, local_rank: -1 };
}

struct Names {
    launcher: Launcher,
    /// Without this one the launcher is not in play.
    rank: &'static str,
    world_size: &'static str,
    local_rank: &'static str,
}

/// Innermost launcher first: torchrun under Slurm sees both, and torchrun's ranks are the finer ones. A launcher counts only
/// if it says the rank *and* one more variable of its own is there: RANK alone is a common name.
const LAUNCHERS: &[Names] = &[
    Names { launcher: Launcher::Torchrun, rank: "RANK", world_size: "WORLD_SIZE", local_rank: "LOCAL_RANK" },
    Names {
        launcher: Launcher::OpenMpi,
        rank: "OMPI_COMM_WORLD_RANK",
        world_size: "OMPI_COMM_WORLD_SIZE",
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
    },
    Names { launcher: Launcher::Mpich, rank: "PMI_RANK", world_size: "PMI_SIZE", local_rank: "MPI_LOCALRANKID" },
    Names {
        launcher: Launcher::Flux,
        rank: "FLUX_TASK_RANK",
        world_size: "FLUX_JOB_SIZE",
        local_rank: "FLUX_TASK_LOCAL_ID",
    },
    Names {
        launcher: Launcher::Lsf,
        rank: "JSM_NAMESPACE_RANK",
        world_size: "JSM_NAMESPACE_SIZE",
        local_rank: "JSM_NAMESPACE_LOCAL_RANK",
    },
    Names { launcher: Launcher::Slurm, rank: "SLURM_PROCID", world_size: "SLURM_NTASKS", local_rank: "SLURM_LOCALID" },
    Names { launcher: Launcher::Pmix, rank: "PMIX_RANK", world_size: "PMIX_SIZE", local_rank: "PMIX_LOCAL_RANK" },
];

/// Variables of all launchers, innermost first.
pub fn rank_variables() -> impl Iterator<Item = &'static str> {
    LAUNCHERS.iter().flat_map(|names| [names.rank, names.world_size, names.local_rank])
}

/// Finds the process's place with `lookup`, which returns the value of a variable.
pub fn place<'a>(lookup: impl Fn(&str) -> Option<&'a [u8]>) -> Place {
    let number = |name: &str| lookup(name).and_then(parse);
    for names in LAUNCHERS {
        let Some(rank) = number(names.rank) else { continue };
        let (world_size, local_rank) = (number(names.world_size), number(names.local_rank));
        if world_size.is_none() && local_rank.is_none() && names.launcher == Launcher::Torchrun {
            continue;
        }
        return Place {
            launcher: names.launcher,
            rank,
            world_size: world_size.unwrap_or(-1),
            local_rank: local_rank.unwrap_or(-1),
        };
    }
    Place::ALONE
}

fn parse(text: &[u8]) -> Option<i32> {
    core::str::from_utf8(text).ok()?.parse().ok().filter(|n| *n >= 0)
}

/// Variables that name the job, in the order in which they are asked.
pub const JOB_ID_VARIABLES: &[&str] =
    &["SLURM_JOB_ID", "FLUX_JOB_ID", "LSB_JOBID", "PBS_JOBID", "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE"];
/// Variables that name the node within the job.
pub const NODE_ID_VARIABLES: &[&str] = &["SLURM_NODEID", "GROUP_RANK"];
