//! Rank, job and node of this command itself, from the variables of its launcher.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use weftline_format::manifest::Launcher;
use weftline_recorder::identity::{self, JOB_ID_VARIABLES, LAUNCHER_NAMES, NODE_ID_VARIABLES};

/// What the environment says.
pub(crate) fn identity() -> Launcher {
    let variables: Vec<(String, OsString)> =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
    let lookup = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_bytes());
    let place = identity::place(lookup);
    let text =
        |names: &[&str]| names.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    let known = |n: i32| u32::try_from(n).ok();
    Launcher {
        kind: LAUNCHER_NAMES[place.launcher as usize].to_owned(),
        rank: known(place.rank),
        local_rank: known(place.local_rank),
        world_size: known(place.world_size),
        job_id: text(JOB_ID_VARIABLES),
        node_id: text(NODE_ID_VARIABLES),
    }
}
