//! What a report asks of a run, in one planned pass over its events.
//!
//! The summary and the findings say which columns they need; each row group that the question's filter lets through is read once, with all of them. Sums
//! do not mind the order in which threads see row groups; what does (`findings::sequences`) is followed in the order of the files beside it. Memory
//! depends on what is told apart (processes, files, open streams), not on the number of events: ranges of time are kept only of runs with few
//! spans, and gathered window by window of others.

use weftline_index::Run;

use crate::Result;
use crate::findings::{Config, Gathering, Verdict, judge};
use crate::summary::{Question, Summary, time_filter};

/// Sums up the events that a question is about and judges them, where it is asked with a configuration of rules.
pub fn report(run: &Run, question: &Question, rules: Option<&Config>) -> Result<(Summary, Verdict)> {
    let Some(config) = rules else { return Ok((Summary::of(run, question)?, Verdict::default())) };
    run.prepare()?;
    let times = run.times();
    let (origin, _) = times.spans.or(times.all).unwrap_or((0, 0));
    let gathering = Gathering::new(run, config, time_filter(question, origin));
    let (summary, states) = Summary::beside(run, question, Some(&gathering))?;
    let (evidence, sequences) = gathering.finish(run, states)?;
    Ok((summary, judge(run, &evidence, &sequences, config)))
}

#[cfg(test)]
mod tests {
    use weftline_index::Filter;

    use super::*;
    use crate::condition::Condition;
    use crate::findings::tests::builder::Trace;
    use crate::findings::{Severity, findings};

    const SECOND: i64 = 1_000_000_000;

    /// Small reads in the first ten seconds, a large read in each of the ten after them.
    fn trace() -> Trace {
        let mut trace = Trace::new().process(1, "node", None);
        for _ in 0..20_000 {
            trace.call(1, "read", "/data/x", 500, "\"size\":100,\"ret\":100");
        }
        for _ in 0..10 {
            trace.call(1, "read", "/data/x", 1_000_000, "\"size\":4194304,\"ret\":4194304");
        }
        trace
    }

    /// What a report of a part of the time says: its events, and whether reads are too small.
    fn check(from: Option<i64>, to: Option<i64>, events: u64, small: bool) {
        let trace = trace();
        let directory = trace.write();
        let run = trace.open(directory.path());
        let question = Question { from, to, ..Question::default() };
        let (summary, verdict) = report(&run, &question, Some(&Config::default())).expect("judged");
        assert_eq!(summary.job.events, events, "{from:?} {to:?}");
        let said = verdict.findings.iter().any(|finding| finding.rule == "small-reads");
        assert_eq!(said, small, "{from:?} {to:?}: {:#?}", verdict.findings);
        let (alone, nothing) = report(&run, &question, None).expect("summed up");
        assert_eq!((alone, nothing), (summary, Verdict::default()), "findings change no sum");
        if (from, to) == (None, None) {
            assert_eq!(verdict, findings(&run, &Config::default()).expect("judged"));
        }
    }

    /// How the rest of the time was spent cannot be told from some of the events.
    #[test]
    fn conditions_on_events_leave_the_wall_time_alone() {
        let trace = trace().span(1, "POSIX", "wait4", 20_000_000, 50_000_000, "");
        let directory = trace.write();
        let path = directory.path().join("trace.pfw");
        let text = std::fs::read_to_string(&path).expect("own file");
        std::fs::write(&path, text + "{\"name\":\"torn\n").expect("own file");
        let run = trace.open(directory.path());
        let ask = |condition: &str, from: Option<i64>| {
            let filter = match condition {
                "" => Filter::default(),
                text => Condition::parse(text).expect(text).filter(Filter::default()),
            };
            let question = Question { from, filter, ..Question::default() };
            report(&run, &question, Some(&Config::default())).expect("judged").1
        };
        let lost = |verdict: &Verdict| {
            let about = verdict.findings.iter().find(|finding| finding.rule == "lost-coverage");
            about.map(|finding| finding.severity)
        };
        for (condition, from, split, expected, headline) in [
            (
                "",
                None,
                true,
                Some(Severity::Medium),
                "Waiting takes 50.00 s of 70.00 s (71.4 %), mostly for a child process",
            ),
            ("", Some(30 * SECOND), true, Some(Severity::Medium), "Waiting takes 40.00 s of 40.00 s (100 %)"),
            ("name = 'read'", None, false, Some(Severity::Low), "Small reads: 10.00 s of 70.00 s (14.3 %)"),
            ("cat = 'posix' AND path = '/data/x'", None, false, Some(Severity::Low), "Small reads: 10.00 s of"),
            ("name = 'wait4'", None, false, Some(Severity::Low), "No finding among the selected events; "),
            ("name = 'nosuch'", None, false, None, "No finding among the selected events; "),
        ] {
            let verdict = ask(condition, from);
            assert_eq!(verdict.wall.is_some(), split, "{condition} {from:?}: {verdict:#?}");
            assert_eq!(lost(&verdict), expected, "{condition} {from:?}: {:#?}", verdict.findings);
            let said = verdict.headline().expect("something");
            assert!(said.starts_with(headline), "{condition} {from:?}: {said}");
        }
    }

    #[test]
    fn findings_are_about_the_events_of_the_question() {
        check(None, None, 20_010, true);
        check(None, Some(10 * SECOND), 20_000, true);
        check(Some(10 * SECOND + 1), None, 10, false);
        check(Some(30 * SECOND), None, 0, false);
    }
}
