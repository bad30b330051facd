//! A run that holds no events has a reason.

use std::path::Path;

use weftline_format::manifest::SupervisorRecord;

use super::RunTotals;
use crate::units;

/// Why a run holds no events, in one sentence: its supervisors know it.
pub fn without_events(run: &Path) -> String {
    let (records, _) = SupervisorRecord::read_all(run);
    let totals = RunTotals::of(&records);
    let reasons = if totals.failures.is_empty() { totals.untraced } else { totals.failures };
    let why = match reasons.is_empty() {
        _ if totals.events > 0 => {
            let events = units::counted(totals.events, "event", "events");
            format!("{events} were recorded, but the trace files (*.pfw.gz) are missing; copy them here")
        }
        false => units::printable(&reasons.join("; ")),
        true if records.is_empty() => {
            "no supervisor record: it is still in progress, or was started on another host".to_owned()
        }
        true if totals.open => "its program is still running, and nothing is written yet; try again later".to_owned(),
        true => "none of its programs made a traced call; see `weft doctor PROGRAM`".to_owned(),
    };
    format!("{} holds no events: {why}", run.display())
}

#[cfg(test)]
mod tests {
    use weftline_format::manifest::State;

    use super::*;

    #[test]
    fn supervisors_know_why() {
        let run = tempfile::tempdir().expect("a directory");
        let check = |record: Option<SupervisorRecord>, expected: &str| {
            record.iter().for_each(|record| record.write(run.path()).expect("written"));
            let said = without_events(run.path());
            assert!(said.contains("holds no events") && said.contains(expected), "{said}");
        };
        check(None, "no supervisor record");
        let with = |state, failure: Option<&str>| {
            let failure = failure.map(str::to_owned);
            Some(SupervisorRecord { state, failure, ..SupervisorRecord::default() })
        };
        check(with(State::Open, None), "still running");
        check(with(State::Complete, None), "none of its programs made a traced call");
        check(with(State::Complete, Some("no shared memory")), "no shared memory");
    }
}
