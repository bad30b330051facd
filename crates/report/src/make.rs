//! A report from an analysis.

use serde_json::Value;
use weftline_analysis::Table;
use weftline_analysis::findings::Verdict;
use weftline_analysis::summary::Summary;
use weftline_analysis::table::Field;
use weftline_index::Run;

use crate::units::{bytes, count, time};
use crate::{Fact, Report, Section, Shape};

/// Rows of a section that a terminal shows.
const ROWS: usize = 10;

/// Makes the report of a run: its summary, the views that were asked for, what the rules say.
pub fn report(title: &str, run: &Run, summary: &Summary, views: Vec<(String, Table)>, verdict: &Verdict) -> Report {
    let mut sections = Vec::new();
    for (key, table) in summary.tables() {
        sections.extend(section(key, &table, summary));
    }
    for (key, table) in views {
        sections.push(view(key, table));
    }
    let mut skipped: Vec<String> =
        verdict.skipped.iter().map(|skipped| format!("{}: {}", skipped.rule, skipped.why)).collect();
    if summary.job.total_calls > 0 {
        // Every rule rests on single calls; silence about the others is no praise.
        let calls = count(summary.job.total_calls);
        skipped.push(format!("{calls} calls that are known only as totals: rules look at single calls"));
    }
    Report {
        title: title.to_owned(),
        facts: facts(run, summary),
        sections,
        findings: verdict.findings.clone(),
        skipped,
    }
}

fn facts(run: &Run, summary: &Summary) -> Vec<Fact> {
    let job = &summary.job;
    let traffic = &job.traffic;
    let wide = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
    let nanoseconds = |number: i128| u64::try_from(number).unwrap_or(0);
    let fact = |name, label, value: Value, shown: String| Fact { name, label, value, shown, alarming: false };
    let length = u64::try_from(job.time).unwrap_or(0);
    let mut facts = vec![
        fact("time_ns", "time", length.into(), time(length)),
        fact(
            "events",
            "events",
            job.events.into(),
            match job.ignored {
                0 => count(job.events),
                ignored => format!(
                    "{}; {} of them, on files of the system or in wrappers of others, are not in the layers",
                    count(job.events),
                    count(ignored)
                ),
            },
        ),
        fact("processes", "processes", job.processes.into(), on_hosts(job.processes, job.hosts)),
        fact("hosts", "", job.hosts.into(), String::new()),
        fact("files", "files", job.files.into(), count(job.files)),
        fact(
            "io_calls",
            "I/O",
            traffic.calls.into(),
            format!(
                "{} calls, {} read, {} written; {} in them, all threads together",
                count(traffic.calls),
                bytes(wide(traffic.read)),
                bytes(wide(traffic.written)),
                time(nanoseconds(traffic.time))
            ),
        ),
        fact("read_bytes", "", wide(traffic.read).into(), String::new()),
        fact("written_bytes", "", wide(traffic.written).into(), String::new()),
        fact("io_time_ns", "", nanoseconds(traffic.time).into(), String::new()),
        fact("preset", "layers", summary.preset.name().into(), format!("preset {}", summary.preset.name())),
        fact("origin_ns", "", job.origin.into(), String::new()),
    ];
    facts.extend(totals(summary));
    facts.push(traces(run, summary));
    facts
}

/// How many calls are known only as totals, where there are any.
fn totals(summary: &Summary) -> Option<Fact> {
    let job = &summary.job;
    if job.total_calls == 0 && job.recorded_twice == 0 {
        return None;
    }
    let period = time(job.period_ns.unsigned_abs());
    let all = job.total_calls + job.events.saturating_sub(job.ignored);
    let mut shown = format!(
        "{} of {} calls are known only as totals of {period}: what needs single calls is left out or empty",
        count(job.total_calls),
        count(all)
    );
    if job.recorded_twice > 0 {
        shown.push_str(&format!(
            "; totals of {} more were recorded call by call and count once",
            count(job.recorded_twice)
        ));
    }
    let value = serde_json::json!({
        "calls": job.total_calls, "of_calls": all, "recorded_twice": job.recorded_twice, "period_ns": job.period_ns,
    });
    Some(Fact { name: "totals", label: "totals", value, shown, alarming: false })
}

fn on_hosts(processes: u64, hosts: u64) -> String {
    let place = if hosts > 1 { format!(" on {} hosts", count(hosts)) } else { String::new() };
    format!("{}{place}", count(processes))
}

/// The trace files, and whether something was wrong with them.
fn traces(run: &Run, summary: &Summary) -> Fact {
    let job = &summary.job;
    let mut shown = format!("{} files, {}", count(job.sources), bytes(job.source_bytes));
    if let [index] = run.index() {
        shown.push_str(&format!("; index {}", bytes(index.bytes)));
    }
    if job.flaws > 0 {
        shown.push_str(&format!("; {} flaws, {} unusable", count(job.flaws), bytes(job.lost_bytes)));
    }
    if let Some((path, why)) = job.unreadable.first() {
        let more = job.unreadable.len() - 1;
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        shown.push_str(&format!("; could not be read: {path} ({why}){more}"));
    }
    let value = serde_json::json!({
        "files": job.sources, "bytes": job.source_bytes, "flaws": job.flaws, "lost_bytes": job.lost_bytes,
        "unreadable": job.unreadable.len(),
    });
    let alarming = job.flaws > 0 || !job.unreadable.is_empty();
    Fact { name: "traces", label: "traces", value, shown, alarming }
}

