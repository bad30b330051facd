//! Rules about how content is moved: sizes, places, repetition, durability.

use super::Case;
use crate::findings::Finding;
use crate::findings::calls::Call;
use crate::findings::evidence::{Op, Tally};
use crate::findings::thresholds::Limit;
use crate::findings::weigh::Part;
use crate::units;

pub(super) fn small_reads(case: &Case<'_>) -> Vec<Finding> {
    let sizes = Small {
        rule: "small-reads",
        small: Op::SmallRead,
        large: Op::Read,
        call: Call::Read,
        verb: "reads",
        size: Limit::SmallRead,
        part: Limit::SmallReadPart,
    };
    sizes.ask(case)
}

pub(super) fn small_writes(case: &Case<'_>) -> Vec<Finding> {
    let sizes = Small {
        rule: "small-writes",
        small: Op::SmallWrite,
        large: Op::Write,
        call: Call::Write,
        verb: "writes",
        size: Limit::SmallWrite,
        part: Limit::SmallWritePart,
    };
    sizes.ask(case)
}

struct Small {
    rule: &'static str,
    small: Op,
    large: Op,
    call: Call,
    verb: &'static str,
    size: Limit,
    part: Limit,
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

pub(super) fn random_access(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut all) = (Vec::new(), 0);
    for ((process, file), pattern) in &case.sequences.patterns {
        let calls = pattern.random_reads + pattern.random_writes;
        let bytes = pattern.random_read_bytes + pattern.random_write_bytes;
        let transfers = pattern.reads + pattern.writes;
        let often = calls as f64 >= config.get(Limit::RandomPart) * transfers as f64;
        if calls == 0 || !often || bytes / calls > config.count(Limit::RandomSize) {
            continue;
        }
        all += transfers;
        let ns = pattern.random_read_ns + pattern.random_write_ns;
        let when = span_of(case, *process, *file, &[Op::Read, Op::SmallRead, Op::Write, Op::SmallWrite]);
        parts.push(Part { process: *process, file: Some(*file), tally: Tally { calls, bytes, ns, ..when } });
    }
    if parts.iter().map(|part| part.tally.calls).sum::<u64>() < config.count(Limit::RandomCalls) {
        return Vec::new();
    }
    let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    let impact = weighed.impact;
    let what = format!(
        "{} of {} transfers on {} by {} jump to another place, with {} each on average; they cost {}.",
        units::count(impact.calls),
        units::count(all),
        weighed.files(),
        weighed.processes(),
        units::bytes(impact.bytes / impact.calls.max(1)),
        weighed.cost(),
    );
    let query = format!(
        "SELECT host, pid, path, count(*) AS jumps, sum(dur_ns) / 1e9 AS seconds FROM (SELECT host, pid, path, ret, dur_ns, \
         \"offset\" - lag(\"offset\" + ret) OVER (PARTITION BY host, pid, tid, path, fd ORDER BY ts_ns) AS gap FROM events \
         WHERE name IN ({}) AND ret > 0) WHERE gap < 0 OR gap > {} GROUP BY host, pid, path ORDER BY seconds DESC LIMIT 20",
        evidence.name_table.sql_names(&[Call::Read, Call::Write]),
        config.count(Limit::RandomGap),
    );
    case.finding("random-access", weighed, what, query).into_iter().collect()
}

/// When a process was busy with a file, as an otherwise empty sum.
fn span_of(case: &Case<'_>, process: u32, file: u32, ops: &[Op]) -> Tally {
    let mut sum = Tally::default();
    ops.iter().for_each(|op| sum.add(&case.evidence.sum(process, file, *op)));
    Tally { calls: 0, bytes: 0, ns: 0, ..sum }
}

pub(super) fn re_reads(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut all, mut distinct) = (Vec::new(), 0, 0);
    for ((process, file), pattern) in &case.sequences.patterns {
        let extent = pattern.read_to - pattern.read_from;
        if pattern.read_bytes == 0 || (pattern.read_bytes as f64) < config.get(Limit::RereadFactor) * extent as f64 {
            continue;
        }
        let bytes = pattern.read_bytes - extent;
        let scaled = |sum: u64| (u128::from(sum) * u128::from(bytes) / u128::from(pattern.read_bytes)) as u64;
        all += pattern.read_bytes;
        distinct += extent;
        let when = span_of(case, *process, *file, &[Op::Read, Op::SmallRead]);
        let tally = Tally { calls: scaled(pattern.reads), bytes, ns: scaled(pattern.read_ns), ..when };
        parts.push(Part { process: *process, file: Some(*file), tally });
    }
    if all - distinct < config.count(Limit::RereadBytes) {
        return Vec::new();
    }
    let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    let what = format!(
        "{} read {} from {} of {}: every byte {} times on average; the repetitions cost {}.",
        weighed.processes(),
        units::bytes(all),
        weighed.files(),
        units::bytes(distinct),
        units::tenths(all as f64 / distinct.max(1) as f64),
        weighed.cost(),
    );
    let query = format!(
        "SELECT host, pid, path, sum(ret) AS bytes, max(\"offset\" + ret) - min(\"offset\") AS extent, sum(dur_ns) / 1e9 AS seconds \
         FROM events WHERE name IN ({}) AND ret > 0 GROUP BY host, pid, path HAVING sum(ret) >= {} * (max(\"offset\" + ret) - min(\"offset\")) \
         ORDER BY seconds DESC LIMIT 20",
        evidence.name_table.sql_names(&[Call::Read]),
        config.get(Limit::RereadFactor),
    );
    case.finding("re-reads", weighed, what, query).into_iter().collect()
}

