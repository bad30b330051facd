//! More time for names and attributes than for content.

use weftline_calls::IoCat;

use super::{Case, Kind, RuleInfo};
use crate::findings::calls::Call;
use crate::findings::evidence::Tally;
use crate::findings::weigh::Part;
use crate::findings::{Finding, Threshold};
use crate::units;

pub(super) const RULE: RuleInfo = RuleInfo {
    id: "metadata-bound",
    title: "more time for names than for content",
    when: "Most of the I/O time of a job that moves data goes to opening, closing, looking up and listing.",
    advice: "Pack many small files into few large ones (tar, WebDataset, HDF5, Parquet); open once; list once.",
    thresholds: &[PART, SECONDS, PER_FILE],
    kind: Kind::Yields(is_one_storm),
    ask,
};

const PART: Threshold = Threshold::new(
    "metadata-bound.part",
    0.5,
    "of the I/O time",
    "More time for names and attributes than for content (as in WisIO's rule).",
);
const SECONDS: Threshold = Threshold::new(
    "metadata-bound.seconds",
    1.0,
    "s",
    "Programs whose job is metadata (find, du, git status) are done by then.",
);
const PER_FILE: Threshold = Threshold::new(
    "metadata-bound.per-file",
    20.0,
    "calls per file",
    "To touch a file once takes fewer (zip and unzip: about ten), so packing, unpacking or copying a tree does not count.",
);

/// Where one storm is nearly all of the metadata, its name says more.
fn is_one_storm(own: &Finding, others: &[Finding]) -> bool {
    let storms = others.iter().filter(|finding| finding.rule.ends_with("-storm"));
    let largest = storms.map(|finding| finding.at_stake.time_ns).max().unwrap_or(0);
    largest >= own.at_stake.time_ns / 5 * 4
}

/// What one process does with names, and with content.
#[derive(Default)]
struct Shares {
    process: u32,
    names: Tally,
    content: Tally,
    files: u64,
    last_file: Option<u32>,
}

fn ask(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let mut parts: Vec<Part> = Vec::new();
    let (mut moved, mut other, mut metadata): (u64, Tally, Tally) = (0, Tally::default(), Tally::default());
    let mut per_process: Vec<Shares> = Vec::new();
    for ((process, file, op), tally) in &evidence.sums {
        if per_process.last().is_none_or(|last| last.process != *process) {
            per_process.push(Shares { process: *process, ..Shares::default() });
        }
        if let Some(shares) = per_process.last_mut() {
            (if op.is_metadata() { &mut shares.names } else { &mut shares.content }).add(tally);
            shares.files += u64::from(shares.last_file.replace(*file) != Some(*file));
        }
    }
    for Shares { process, names, content, files, .. } in per_process {
        // Programs that never touch content have no other job than names.
        let is_bound = names.ns as f64 >= config.get(PART) * (names.ns + content.ns) as f64;
        let is_more = names.calls as f64 >= config.get(PER_FILE) * files as f64;
        if is_bound && is_more && content.bytes > 0 {
            moved += content.bytes;
            other.add(&content);
            metadata.add(&names);
            parts.push(Part { process, file: None, tally: names });
        }
    }
    let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    let impact = weighed.impact;
    if impact.seconds() < config.get(SECONDS) {
        return Vec::new();
    }
    let what = format!(
        "{} calls about names and attributes by {} take {}, {} of the I/O time there and {} of the time, to move {}.",
        units::count(impact.calls),
        weighed.processes(),
        units::time(impact.time_ns as u64),
        units::percent(metadata.ns as f64 / (metadata.ns + other.ns).max(1) as f64),
        units::percent(impact.share),
        units::bytes(moved),
    );
    let calls = [
        Call::Open,
        Call::Close,
        Call::StatPath,
        Call::StatOpen,
        Call::Access,
        Call::Seek,
        Call::Tell,
        Call::Lock,
        Call::ChangeDirectory,
        Call::Metadata,
    ];
    debug_assert!(calls.iter().all(|call| call.io_cat() == IoCat::Metadata));
    let query = format!(
        "SELECT host, pid, name, count(*) AS calls, count(DISTINCT path) AS paths, sum(dur_ns) / 1e9 AS seconds FROM events \
         WHERE name IN ({}) GROUP BY host, pid, name ORDER BY seconds DESC LIMIT 20",
        evidence.name_table.sql_names(&calls),
    );
    case.finding(&RULE, weighed, what, query).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use crate::findings::tests::builder::lasting;
    use crate::findings::tests::check;

    #[test]
    fn more_names_than_content() {
        let bound = |per_file: i64, read_us: i64| {
            lasting(10, move |trace| {
                for file in 0..500 {
                    let path = format!("/data/{file}");
                    for _ in 0..per_file {
                        trace.call(1, "stat", &path, 500, r#""ret":0"#);
                    }
                    trace.transfer(1, "read", &path, read_us, 0, 5000);
                }
            })
        };
        check("metadata-bound", &bound(20, 10), &bound(19, 10));
        check("metadata-bound", &bound(20, 10_000), &bound(20, 10_001));
    }
}
