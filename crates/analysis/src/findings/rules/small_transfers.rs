//! Reads and writes that are smaller than a page.

use super::{Case, Kind, RuleInfo};
use crate::findings::calls::Call;
use crate::findings::evidence::Op;
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const READS: RuleInfo = RuleInfo {
    id: "small-reads",
    title: "small reads",
    when: "Most reads of a file by a process request less than a page from the kernel. Reads from streams do not count: a stream buffers them.",
    advice: "Read larger pieces, or through a buffer: a stream, BufReader, io.BufferedReader; pack small records into larger ones.",
    thresholds: &[READ_SIZE, READ_PART],
    kind: Kind::Plain,
    ask: small_reads,
};

pub(super) const WRITES: RuleInfo = RuleInfo {
    id: "small-writes",
    title: "small writes",
    when: "Most writes of a process to a file pass less than a page to the kernel.",
    advice: "Buffer output and write it in pieces of 64 KiB or more; do not flush after every line.",
    thresholds: &[WRITE_SIZE, WRITE_PART],
    kind: Kind::Plain,
    ask: small_writes,
};

pub(crate) const READ_SIZE: Threshold = Threshold::new(
    "small-reads.size",
    4096.0,
    "bytes",
    "A call below one page costs more for itself than for its bytes.",
);
const READ_PART: Threshold =
    Threshold::new("small-reads.part", 0.5, "of the reads", "A format with a few small headers does not count.");
pub(crate) const WRITE_SIZE: Threshold = Threshold::new(
    "small-writes.size",
    4096.0,
    "bytes",
    "As for reads; also, part of a page may have to be read before it can be written.",
);
const WRITE_PART: Threshold = Threshold::new("small-writes.part", 0.5, "of the writes", "As for reads.");

fn small_reads(case: &Case<'_>) -> Vec<Finding> {
    let sizes = Small {
        rule: &READS,
        small: Op::SmallRead,
        large: Op::Read,
        call: Call::Read,
        verb: "reads",
        size: READ_SIZE,
        part: READ_PART,
    };
    sizes.ask(case)
}

fn small_writes(case: &Case<'_>) -> Vec<Finding> {
    let sizes = Small {
        rule: &WRITES,
        small: Op::SmallWrite,
        large: Op::Write,
        call: Call::Write,
        verb: "writes",
        size: WRITE_SIZE,
        part: WRITE_PART,
    };
    sizes.ask(case)
}

struct Small {
    rule: &'static RuleInfo,
    small: Op,
    large: Op,
    call: Call,
    verb: &'static str,
    size: Threshold,
    part: Threshold,
}

impl Small {
    fn ask(&self, case: &Case<'_>) -> Vec<Finding> {
        let (evidence, config) = (case.evidence, case.config);
        let mut parts = Vec::new();
        let mut all = 0;
        for (process, file, tally) in evidence.per_file(&[self.small]) {
            let others = evidence.sum(process, file, self.large).calls;
            if tally.calls as f64 >= config.get(self.part) * (tally.calls + others) as f64 {
                all += tally.calls + others;
                parts.push(Part { process, file: Some(file), tally });
            }
        }
        let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
        let (impact, limit) = (weighed.impact, config.count(self.size));
        let what = format!(
            "{} of {} {} on {} by {} move less than {} each, {} on average; they cost {}.",
            units::count(impact.calls),
            units::count(all),
            self.verb,
            weighed.files(),
            weighed.processes(),
            units::bytes(limit),
            units::bytes(impact.bytes / impact.calls.max(1)),
            weighed.cost(),
        );
        let query = format!(
            "SELECT host, pid, path, count(*) AS calls, sum(ret) AS bytes, sum(dur_ns) / 1e9 AS seconds FROM events \
             WHERE name IN ({}) AND ret > 0 AND coalesce(size, ret) < {limit} GROUP BY host, pid, path ORDER BY seconds DESC LIMIT 20",
            evidence.name_table.sql_names(&[self.call]),
        );
        case.finding(self.rule, weighed, what, query).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::{lasting, transfers};
    use crate::findings::tests::check;

    #[test]
    fn small_transfers() {
        for (rule, name) in [("small-reads", "read"), ("small-writes", "write")] {
            let at = |bytes| lasting(10, transfers(name, 20_000, 200, bytes));
            let found = check(rule, &at(4095), &at(4096));
            assert_eq!((found.at_stake.calls, found.at_stake.time_ns), (20_000, 4_000_000_000), "{found:#?}");
            assert_eq!(found.place.files, ["/data/x"]);
            assert!((found.at_stake.share - 0.4).abs() < 1e-9 && (found.score - 0.8).abs() < 1e-9, "{found:#?}");
            // The pattern is there, and costs a twentieth of the time, or just less.
            check(
                rule,
                &lasting(80, transfers(name, 20_000, 200, 100)),
                &lasting(81, transfers(name, 20_000, 200, 100)),
            );
            // As many small ones as large ones, or fewer.
            let mixed = |large: i64| {
                lasting(10, move |trace| {
                    transfers(name, 10_000, 200, 100)(trace);
                    (0..large).for_each(|place| {
                        trace.transfer(1, name, "/data/x", 1, place * 8192, 8192);
                    });
                })
            };
            check(rule, &mixed(10_000), &mixed(10_001));
        }
    }

    #[test]
    fn streams_are_not_small_reads() {
        let stream = lasting(10, transfers("fread", 20_000, 200, 10));
        check("small-reads", &lasting(10, transfers("read", 20_000, 200, 10)), &stream);
    }

    #[test]
    fn waiting_for_pipes_is_no_io() {
        let on = |path: &'static str| {
            lasting(10, move |trace| {
                for _ in 0..100 {
                    trace.call(1, "read", path, 50_000, r#""fd":0,"size":100,"ret":10"#);
                }
            })
        };
        check("small-reads", &on("/data/x"), &on("pipe:[123]"));
        check("small-reads", &on("/data/x"), &on("/dev/tty"));
    }
}