pub(super) fn unaligned(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut all) = (Vec::new(), 0);
    for ((process, file), pattern) in &case.sequences.patterns {
        let often = pattern.unaligned as f64 >= config.get(Limit::UnalignedPart) * pattern.large as f64;
        if pattern.unaligned == 0 || !often {
            continue;
        }
        all += pattern.large;
        let when = span_of(case, *process, *file, &[Op::Read, Op::Write]);
        let tally =
            Tally { calls: pattern.unaligned, bytes: pattern.unaligned_bytes, ns: pattern.unaligned_ns, ..when };
        parts.push(Part { process: *process, file: Some(*file), tally });
    }
    if parts.iter().map(|part| part.tally.calls).sum::<u64>() < config.count(Limit::UnalignedCalls) {
        return Vec::new();
    }
    let Some(mut weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    weighed.score /= 2.0;
    let (impact, block) = (weighed.impact, config.count(Limit::UnalignedBlock));
    let what = format!(
        "{} of {} transfers of {} or more on {} by {} begin inside a block; they cost {}.",
        units::count(impact.calls),
        units::count(all),
        units::bytes(block),
        weighed.files(),
        weighed.processes(),
        weighed.cost(),
    );
    let query = format!(
        "SELECT host, pid, path, count(*) AS calls, sum(ret) AS bytes, sum(dur_ns) / 1e9 AS seconds FROM events \
         WHERE name IN ({}) AND ret >= {block} AND \"offset\" % {block} <> 0 GROUP BY host, pid, path ORDER BY seconds DESC LIMIT 20",
        evidence.name_table.sql_names(&[Call::Read, Call::Write]),
    );
    case.finding("unaligned-io", weighed, what, query).into_iter().collect()
}

/// Pieces below this are what a stream's buffer is for.
const SMALL_PIECE: u64 = 512;

pub(super) fn tiny_buffers(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut writes, mut flushes) = (Vec::new(), 0, 0);
    for (process, file, pieces) in evidence.per_file(&[Op::StreamRead, Op::StreamWrite]) {
        let flushed = evidence.sum(process, file, Op::Flush);
        let written = evidence.sum(process, file, Op::StreamWrite).calls;
        let always = written > 0 && flushed.calls as f64 >= config.get(Limit::TinyBufferPart) * written as f64;
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
    case.finding("tiny-buffers", weighed, what, query).into_iter().collect()
}

pub(super) fn fsync_per_write(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let (mut parts, mut writes, mut syncs) = (Vec::new(), 0, 0);
    let ops = [Op::WRITES, &[Op::Sync, Op::OpenSync]].concat();
    for (process, file, _) in evidence.per_file(&ops) {
        let mut written = Tally::default();
        Op::WRITES.iter().for_each(|op| written.add(&evidence.sum(process, file, *op)));
        let synced = evidence.sum(process, file, Op::Sync);
        // Every write to a file that was opened so waits for the disk.
        let tally = match evidence.sum(process, file, Op::OpenSync).calls {
            0 if synced.calls == 0 => continue,
            0 => Tally { bytes: written.bytes, ..synced },
            _ => written,
        };
        if tally.bytes >= config.count(Limit::SyncBytes).saturating_mul(tally.calls) {
            continue;
        }
        syncs += tally.calls;
        writes += written.calls;
        parts.push(Part { process, file: Some(file), tally });
    }
    if syncs < config.count(Limit::SyncCalls) {
        return Vec::new();
    }
    let Some(weighed) = evidence.weigh(config, &parts) else { return Vec::new() };
    let impact = weighed.impact;
    let what = format!(
        "{} writes to {} by {} ({}) wait for the disk {} times; that costs {}.",
        units::count(writes),
        weighed.files(),
        weighed.processes(),
        units::bytes(impact.bytes),
        units::count(syncs),
        weighed.cost(),
    );
    let query = format!(
        "SELECT host, pid, path, name, count(*) AS calls, sum(dur_ns) / 1e9 AS seconds FROM events WHERE name IN ({}) \
         GROUP BY host, pid, path, name ORDER BY seconds DESC LIMIT 20",
        evidence.name_table.sql_names(&[Call::Sync, Call::Write, Call::StreamWrite]),
    );
    case.finding("fsync-per-write", weighed, what, query).into_iter().collect()
}

pub(super) fn read_after_write(case: &Case<'_>) -> Vec<Finding> {
    let (evidence, config) = (case.evidence, case.config);
    let mut parts = Vec::new();
    for ((process, file), pattern) in &case.sequences.patterns {
        if pattern.again_bytes > 0 {
            let when = span_of(case, *process, *file, &[Op::Read, Op::SmallRead]);
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
    if parts.iter().map(|part| part.tally.bytes).sum::<u64>() < config.count(Limit::AgainBytes) {
        return Vec::new();
    }
    let weighed = evidence.weigh(config, &parts);
    let Some(mut weighed) = weighed.filter(|weighed| weighed.impact.share >= config.get(Limit::AgainShare)) else {
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
    case.finding("read-after-write", weighed, what, query).into_iter().collect()
}
