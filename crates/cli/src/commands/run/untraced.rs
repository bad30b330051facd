//! Records that a program ran untraced, so that the run is not taken for a complete one.

use std::path::PathBuf;
use std::process::Child;
use std::time::Instant;

use weftline_collect::own::Own;
use weftline_drain::{RecoverOptions, tree_io};
use weftline_format::manifest::{IoCount, ProcessRecord, State, SupervisorRecord};

use super::{exit_of, search};
use crate::args::RunArgs;
use crate::rundir;
use crate::signals::{self, ChildState};

/// A failure of Weftline that makes the program run untraced.
#[derive(Default)]
pub(super) struct Untraced {
    /// Where it can be written down.
    pub(super) run: Option<PathBuf>,
    pub(super) why: String,
}

impl Untraced {
    /// Removes what was made so far, and records at once that this run is incomplete, in case this process is killed before the end.
    pub(super) fn begin(run: PathBuf, why: String) -> Untraced {
        // An error here has the same cause as the failure of tracing, which is reported.
        let _ = weftline_drain::recover(&run, &RecoverOptions::default());
        let record =
            SupervisorRecord { started_ns: rundir::now_ns(), failure: Some(why.clone()), ..Own::read().record(0) };
        let _ = record.write(&run);
        Untraced { run: Some(run), why }
    }

    /// Writes down that the program ran untraced, and why; itself when there is no place for that.
    pub(super) fn record(
        self,
        args: &RunArgs,
        child: &Child,
        state: ChildState,
        started: Instant,
    ) -> Result<(PathBuf, SupervisorRecord), Untraced> {
        let why = format!("the program ran untraced: {}", self.why);
        let Some(run) = self.run else { return Err(Untraced { run: None, why }) };
        let elapsed = started.elapsed().as_nanos() as u64;
        let process = ProcessRecord {
            pid: child.id(),
            ppid: std::process::id(),
            host: rundir::host(),
            exe: search(&args.command[0]).unwrap_or_default().display().to_string(),
            exit: Some(exit_of(state)),
            untraced: Some(self.why.clone()),
            ..ProcessRecord::default()
        };
        let ended_ns = rundir::now_ns();
        let record = SupervisorRecord {
            state: State::Complete,
            started_ns: ended_ns.saturating_sub(elapsed as i64),
            ended_ns,
            exit: Some(exit_of(state)),
            failure: Some(self.why),
            wall_ns: elapsed,
            cpu_ns: signals::children_cpu_ns(),
            tree_io: tree_io().map(|io| IoCount { rchar: io.rchar, wchar: io.wchar }),
            processes: vec![process],
            ..Own::read().record(0)
        };
        match record.write(&run) {
            Ok(()) => Ok((run, record)),
            Err(error) => Err(Untraced { run: None, why: format!("{why}; {error}") }),
        }
    }
}
