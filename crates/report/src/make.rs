//! A report from an analysis.

use serde_json::Value;
use weftline_analysis::Table;
use weftline_analysis::coverage;
use weftline_analysis::findings::{ProgramRow, Verdict};
use weftline_analysis::summary::Summary;
use weftline_analysis::table::{Field, clamp};
use weftline_analysis::units::{Unit, bytes, count, counted, size_range, time};
use weftline_format::Phase;
use weftline_index::Run;
use weftline_index::column::phase_code;

use crate::head::{self, Head};
use crate::{Property, Report, Section, Shape};

/// Files that could not be read and are named on a terminal.
const UNREAD: usize = 3;
/// Rows of a section that a terminal shows.
const ROWS: usize = 10;

/// Makes the report of a run: its summary, the views that were asked for, what the rules say. `runs`: how the user calls what was opened.
pub fn report(runs: &[String], run: &Run, summary: &Summary, views: Vec<(String, Table)>, verdict: &Verdict) -> Report {
    let mut sections = vec![programs(&verdict.programs)];
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
        skipped.push(format!("{calls} calls known only as totals: rules need single calls"));
    }
    Report {
        title: runs.join(" "),
        runs: runs.to_vec(),
        headline: verdict.headline(),
        wall: verdict.wall.clone(),
        checked: verdict.checked,
        properties: properties(run, summary, verdict),
        sections,
        findings: verdict.findings.clone(),
        skipped,
    }
}

fn properties(run: &Run, summary: &Summary, verdict: &Verdict) -> Vec<Property> {
    let job = &summary.job;
    let traffic = &job.traffic;
    let property = |name, label, value: Value, shown: String| Property { name, label, value, shown, alarming: false };
    let length = u64::try_from(job.time).unwrap_or(0);
    let records = coverage::records(run);
    let heads: Vec<Head<'_>> = records.iter().map(|records| Head::new(records)).collect();
    let programs: Vec<Property> = heads.iter().flat_map(Head::program).collect();
    // How long a run took is said with its program, where one is known.
    let shown = if programs.is_empty() { time(length) } else { String::new() };
    let mut properties = programs;
    properties.push(property("time_ns", "time", length.into(), shown));
    properties.extend(verdict.wall.as_ref().map(head::wall_time));
    properties.extend(verdict.training.as_ref().map(head::training));
    let excluded = match job.ignored {
        0 => String::new(),
        ignored => format!("; {} left out: system files, nested calls", counted(ignored, "span", "spans")),
    };
    properties.push(property(
        "io_calls",
        "I/O",
        traffic.calls.into(),
        match traffic.calls {
            0 => String::new(),
            calls => format!(
                "{} read, {} written in {} on {}{excluded}",
                bytes(traffic.read_bytes),
                bytes(traffic.write_bytes),
                counted(calls, "call", "calls"),
                counted(job.files, "file", "files"),
            ),
        },
    ));
    let processes = match heads.as_slice() {
        [one] if one.totals().processes as u64 == job.processes => one.processes(),
        _ => count(job.processes),
    };
    properties.push(property("processes", "processes", job.processes.into(), on_hosts(&processes, job.hosts)));
    properties.push(traces(run, summary, &heads));
    properties.extend(heads.iter().filter_map(Head::overhead));
    properties.extend(totals(summary));
    properties.extend(heads.iter().flat_map(Head::losses));
    properties.extend([
        // `events` has always been those of them that are spans and match; `all_events` is what `weft info` calls events.
        Property::hidden("events", job.events),
        Property::hidden("spans", job.events),
        Property::hidden("all_events", all_events(summary)),
        Property::hidden("hosts", job.hosts),
        Property::hidden("files", job.files),
        Property::hidden("read_bytes", traffic.read_bytes),
        Property::hidden("written_bytes", traffic.write_bytes),
        Property::hidden("io_time_ns", traffic.time_ns),
        Property::hidden("preset", summary.preset.name()),
        Property::hidden("origin_ns", job.origin),
    ]);
    properties
}

/// Spans, instants and counters in the trace files, whether they match or not.
fn all_events(summary: &Summary) -> u64 {
    let metadata = phase_code(Phase::Metadata);
    summary.job.per_phase.iter().filter(|(code, _)| *code != metadata).map(|(_, count)| count).sum()
}

