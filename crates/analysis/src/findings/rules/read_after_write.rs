//! Files that the job itself wrote are read back.

use super::{Case, Kind, RuleInfo};
use crate::findings::calls::Call;
use crate::findings::evidence::{Op, Tally};
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "read-after-write",
    title: "data passed on through files",
    when: "Bytes are read back from files that the job wrote before. The score counts half, since a part of this may be intended.",
    advice: "Keep the data in memory, pass it through a pipe or shared memory, or put such files on a local disk or tmpfs.",
    thresholds: &[BYTES, SHARE],
    kind: Kind::Ordered,
    ask,
};

const BYTES: Threshold =
    Threshold::new("read-after-write.bytes", 67108864.0, "bytes", "Less stays in the page cache and costs a copy.");
const SHARE: Threshold = Threshold::new(
    "read-after-write.share",
    0.1,
    "of the time",
    "Handing files to the next program is usual; here it must cost.",
);

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let mut parts = Vec::new();
    for ((process, file), pattern) in &case.sequences.patterns {
        if pattern.again_bytes > 0 {
            let when = case.span_of(*process, *file, &[Op::Read, Op::SmallRead]);
            let calls = pattern.reads.min(pattern.again_bytes);
            let tally = Tally { calls, bytes: pattern.again_bytes, ns: pattern.again_ns, ..when };
            parts.push(Part { process: *process, file: Some(*file), tally });
        }
    }
    // By another process, after the writer was done with the file.
    let mut writers = evidence.per_file(Op::WRITES);
    writers.sort_by_key(|(process, file, _)| (*file, *process));
    for (process, file, read) in evidence.per_file(&[Op::Read, Op::SmallRead, Op::StreamRead]) {
        let from = writers.partition_point(|(_, other, _)| *other < file);
        let mut written = 0;
        for (writer, _, tally) in writers[from..].iter().take_while(|(_, other, _)| *other == file) {
            if *writer != process && tally.end <= read.start {
                written += tally.bytes;
            }
        }
        let bytes = read.bytes.min(written);
        if bytes > 0 {
            let calls = (u128::from(read.calls) * u128::from(bytes) / u128::from(read.bytes.max(1))) as u64;
            parts.push(Part { process, file: Some(file), tally: read.part(calls, bytes) });
        }
    }
    if parts.iter().map(|part| part.tally.bytes).sum::<u64>() < config.count(BYTES) {
        return Vec::new();
    }
    let weighed = evidence.weigh(config, &parts);
    let Some(mut weighed) = weighed.filter(|weighed| weighed.impact.share >= config.get(SHARE)) else {
        return Vec::new();
    };
    weighed.score /= 2.0;
    let impact = weighed.impact;
    let what = format!(
        "{} that the job itself had written are read back from {} by {}; that costs {}.",
        units::bytes(impact.bytes),
        weighed.files(),
        weighed.processes(),
        weighed.cost(),
    );
    let reads = evidence.name_table.sql_names(&[Call::Read, Call::StreamRead]);
    let writes = evidence.name_table.sql_names(&[Call::Write, Call::StreamWrite]);
    let query = format!(
        "SELECT r.path, r.pid AS reader, w.pid AS writer, w.bytes AS written, r.bytes AS read, r.seconds FROM \
         (SELECT path, pid, min(ts_ns) AS start, sum(ret) AS bytes, sum(dur_ns) / 1e9 AS seconds FROM events WHERE name IN ({reads}) AND ret > 0 GROUP BY path, pid) r JOIN \
         (SELECT path, pid, min(ts_ns) AS start, sum(ret) AS bytes FROM events WHERE name IN ({writes}) AND ret > 0 GROUP BY path, pid) w \
         ON r.path = w.path AND r.start > w.start ORDER BY seconds DESC LIMIT 20"
    );
    case.finding(&RULE, weighed, what, query).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::{SECOND, Trace};
    use crate::findings::tests::check;

    #[test]
    fn written_and_read() {
        let again = |mebibytes: i64, reader: i64, first: bool| {
            let mut trace = Trace::new().process(1, "a", None).process(2, "a", None);
            let pass = |pid: i64, name: &str, trace: &mut Trace| {
                for place in 0..mebibytes {
                    trace.transfer(pid, name, "/data/x", 30_000, place << 20, 1 << 20);
                }
            };
            if first {
                pass(1, "write", &mut trace);
            }
            if reader == 2 {
                trace.call(2, "stat", "/data/other", mebibytes * 30_000, "");
            }
            pass(reader, "read", &mut trace);
            if !first {
                pass(1, "write", &mut trace);
            }
            trace.until(1, 10 * SECOND)
        };
        for reader in [1, 2] {
            let found = check("read-after-write", &again(64, reader, true), &again(63, reader, true));
            assert_eq!(found.at_stake.bytes, 64 << 20, "{found:#?}");
        }
        check("read-after-write", &again(64, 1, true), &again(64, 1, false));
    }
}
