//! Streams that are flushed all the time or have no buffer.

use super::{Case, Kind, RuleInfo};
use crate::findings::calls::Call;
use crate::findings::evidence::Op;
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "tiny-buffers",
    title: "streams without a useful buffer",
    when: "A stream is flushed for nearly every write, or is unbuffered and used for small pieces.",
    advice: "Leave the stream its buffer, or give it a larger one (setvbuf); flush when a unit of work is complete.",
    thresholds: &[FLUSHES],
    kind: Kind::Plain,
    ask,
};

const FLUSHES: Threshold = Threshold::new(
    "tiny-buffers.flushes",
    0.5,
    "flushes per write",
    "A stream that is flushed after every other write hardly uses its buffer.",
);
/// Pieces below this are what a stream's buffer is for.
const SMALL_PIECE: u64 = 512;

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut writes, mut flushes) = (Vec::new(), 0, 0);
    for (process, file, pieces) in evidence.per_file(&[Op::StreamRead, Op::StreamWrite]) {
        let flushed = evidence.sum(process, file, Op::Flush);
        let written = evidence.sum(process, file, Op::StreamWrite).calls;
        let always = written > 0 && flushed.calls as f64 >= config.get(FLUSHES) * written as f64;
        let none =
            evidence.sum(process, file, Op::NoBuffer).calls > 0 && pieces.bytes / pieces.calls.max(1) < SMALL_PIECE;
        if always || none {
            let mut tally = pieces;
            tally.add(&flushed);
            (writes, flushes) = (writes + pieces.calls, flushes + flushed.calls);
            parts.push(Part { process, file: Some(file), tally });
        }
    }
    let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    let impact = weighed.impact;
    let what = format!(
        "{} calls on streams of {} by {} go with {} flushes or without a buffer, {} each on average; they cost {}.",
        units::count(writes),
        weighed.files(),
        weighed.processes(),
        units::count(flushes),
        units::bytes(impact.bytes / writes.max(1)),
        weighed.cost(),
    );
    let query = format!(
        "SELECT host, pid, path, name, count(*) AS calls, sum(dur_ns) / 1e9 AS seconds FROM events WHERE name IN ({}) \
         GROUP BY host, pid, path, name ORDER BY seconds DESC LIMIT 20",
        evidence.name_table.sql_names(&[Call::StreamRead, Call::StreamWrite, Call::Flush, Call::Buffering]),
    );
    case.finding(&RULE, weighed, what, query).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::lasting;
    use crate::findings::tests::check;

    #[test]
    fn flushes() {
        let flushed = |every: i64| {
            lasting(10, move |trace| {
                for place in 0..3_000 {
                    trace.call(1, "fwrite", "/data/log", 300, r#""ret":40"#);
                    if place % every == 0 {
                        trace.call(1, "fflush", "/data/log", 300, r#""ret":0"#);
                    }
                }
            })
        };
        check("tiny-buffers", &flushed(2), &flushed(3));
    }
}
