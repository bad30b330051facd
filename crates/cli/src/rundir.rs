//! Run directories: creates one for a new run, finds one for a verb that reads.

use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, anyhow, bail};
use weftline_format::manifest::{ManifestError, RECORD_DIR, RUN_FILE, RunManifest, SupervisorRecord, utc};
use weftline_format::secrets::Arguments;
use weftline_index::IndexError;
use weftline_index::input::TraceSet;
pub(crate) use weftline_index::rundir::{RUNS, is_run, newest_of, runs_in, trace_bytes, traces_in};

use crate::args;
use crate::bar::Bar;
use crate::usage::{self, Usage};

/// Nanoseconds since the epoch.
pub(crate) fn now_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos() as i64)
}

/// Name of this host, as files carry it.
pub(crate) fn host() -> String {
    fs::read_to_string("/proc/sys/kernel/hostname")
        .map(|name| name.trim().to_owned())
        .unwrap_or_else(|_| "localhost".into())
}

/// A run directory that is ready, and what the user should know about it.
pub(crate) struct Created {
    pub(crate) directory: PathBuf,
    pub(crate) notice: Option<String>,
}

/// Makes the directory and `run.json`, or joins a run that another node or rank has begun in the same `-o` directory. A directory that
/// holds a finished run is left alone: two runs in one would be read as one.
pub(crate) fn create(
    output: Option<&Path>,
    name: Option<&str>,
    command: &[OsString],
    share: bool,
    arguments: Arguments,
) -> anyhow::Result<Created> {
    let created_ns = now_ns();
    let program = command
        .first()
        .map_or("run".into(), |program| Path::new(program).file_name().unwrap_or(program).to_string_lossy());
    // `python3 train.py` is named by its script, unless arguments are not kept.
    let tells = program.starts_with("python") && arguments != Arguments::Omitted;
    let script = command.get(1).filter(|_| tells).map(|script| script.to_string_lossy());
    let shown = name.map(str::to_owned).unwrap_or_else(|| match script {
        Some(script) if script.ends_with(".py") => {
            Path::new(&*script).file_name().unwrap_or_default().to_string_lossy().into_owned()
        }
        _ => program.into_owned(),
    });
    let id = random_id()?;
    let launcher = weftline_session::launcher();
    let mut notice = None;
    let directory = match output {
        Some(output) if launcher.rank.is_none() && holds_finished_run(output) => {
            let free = next_free(output);
            notice = Some(format!("{} already holds a run; this one goes to {}", output.display(), free.display()));
            free
        }
        Some(output) => output.to_owned(),
        None => Path::new(RUNS).join(format!("{}-{}-{}", utc::compact(created_ns), safe(&shown), &id[..4])),
    };
    let directory = make(&directory, share)?;
    let manifest = RunManifest {
        id,
        name: shown,
        command: arguments.kept(command.iter().map(|word| word.to_string_lossy().into_owned())),
        cwd: std::env::current_dir().map(|cwd| cwd.to_string_lossy().into_owned()).unwrap_or_default(),
        created: utc::rfc3339(created_ns),
        created_ns,
        host: host(),
        node: launcher.node_id.clone().unwrap_or_else(host),
        launcher,
        tool_version: format!("weft {}", args::VERSION),
        ..RunManifest::default()
    };
    begin(&manifest, &directory)?;
    Ok(Created { directory, notice })
}

/// Makes the directory of a run that is sampled, or joins the run that is there: collectors share it with each other and with programs.
pub(crate) fn join(
    output: Option<&Path>,
    id: Option<&str>,
    node: &str,
    stage: Option<&str>,
    share: bool,
    arguments: Arguments,
) -> anyhow::Result<PathBuf> {
    let created_ns = now_ns();
    let fresh = random_id()?;
    let directory = match (output, id) {
        (Some(output), _) => output.to_owned(),
        (None, Some(id)) => Path::new(RUNS).join(id),
        (None, None) => Path::new(RUNS).join(format!("{}-collect-{}", utc::compact(created_ns), &fresh[..4])),
    };
    let directory = make(&directory, share)?;
    let manifest = RunManifest {
        id: id.map_or(fresh, str::to_owned),
        name: "collect".into(),
        command: arguments.kept(std::env::args_os().map(|word| word.to_string_lossy().into_owned())),
        cwd: std::env::current_dir().map(|cwd| cwd.to_string_lossy().into_owned()).unwrap_or_default(),
        created: utc::rfc3339(created_ns),
        created_ns,
        host: host(),
        node: node.to_owned(),
        stage: stage.map(str::to_owned),
        tool_version: format!("weft {}", args::VERSION),
        ..RunManifest::default()
    };
    begin(&manifest, &directory)?;
    Ok(directory)
}

/// Writes `run.json`, unless another node or rank has.
fn begin(manifest: &RunManifest, directory: &Path) -> anyhow::Result<()> {
    match manifest.create(directory) {
        Err(error) if error.kind() == Some(io::ErrorKind::AlreadyExists) => Ok(()),
        Err(ManifestError::Io { source, .. }) => Err(unusable("use", directory, &source)),
        other => Ok(other?),
    }
}