/// How many calls are known only as totals, where there are any.
fn totals(summary: &Summary) -> Option<Property> {
    let job = &summary.job;
    if job.total_calls == 0 && job.recorded_twice == 0 {
        return None;
    }
    let period = time(job.period_ns.unsigned_abs());
    let all = job.total_calls + job.events.saturating_sub(job.ignored);
    let mut shown = format!(
        "{} of {} calls are known only as totals of {period}: numbers that need single calls are left out or empty",
        count(job.total_calls),
        count(all)
    );
    if job.recorded_twice > 0 {
        shown.push_str(&format!(
            "; totals of {} more calls that were also recorded one by one count once",
            count(job.recorded_twice)
        ));
    }
    let value = serde_json::json!({
        "calls": job.total_calls, "of_calls": all, "recorded_twice": job.recorded_twice, "period_ns": job.period_ns,
    });
    Some(Property { name: "totals", label: "totals", value, shown, alarming: false })
}

fn on_hosts(processes: &str, hosts: u64) -> String {
    let place = if hosts > 1 { format!(" on {} hosts", count(hosts)) } else { String::new() };
    format!("{processes}{place}")
}

/// The trace files, and whether something was wrong with them.
fn traces(run: &Run, summary: &Summary, heads: &[Head<'_>]) -> Property {
    let job = &summary.job;
    let mut shown = format!(
        "{} ({}) in {}, {}",
        counted(all_events(summary), "event", "events"),
        counted(job.events, "span", "spans"),
        counted(job.sources, "file", "files"),
        bytes(job.source_bytes)
    );
    if let [index] = run.index() {
        shown.push_str(&format!("; index {}", bytes(index.bytes)));
    }
    if let [head] = heads {
        shown.extend(head.whole().map(|whole| format!("; {whole}")));
    }
    if job.flaws > 0 {
        shown.push_str(&format!("; {}, {} unusable", counted(job.flaws, "flaw", "flaws"), bytes(job.lost_bytes)));
    }
    if !job.unreadable.is_empty() {
        let some = &job.unreadable;
        let named: Vec<String> = some.iter().take(UNREAD).map(|(path, why)| format!("{path} ({why})")).collect();
        let more = some.len() - named.len();
        let more = if more > 0 { format!(" and {} more", count(more as u64)) } else { String::new() };
        shown.push_str(&format!(
            "; {} could not be read: {}{more}",
            counted(some.len() as u64, "file", "files"),
            named.join(", ")
        ));
    }
    let value = serde_json::json!({
        "files": job.sources, "bytes": job.source_bytes, "flaws": job.flaws, "lost_bytes": job.lost_bytes,
        "unreadable": job.unreadable.len(),
        "unreadable_files": job.unreadable.iter().map(|(path, why)| serde_json::json!({"path": path, "why": why})).collect::<Vec<_>>(),
    });
    let alarming = job.flaws > 0 || !job.unreadable.is_empty();
    Property { name: "traces", label: "trace", value, shown, alarming }
}

/// The processes by program.
fn programs(rows: &[ProgramRow]) -> Section {
    let mut table = Table::with_rows(rows.len());
    let each = || rows.iter();
    let known = rows.iter().any(|row| !row.program.is_empty());
    let label = |row: &ProgramRow| if row.program.is_empty() { "(not known)".to_owned() } else { row.program.clone() };
    table.texts("program", each().map(|row| Some(label(row))));
    table.ints("processes", Unit::Count, each().map(|row| Some(clamp(row.processes))));
    table.ints("cpu_ns", Unit::Nanoseconds, each().map(|row| row.cpu_ns.map(clamp)));
    table.ints("file_io_ns", Unit::Nanoseconds, each().map(|row| Some(clamp(row.file_io_ns))));
    table.ints("waiting_ns", Unit::Nanoseconds, each().map(|row| Some(clamp(row.waiting_ns))));
    table.ints("longest_ns", Unit::Nanoseconds, each().map(|row| Some(clamp(row.longest_ns))));
    table.ints("pid", Unit::Id, each().map(|row| Some(row.pid)));
    table.ints("rank", Unit::Id, each().map(|row| row.rank));
    table.ints("read_bytes", Unit::Bytes, each().map(|row| Some(clamp(row.read_bytes))));
    table.ints("written_bytes", Unit::Bytes, each().map(|row| Some(clamp(row.written_bytes))));
    Section {
        key: "programs".to_owned(),
        title: "programs".to_owned(),
        shape: Shape::Table,
        table,
        columns: vec![
            "program",
            "processes",
            "longest_ns",
            "cpu_ns",
            "file_io_ns",
            "waiting_ns",
            "read_bytes",
            "written_bytes",
            "pid",
            "rank",
        ],
        // Traces of others name no programs.
        rows: if known { ROWS } else { 0 },
        shown_rows: None,
        note: Some("lived, pid, rank: of the process that lived longest; times are summed over all threads".into()),
    }
}

/// A table of the summary as displayed; the job itself is shown as properties.
fn section(key: &str, table: &Table, summary: &Summary) -> Option<Section> {
    let make = |title: &str, columns: &[&'static str], note: Option<&str>| Section {
        key: key.to_owned(),
        title: title.to_owned(),
        shape: Shape::Table,
        table: table.clone(),
        columns: columns.to_vec(),
        rows: ROWS,
        note: note.map(str::to_owned),
        shown_rows: None,
    };
    let traffic = ["time_sum", "calls", "read_bytes", "written_bytes", "bandwidth", "metadata_calls"];
    let with = |first: &[&'static str]| [first, &traffic].concat();
    let hidden = || Section { rows: 0, ..make("", &[], None) };
    Some(match key {
        "layers" => layers(make, summary),
        // All events by name, for scripts; people see them sorted out.
        "operations" => hidden(),
        "calls" => make(
            "calls by time",
            &["name", "time_sum", "count", "time_mean", "time_p50", "time_p99", "size", "bandwidth"],
            None,
        ),
        "waits" => make("waits by time", &["name", "time_sum", "count", "time_mean", "time_p99", "size"], None),
        "spans" => {
            make("spans by time", &["name", "cat", "time_sum", "count", "time_mean", "time_p50", "time_p99"], None)
        }
        "sizes" => transfer_sizes(table, summary.unknown_sizes)?,
        "top_files" => make("files by time", &with(&["file_name"]), None),
        "top_directories" => make("directories by time", &with(&["file_dir", "files"]), None),
        // Pids say enough of one host.
        "top_processes" if table.rows > 1 && summary.job.hosts > 1 => {
            make("processes by time", &with(&["program", "rank", "process"]), None)
        }
        "top_processes" if table.rows > 1 => make("processes by time", &with(&["program", "rank", "pid"]), None),
        "top_processes" => hidden(),
        "timeline" => timeline(table, summary),
        "stragglers" => make(
            "stragglers",
            match summary.job.hosts > 1 {
                true => &["kind", "name", "program", "time", "median", "ratio", "z_score"],
                // Pids say enough of one host.
                false => &["program", "pid", "time", "median", "ratio", "z_score"],
            },
            Some(
                "time in I/O calls, against the median of at least four processes of the same program and role, or of hosts",
            ),
        ),
        _ => return None,
    })
}

/// Layers that have events. A single one says nothing that the calls below do not say.
fn layers(make: impl Fn(&str, &[&'static str], Option<&str>) -> Section, summary: &Summary) -> Section {
    let used: Vec<usize> = (0..summary.layers.len()).filter(|place| summary.layers[*place].count > 0).collect();
    let columns = ["layer", "time_union", "time_unoverlapped", "time_self", "time_sum", "count", "size", "processes"];
    let note = "wall: time in which the layer was active; self: without the layers below, per process; time: sum of durations, nested and parallel spans count again";
    let mut section = make("layers", &columns, Some(note));
    section.rows = if used.len() > 1 { 40 } else { 0 };
    section.shown_rows = Some(used);
    section
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
        Field::Text(bin) => Some(size_range(bin)),
        _ => None,
    };
    kept.texts("transfer", used.iter().map(|row| label(*row)));
    kept.ints("calls", Unit::Count, used.iter().map(|row| Some(number(*row, "reads") + number(*row, "writes"))));
    Some(Section {
        key: "sizes".to_owned(),
        title: "transfer sizes".to_owned(),
        shape: Shape::Bars,
        table: kept,
        columns: vec!["transfer", "calls", "reads", "writes"],
        rows: ROWS,
        shown_rows: None,
        note: (unknown != (0, 0)).then(|| {
            let (reads, writes) = (count(unknown.0), count(unknown.1));
            format!("without {reads} reads and {writes} writes that are known only as totals of different sizes")
        }),
    })
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
    dense.ints("time_range", Unit::Id, buckets.iter().map(|bucket| Some(i64::from(*bucket))));
    dense.times("time_start", buckets.iter().map(|bucket| Some(i128::from(*bucket) * i128::from(summary.width_ns))));
    dense.ints("calls", Unit::Count, buckets.iter().map(|bucket| i64::try_from(of(bucket).calls).ok()));
    dense.ints("read_bytes", Unit::Bytes, buckets.iter().map(|bucket| Some(clamp(of(bucket).read_bytes))));
    dense.ints("written_bytes", Unit::Bytes, buckets.iter().map(|bucket| Some(clamp(of(bucket).write_bytes))));
    dense.times("time_sum", buckets.iter().map(|bucket| Some(of(bucket).time_ns.into())));
    dense.floats(
        "read_bps",
        Unit::BytesPerSecond,
        buckets.iter().map(|bucket| Some(of(bucket).read_bytes as f64 / seconds)),
    );
    dense.floats(
        "written_bps",
        Unit::BytesPerSecond,
        buckets.iter().map(|bucket| Some(of(bucket).write_bytes as f64 / seconds)),
    );
    dense.floats("calls_per_s", Unit::PerSecond, buckets.iter().map(|bucket| Some(of(bucket).calls as f64 / seconds)));
    Section {
        key: "timeline".to_owned(),
        title: format!("over time, in steps of {}", time(summary.width_ns.unsigned_abs())),
        shape: Shape::Timeline,
        table: dense,
        columns: vec!["time_start", "read_bps", "written_bps", "calls_per_s"],
        rows: usize::MAX,
        note: Some(timeline_note(summary)),
        shown_rows: None,
    }
}

fn timeline_note(summary: &Summary) -> String {
    let mut note = "the number at the right is the highest; a call belongs to the step in which it began".to_owned();
    let period = time(summary.job.period_ns.unsigned_abs());
    if summary.spread {
        note.push_str(&format!(
            "; totals of {period} are spread evenly over shorter steps, because they do not say when the calls were made"
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
    let first = table.columns.first().map(|column| column.name.clone()).unwrap_or_default();
    let first = weftline_analysis::hlm::ViewType::ALL.into_iter().map(|view| view.name()).find(|name| *name == first);
    Section {
        title: format!("view {key}"),
        key,
        shape: Shape::Table,
        columns: first.into_iter().chain(shown).collect(),
        rows: ROWS,
        note: Some(format!(
            "{} in all; --csv, --json, --sqlite and --parquet write them",
            counted(table.columns.len() as u64, "column", "columns")
        )),
        shown_rows: None,
        table,
    }
}

/// All tables of a report with the names of their files: the job, the findings, the sections.
pub fn tables(report: &Report) -> Vec<(String, Table)> {
    let mut job = Table::with_rows(report.properties.len());
    job.texts("name", report.properties.iter().map(|property| Some(property.name.to_owned())));
    job.texts("value", report.properties.iter().map(|property| Some(plain(&property.value))));
    let all = &report.findings;
    let mut found = Table::with_rows(all.len());
    found.texts("rule", all.iter().map(|finding| Some(finding.rule.clone())));
    found.texts("severity", all.iter().map(|finding| Some(finding.severity.word().to_owned())));
    found.floats("score", Unit::Share, all.iter().map(|finding| Some(finding.score)));
    found.texts("title", all.iter().map(|finding| Some(finding.title.clone())));
    found.texts("what", all.iter().map(|finding| Some(finding.what.clone())));
    found.ints("from_ns", Unit::Nanoseconds, all.iter().map(|finding| finding.place.from_ns));
    found.ints("to_ns", Unit::Nanoseconds, all.iter().map(|finding| finding.place.to_ns));
    let count = |count: u64| i64::try_from(count).ok();
    found.ints("processes", Unit::Count, all.iter().map(|finding| count(finding.place.process_count)));
    found.ints("files", Unit::Count, all.iter().map(|finding| count(finding.place.file_count)));
    found.texts("file", all.iter().map(|finding| finding.place.files.first().cloned()));
    found.ints("time_ns", Unit::Nanoseconds, all.iter().map(|finding| Some(finding.at_stake.time_ns)));
    found.floats("share_frac", Unit::Share, all.iter().map(|finding| Some(finding.at_stake.share)));
    found.ints("bytes", Unit::Bytes, all.iter().map(|finding| count(finding.at_stake.bytes)));
    found.ints("calls", Unit::Count, all.iter().map(|finding| count(finding.at_stake.calls)));
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
