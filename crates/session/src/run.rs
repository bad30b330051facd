//! A run directory for a program that records without `weft run`: `run.json` as `weft run` would have written it.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use weftline_format::manifest::{Launcher, RECORD_DIR, RUN_FILE, RunManifest, record_stem, utc};
use weftline_recorder::identity::{self, JOB_ID_VARIABLES, LAUNCHER_NAMES, NODE_ID_VARIABLES};

use crate::error::{Result, SessionError};
use crate::host::Owner;

/// Makes the directory, or joins the run that another process has begun there. One that holds a finished run of another process is
/// left alone: two runs in one would be read as one, so `<directory>-2` is taken, and so on.
pub(crate) fn create(directory: &Path, app: &str, command: &[String], owner: &Owner) -> Result<PathBuf> {
    let directory = usable(directory, owner);
    fs::create_dir_all(&directory).map_err(SessionError::io(&directory))?;
    let directory = directory.canonicalize().map_err(SessionError::io(&directory))?;
    let created_ns = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64);
    let launcher = launcher();
    let manifest = RunManifest {
        id: random_id()?,
        name: app.to_owned(),
        command: command.to_vec(),
        cwd: std::env::current_dir().map(|cwd| cwd.to_string_lossy().into_owned()).unwrap_or_default(),
        created: utc::rfc3339(created_ns),
        created_ns,
        host: owner.host.clone(),
        node: launcher.node_id.clone().unwrap_or_else(|| owner.host.clone()),
        launcher,
        tool_version: concat!("weftline ", env!("CARGO_PKG_VERSION")).to_owned(),
        ..RunManifest::default()
    };
    match manifest.create(&directory) {
        Err(error) if error.kind() != Some(io::ErrorKind::AlreadyExists) => Err(error.into()),
        _ => Ok(directory),
    }
}

/// The directory itself, or the first numbered one that is free or still in use.
fn usable(directory: &Path, owner: &Owner) -> PathBuf {
    if !holds_finished_run(directory, owner) {
        return directory.to_owned();
    }
    let numbered = |n: u32| {
        let mut name = directory.as_os_str().to_owned();
        name.push(format!("-{n}"));
        PathBuf::from(name)
    };
    let is_usable = |candidate: &PathBuf| {
        !candidate.exists() || (candidate.join(RUN_FILE).is_file() && !holds_finished_run(candidate, owner))
    };
    (2..).map(numbered).find(is_usable).unwrap_or_else(|| directory.to_owned())
}

/// A run of others that have all ended.
fn holds_finished_run(directory: &Path, owner: &Owner) -> bool {
    let Ok(entries) = fs::read_dir(directory.join(RECORD_DIR)) else { return false };
    let names: Vec<String> = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let own = record_stem(&owner.host, owner.pid, owner.start, 0);
    directory.join(RUN_FILE).is_file()
        && !names.is_empty()
        && !names.iter().any(|name| name.ends_with(".live") || name.starts_with(&own))
}

fn random_id() -> Result<String> {
    let path = Path::new("/dev/urandom");
    let mut bytes = [0u8; 8];
    fs::File::open(path)
        .and_then(|mut file| io::Read::read_exact(&mut file, &mut bytes))
        .map_err(SessionError::io(path))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Rank, job and node of this process within a parallel job, from the variables of its launcher.
pub fn launcher() -> Launcher {
    let variables: Vec<_> =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))).collect();
    let lookup = |name: &str| variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_bytes());
    let place = identity::place(lookup);
    let known = |n: i32| u32::try_from(n).ok();
    let text =
        |names: &[&str]| names.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()));
    Launcher {
        kind: LAUNCHER_NAMES[place.launcher as usize].to_owned(),
        rank: known(place.rank),
        local_rank: known(place.local_rank),
        world_size: known(place.world_size),
        job_id: text(JOB_ID_VARIABLES),
        node_id: text(NODE_ID_VARIABLES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finished_run_of_others_is_left_alone() {
        let place = tempfile::tempdir().expect("a temporary directory");
        let wanted = place.path().join("run");
        let owner = Owner::here();
        let make = || create(&wanted, "app", &["app".to_owned()], &owner).expect("made");
        let first = make();
        let id = RunManifest::read(&first).expect("a manifest").id;
        assert_eq!(make(), first, "nothing has ended in it");
        assert_eq!(RunManifest::read(&first).expect("a manifest").id, id, "and its manifest stays");

        let records = first.join(RECORD_DIR);
        fs::create_dir(&records).expect("made");
        fs::write(records.join("host-1-2.json"), "{}").expect("written");
        let second = make();
        assert_eq!(second, first.with_file_name("run-2"));

        fs::write(records.join("host-3-4.live"), "{}").expect("written");
        assert_eq!(make(), first, "another process records into it");
        fs::remove_file(records.join("host-3-4.live")).expect("removed");
        fs::write(records.join(format!("{}.json", record_stem(&owner.host, owner.pid, owner.start, 0))), "{}")
            .expect("written");
        assert_eq!(make(), first, "it is our own");
    }
}