/// The error for a directory that the system refuses: wrong usage, unless the disk is full.
fn unusable(verb: &str, directory: &Path, source: &io::Error) -> anyhow::Error {
    let what = format!("cannot {verb} the run directory {}: {source}", directory.display());
    match usage::is_wrong_place(source) {
        true => Usage::error(format!("{what}; choose another directory with -o")),
        false => anyhow!(what),
    }
}

/// Makes a run directory: for its owner alone, or for whom the umask lets in. One that is there keeps its mode; files follow it. Its whole path.
fn make(directory: &Path, share: bool) -> anyhow::Result<PathBuf> {
    let refused = |source: io::Error| unusable("make", directory, &source);
    if directory.starts_with(RUNS)
        && let Ok(data) = fs::symlink_metadata(RUNS)
        && ![0, rustix::process::geteuid().as_raw()].contains(&data.uid())
    {
        return Err(Usage::error(format!(
            "{RUNS} here belongs to another user, who could replace the run; choose another directory with -o"
        )));
    }
    if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        fs::create_dir_all(parent).map_err(refused)?;
    }
    match DirBuilder::new().mode(if share { 0o777 } else { 0o700 }).create(directory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {}
        made => made.map_err(refused)?,
    }
    directory.canonicalize().map_err(|source| unusable("use", directory, &source))
}

/// A run whose supervisors have all ended and left nothing to recover. Collectors do not count: a program may come to be traced while it
/// is sampled.
fn holds_finished_run(directory: &Path) -> bool {
    if SupervisorRecord::read_all(directory).0.iter().all(SupervisorRecord::only_samples) {
        return false;
    }
    let Ok(entries) = fs::read_dir(directory.join(RECORD_DIR)) else { return false };
    let mut names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).peekable();
    directory.join(RUN_FILE).is_file() && names.peek().is_some() && !names.any(|name| name.ends_with(".live"))
}

/// `runs/first-2`, `runs/first-3`, …
fn next_free(directory: &Path) -> PathBuf {
    let numbered = |n: u32| {
        let mut name = directory.as_os_str().to_owned();
        name.push(format!("-{n}"));
        PathBuf::from(name)
    };
    (2..).map(numbered).find(|candidate| !candidate.exists()).unwrap_or_else(|| numbered(0))
}

/// Sixteen random hexadecimal digits.
fn random_id() -> anyhow::Result<String> {
    let mut bytes = [0u8; 8];
    io::Read::read_exact(&mut fs::File::open("/dev/urandom").context("cannot open /dev/urandom")?, &mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A name that is good in a path on any system.
fn safe(name: &str) -> String {
    let kept: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_') { c } else { '_' })
        .take(40)
        .collect();
    if kept.trim_matches('.').is_empty() { "run".into() } else { kept }
}

/// What a verb was asked to read.
pub(crate) enum Source {
    /// A directory made by `weft run`.
    Run(PathBuf),
    /// Trace files of any kind.
    Files(Vec<PathBuf>),
}

/// Finds what the user means: the newest run when nothing is given.
pub(crate) fn find(given: &[PathBuf]) -> anyhow::Result<Source> {
    match given {
        [] => newest().map(Source::Run),
        [one] if is_run(one) => Ok(Source::Run(one.clone())),
        [one] if let Some(run) = weftline_index::input::imported(one, &Bar::default())? => Ok(Source::Run(run)),
        // The same files that a report of it would be made of.
        named => match weftline_index::input::resolve(named, &[], &Bar::default()) {
            Ok(sets) => {
                let files = |set: &TraceSet| set.files.iter().map(|file| set.path(file)).collect::<Vec<_>>();
                Ok(Source::Files(sets.iter().flat_map(files).collect()))
            }
            Err(IndexError::NoTraces { path }) if path.is_dir() => bail!(
                "{} is not a run: it has neither {RUN_FILE} nor trace files; runs without -o are in {RUNS}/",
                path.display()
            ),
            Err(error) => Err(error.into()),
        },
    }
}

/// The directory of the first of some files: where they are said to be.
pub(crate) fn place_of(files: &[PathBuf]) -> &Path {
    files.first().and_then(|first| first.parent()).unwrap_or(Path::new("."))
}

/// The newest run in the default directory.
pub(crate) fn newest() -> anyhow::Result<PathBuf> {
    newest_of(runs_in(Path::new(RUNS))?.into_iter().filter(|path| is_run(path)))
        .with_context(|| format!("no run in ./{RUNS}; give a path, or record one with `weft run -- PROGRAM`"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A run that began at this time.
    pub(crate) fn begun(place: &Path, name: &str, created_ns: i64) -> PathBuf {
        let run = place.join(name);
        fs::create_dir(&run).expect("made");
        let manifest = RunManifest { id: name.to_owned(), created_ns, ..RunManifest::default() };
        manifest.create(&run).expect("written");
        run
    }

    #[test]
    fn names_become_safe() {
        for (name, expected) in [("train.py", "train.py"), ("a b/c\n", "a_b_c_"), ("..", "run"), ("", "run")] {
            assert_eq!(safe(name), expected);
        }
    }
}