/// A table of the summary as people see it; the job itself is told as facts.
fn section(key: &str, table: &Table, summary: &Summary) -> Option<Section> {
    let make = |title: &str, columns: &[&'static str], note: Option<&str>| Section {
        key: key.to_owned(),
        title: title.to_owned(),
        shape: Shape::Table,
        table: table.clone(),
        columns: columns.to_vec(),
        rows: ROWS,
        note: note.map(str::to_owned),
    };
    let traffic = ["calls", "metadata_calls", "read_bytes", "written_bytes", "time_sum", "bandwidth"];
    let with = |first: &[&'static str]| [first, &traffic].concat();
    Some(match key {
        "layers" => Section {
            rows: 40,
            ..make(
                "layers",
                &["layer", "count", "time_sum", "time_union", "time_self", "time_unoverlapped", "size", "processes"],
                Some(
                    "time sum: durations added up, nested and parallel ones again; time union: wall time in which the layer was going on; \
                     time self: per process, without the layers below; time unoverlapped: per process, without compute",
                ),
            )
        },
        "operations" => Section {
            rows: 15,
            ..make(
                "operations by time",
                &["name", "cat", "count", "time_sum", "time_mean", "time_p50", "time_p99", "size", "bandwidth"],
                None,
            )
        },
        "sizes" => transfer_sizes(table, summary.unknown_sizes)?,
        "top_files" => make("files by time", &with(&["file_name"]), None),
        "top_directories" => make("directories by time", &with(&["file_dir", "files"]), None),
        "top_processes" if table.rows > 1 => make("processes by time", &with(&["process"]), None),
        "timeline" => timeline(table, summary),
        "stragglers" => make(
            "stragglers",
            &["kind", "name", "time", "median", "ratio", "z_score"],
            Some("time in I/O calls, against the median of all processes or hosts"),
        ),
        _ => return None,
    })
}

/// How large the transfers were: only bins that occur.
fn transfer_sizes(table: &Table, unknown: (u64, u64)) -> Option<Section> {
    let number = |row: usize, column: &str| match table.get(row, column) {
        Field::Int(number) => number,
        _ => 0,
    };
    let used: Vec<usize> = (0..table.rows).filter(|row| number(*row, "reads") + number(*row, "writes") > 0).collect();
    let mut kept = table.take(&used);
    let label = |row: usize| match table.get(row, "size_bin") {
        Field::Text(bin) => Some(bin_words(bin)),
        _ => None,
    };
    kept.texts("transfer", used.iter().map(|row| label(*row)));
    kept.ints("calls", used.iter().map(|row| Some(number(*row, "reads") + number(*row, "writes"))));
    Some(Section {
        key: "sizes".to_owned(),
        title: "transfer sizes".to_owned(),
        shape: Shape::Bars,
        table: kept,
        columns: vec!["transfer", "calls", "reads", "writes"],
        rows: ROWS,
        note: (unknown != (0, 0)).then(|| {
            let (reads, writes) = (count(unknown.0), count(unknown.1));
            format!("without {reads} reads and {writes} writes that are known only as totals of different sizes")
        }),
    })
}

/// `4kib_16kib` → `4 – 16 KiB`
fn bin_words(bin: &str) -> String {
    let pretty = |end: &str| {
        let digits = end.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        match &end[digits.len()..] {
            "kib" => format!("{digits} KiB"),
            "mib" => format!("{digits} MiB"),
            "gib" => format!("{digits} GiB"),
            _ => digits.to_owned(),
        }
    };
    match bin.split_once('_') {
        Some((from, "plus")) => format!("over {}", pretty(from)),
        Some(("0", to)) => format!("up to {}", pretty(to)),
        Some((from, to)) => format!("{} – {}", pretty(from), pretty(to)),
        None => bin.to_owned(),
    }
}

/// Buckets at most that a line is drawn of.
const MOST_BUCKETS: u32 = 100_000;

/// Bandwidth and calls per bucket. Buckets without I/O are there as well, up to [`MOST_BUCKETS`].
fn timeline(table: &Table, summary: &Summary) -> Section {
    let last = summary.timeline.keys().last().copied().unwrap_or(0).min(MOST_BUCKETS);
    let buckets: Vec<u32> = if table.rows == 0 { Vec::new() } else { (0..=last).collect() };
    let seconds = summary.width_ns as f64 / 1e9;
    let of = |bucket: &u32| summary.timeline.get(bucket).copied().unwrap_or_default();
    let mut dense = Table::with_rows(buckets.len());
    let wide = |number: u128| i64::try_from(number).unwrap_or(i64::MAX);
    dense.ints("time_range", buckets.iter().map(|bucket| Some(i64::from(*bucket))));
    dense.floats("time_start", buckets.iter().map(|bucket| Some(f64::from(*bucket) * seconds)));
    dense.ints("calls", buckets.iter().map(|bucket| i64::try_from(of(bucket).calls).ok()));
    dense.ints("read_bytes", buckets.iter().map(|bucket| Some(wide(of(bucket).read))));
    dense.ints("written_bytes", buckets.iter().map(|bucket| Some(wide(of(bucket).written))));
    dense.floats("time_sum", buckets.iter().map(|bucket| Some(of(bucket).time as f64 / 1e9)));
    dense.floats("read_bps", buckets.iter().map(|bucket| Some(of(bucket).read as f64 / seconds)));
    dense.floats("written_bps", buckets.iter().map(|bucket| Some(of(bucket).written as f64 / seconds)));
    dense.floats("calls_per_s", buckets.iter().map(|bucket| Some(of(bucket).calls as f64 / seconds)));
    Section {
        key: "timeline".to_owned(),
        title: format!("over time, in steps of {}", time(summary.width_ns.unsigned_abs())),
        shape: Shape::Timeline,
        table: dense,
        columns: vec!["time_start", "read_bps", "written_bps", "calls_per_s"],
        rows: usize::MAX,
        note: Some(timeline_note(summary)),
    }
}

fn timeline_note(summary: &Summary) -> String {
    let mut note = "the number at the right is the highest; a call belongs to the step in which it began".to_owned();
    let period = time(summary.job.period_ns.unsigned_abs());
    if summary.spread {
        note.push_str(&format!(
            "; totals of {period} are spread evenly over shorter steps, because they do not tell when in it calls were"
        ));
    } else if summary.job.total_calls > 0 {
        note.push_str(&format!("; totals of {period} belong to the step that holds the middle of it"));
    }
    note
}

/// Columns of a view that people see first; the other forms have all.
const VIEW_COLUMNS: [&str; 8] =
    ["count_sum", "time_sum", "size_sum", "bw", "time_proc_max", "time_call_max", "read_size_sum", "write_size_sum"];

fn view(key: String, table: Table) -> Section {
    let shown: Vec<&'static str> = VIEW_COLUMNS.into_iter().filter(|name| table.column(name).is_some()).collect();
    let first = table.columns.first().map(|(name, _)| name.clone()).unwrap_or_default();
    let first = weftline_analysis::hlm::ViewType::ALL.into_iter().map(|view| view.name()).find(|name| *name == first);
    Section {
        title: format!("view {key}"),
        key,
        shape: Shape::Table,
        columns: first.into_iter().chain(shown).collect(),
        rows: ROWS,
        note: Some(format!(
            "{} columns in all; --csv, --json, --sqlite and --parquet write them",
            count(table.columns.len() as u64)
        )),
        table,
    }
}

/// All tables of a report with the names of their files: the job, the findings, the sections.
pub fn tables(report: &Report) -> Vec<(String, Table)> {
    let mut job = Table::with_rows(report.facts.len());
    job.texts("name", report.facts.iter().map(|fact| Some(fact.name.to_owned())));
    job.texts("value", report.facts.iter().map(|fact| Some(plain(&fact.value))));
    let all = &report.findings;
    let mut found = Table::with_rows(all.len());
    found.texts("rule", all.iter().map(|finding| Some(finding.rule.clone())));
    found.texts("severity", all.iter().map(|finding| Some(finding.severity.word().to_owned())));
    found.floats("score", all.iter().map(|finding| Some(finding.score)));
    found.texts("title", all.iter().map(|finding| Some(finding.title.clone())));
    found.texts("what", all.iter().map(|finding| Some(finding.what.clone())));
    found.ints("from_ns", all.iter().map(|finding| finding.place.from_ns));
    found.ints("to_ns", all.iter().map(|finding| finding.place.to_ns));
    let count = |count: u64| i64::try_from(count).ok();
    found.ints("processes", all.iter().map(|finding| count(finding.place.process_count)));
    found.ints("files", all.iter().map(|finding| count(finding.place.file_count)));
    found.texts("file", all.iter().map(|finding| finding.place.files.first().cloned()));
    found.ints("time_ns", all.iter().map(|finding| Some(finding.at_stake.time_ns)));
    found.floats("share_frac", all.iter().map(|finding| Some(finding.at_stake.share)));
    found.ints("bytes", all.iter().map(|finding| count(finding.at_stake.bytes)));
    found.ints("calls", all.iter().map(|finding| count(finding.at_stake.calls)));
    found.texts("advice", all.iter().map(|finding| Some(finding.advice.clone())));
    found.texts("query", all.iter().map(|finding| Some(finding.query.clone())));
    let mut tables = vec![("job".to_owned(), job), ("findings".to_owned(), found)];
    tables.extend(report.sections.iter().map(|section| (section.key.clone(), section.table.clone())));
    tables
}

/// A value without the quotes of JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
