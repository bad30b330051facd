//! Generated traces: what the kernels find is what a plain loop over the events finds.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;
use weftline_analysis::Table;
use weftline_analysis::classify::{Rules, bin_label, bin_of};
use weftline_analysis::group::{GroupBy, Key, KeyValue, Sums};
use weftline_analysis::hlm::{Hlm, HlmQuestion, RowKey, ViewType};
use weftline_analysis::presets::Preset;
use weftline_analysis::summary::{Question, Summary, wall_times};
use weftline_analysis::table::Field;
use weftline_index::{OpenOptions, Run};

const NAMES: [&str; 9] =
    ["read", "pread64", "write", "open64", "fsync", "Reader.get_sample", "Reader.open", "a \"b\"\\c\td", "günther"];
const CATS: [&str; 5] = ["POSIX", "posix", "STDIO", "reader", "my.cat"];
const PATHS: [&str; 6] =
    ["/x/data/train_01.npz", "/data/checkpoint/ck_7", "/etc/passwd", "/ssd/a \"quoted\"", "/x/y/z", "/lustre/data/ü"];
const HOSTS: [&str; 2] = ["node-a", "node-b"];
/// Units of time, as traces name them, in ns.
const UNITS: [(&str, i64); 3] = [("NS", 1), ("US", 1_000), ("MS", 1_000_000)];
const BASE_NS: i64 = 1_700_000_000_000_000_000;

#[derive(Debug, Clone)]
struct Span {
    name: usize,
    cat: usize,
    pid: i64,
    tid: i64,
    /// ms after the base, and long.
    ts: i64,
    dur: i64,
    ret: Option<i64>,
    image: Option<i64>,
    offset: Option<i64>,
    epoch: Option<i64>,
    path: Option<usize>,
    /// How the line is written.
    form: u32,
}

#[derive(Debug, Clone)]
struct TraceFile {
    host: usize,
    unit: usize,
    integer_dialect: bool,
    number_hashes: bool,
    spans: Vec<Span>,
}

fn span() -> impl Strategy<Value = Span> {
    let place = (0..NAMES.len(), 0..CATS.len(), 1i64..4, 1i64..3);
    let time = (0i64..20_000, prop_oneof![4 => 0i64..3_000, 1 => Just(0), 1 => -50i64..0, 1 => 5_000i64..12_000]);
    let sizes = prop_oneof![Just(0i64), Just(-1), Just(4096), Just(4097), 0i64..(5 << 30)];
    let arguments = (
        proptest::option::of(sizes.clone()),
        proptest::option::weighted(0.3, sizes),
        proptest::option::weighted(0.3, 0i64..1_000_000),
        proptest::option::weighted(0.5, -1i64..4),
        proptest::option::weighted(0.8, 0..PATHS.len()),
        any::<u32>(),
    );
    (place, time, arguments).prop_map(|((name, cat, pid, tid), (ts, dur), (ret, image, offset, epoch, path, form))| {
        Span { name, cat, pid, tid, ts, dur, ret, image, offset, epoch, path, form }
    })
}

fn file() -> impl Strategy<Value = TraceFile> {
    let spans = proptest::collection::vec(span(), 1..60);
    (0..HOSTS.len(), 0..UNITS.len(), any::<bool>(), any::<bool>(), spans).prop_map(
        |(host, unit, integer_dialect, number_hashes, spans)| TraceFile {
            host,
            unit,
            integer_dialect,
            number_hashes,
            spans,
        },
    )
}

/// A text as JSON; some characters may be escaped that need not be.
fn json(text: &str, escape: bool) -> String {
    if !escape {
        return serde_json::to_string(text).expect("JSON");
    }
    let units: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
    format!("\"{units}\"")
}

impl TraceFile {
    /// Hashes above the range of `i64`, as DFTracer 1 writes them.
    fn hash(&self, kind: u64, place: usize) -> String {
        let number = u64::MAX - kind * 1000 - place as u64;
        if self.number_hashes { number.to_string() } else { format!("\"{number:x}\"") }
    }

    fn phase(&self, letter: char, number: u8) -> String {
        if self.integer_dialect { number.to_string() } else { format!("\"{letter}\"") }
    }

    fn line(&self, span: &Span, id: usize) -> String {
        let bit = |place: u32| span.form >> place & 1 == 1;
        let mut arguments = vec![format!("\"hhash\":{}", self.hash(1, self.host))];
        let mut number = |key: &str, value: Option<i64>, as_text: bool| {
            if let Some(value) = value {
                arguments.push(if as_text { format!("\"{key}\":\"{value}\"") } else { format!("\"{key}\":{value}") });
            }
        };
        number("ret", span.ret, false);
        number("image_size", span.image, bit(0));
        number("offset", span.offset, false);
        number("epoch", span.epoch, bit(1));
        if let Some(path) = span.path {
            arguments.push(format!("\"fhash\":{}", self.hash(2, path)));
        }
        if bit(2) {
            arguments.push(r#""odd":{"ret":[1,"x"],"image_size":7},"more":"\"ret\":5""#.to_owned());
        }
        let turned = (span.form >> 8) as usize % arguments.len();
        arguments.rotate_left(turned);
        let unit = UNITS[self.unit].1;
        let mut fields = vec![
            format!("\"id\":{id}"),
            format!("\"name\":{}", json(NAMES[span.name], bit(3))),
            format!("\"cat\":{}", json(CATS[span.cat], bit(4))),
            format!("\"pid\":{}", span.pid),
            format!("\"tid\":{}", span.tid),
            format!("\"ts\":{}", (BASE_NS + span.ts * 1_000_000) / unit),
            format!("\"dur\":{}", span.dur * 1_000_000 / unit),
            format!("\"ph\":{}", self.phase('X', 1)),
            format!("\"args\":{{{}}}", arguments.join(",")),
        ];
        if bit(5) {
            fields.push(r#""unknown":{"name":"not this","dur":3}"#.to_owned());
        }
        if bit(6) {
            fields.rotate_left((span.form >> 16) as usize % 9);
        }
        format!("{{{}}}", fields.join(if bit(7) { ", " } else { "," }))
    }

    fn text(&self) -> String {
        let mut text = if self.integer_dialect { String::new() } else { "[\n".to_owned() };
        let mut metadata = |name: &str, inner: String| {
            text += &format!(
                "{{\"name\":\"{name}\",\"cat\":\"dftracer\",\"pid\":1,\"tid\":1,\"ph\":{},\"args\":{{\"hhash\":{},{inner}}}}}\n",
                self.phase('M', 4),
                self.hash(1, self.host),
            );
        };
        let host = HOSTS[self.host];
        metadata("HH", format!("\"name\":\"{host}\",\"value\":{}", self.hash(1, self.host)));
        metadata("CM", format!("\"name\":\"time_metric\",\"value\":\"{}\"", UNITS[self.unit].0));
        for (place, path) in PATHS.iter().enumerate() {
            metadata("FH", format!("\"name\":{},\"value\":{}", json(path, false), self.hash(2, place)));
        }
        for (id, span) in self.spans.iter().enumerate() {
            text += &self.line(span, id);
            text.push('\n');
        }
        text
    }
}

fn write(directory: &Path, files: &[TraceFile]) {
    for (place, file) in files.iter().enumerate() {
        std::fs::write(directory.join(format!("t-{place}.pfw")), file.text()).expect("written");
    }
}

fn open(directory: &Path, no_index: bool) -> Run {
    Run::open(&[directory.to_owned()], &OpenOptions { no_index, ..OpenOptions::default() }).expect("opened")
}

/// What a plain loop keeps of a group.
#[derive(Debug, Clone, Default, PartialEq)]
struct Naive {
    durs: Vec<i64>,
    sizes: Vec<i64>,
    offsets: Vec<i64>,
}

type NaiveKey = (Option<String>, String, i64, Option<i64>, String, u8, String);

fn size_of(span: &Span) -> Option<i64> {
    let (cat, name) = (CATS[span.cat].to_lowercase(), NAMES[span.name]);
    if cat == "posix" || cat == "stdio" {
        return span.ret.filter(|ret| *ret > 0 && ["read", "pread64", "write"].contains(&name));
    }
    span.image.filter(|image| *image > 0 && !name.contains("open"))
}

fn io_cat(span: &Span) -> u8 {
    if !["posix", "stdio"].contains(&CATS[span.cat].to_lowercase().as_str()) {
        return 6;
    }
    match NAMES[span.name] {
        "read" | "pread64" => 1,
        "write" => 2,
        "open64" => 3,
        "fsync" => 7,
        _ => 6,
    }
}

fn effective_cat(span: &Span) -> String {
    let mut cat = CATS[span.cat].to_lowercase();
    if let (true, Some(path)) = (cat == "posix" || cat == "stdio", span.path) {
        for (part, suffix) in
            [("/data", "_reader"), ("/checkpoint", "_checkpoint"), ("/lustre", "_lustre"), ("/ssd", "_ssd")]
        {
            cat += if PATHS[path].contains(part) { suffix } else { "" };
        }
    }
    cat
}

/// Start and duration as the trace's unit can hold them, ns.
fn times(file: &TraceFile, span: &Span) -> (i64, i64) {
    let unit = UNITS[file.unit].1;
    ((BASE_NS + span.ts * 1_000_000) / unit * unit, span.dur * 1_000_000 / unit * unit)
}

fn origin(files: &[TraceFile]) -> i64 {
    let starts = files.iter().flat_map(|file| file.spans.iter().map(|span| times(file, span).0));
    starts.min().expect("a span")
}

fn naive(files: &[TraceFile], width: i64) -> BTreeMap<NaiveKey, Naive> {
    let origin = origin(files);
    let mut groups: BTreeMap<NaiveKey, Naive> = BTreeMap::new();
    for file in files {
        for span in &file.spans {
            if span.path.is_some_and(|path| PATHS[path].contains("/etc/")) {
                continue;
            }
            let (start, dur) = times(file, span);
            let key = (
                span.path.map(|path| PATHS[path].to_owned()),
                format!("app#{}#{}#{}", HOSTS[file.host], span.pid, span.tid),
                (start - origin) / width,
                span.epoch,
                effective_cat(span),
                io_cat(span),
                NAMES[span.name].to_owned(),
            );
            let group = groups.entry(key).or_default();
            group.durs.push(dur);
            group.sizes.extend(size_of(span));
            group.offsets.extend(span.offset);
        }
    }
    groups
}

const VIEWS: [ViewType; 4] = [ViewType::FileName, ViewType::ProcName, ViewType::TimeRange, ViewType::Epoch];

fn metrics(run: &Run, width: i64) -> Table {
    let question = HlmQuestion { width_ns: width, ..HlmQuestion::new(VIEWS) };
    Hlm::of(run, &question).expect("grouped").table(&VIEWS)
}

fn check_metrics(table: &Table, expected: &BTreeMap<NaiveKey, Naive>) {
    assert_eq!(table.rows, expected.len(), "groups");
    let mut seen = BTreeSet::new();
    for row in 0..table.rows {
        let text = |column: &str| match table.get(row, column) {
            Field::Text(text) => Some(text.to_owned()),
            _ => None,
        };
        let int = |column: &str| match table.get(row, column) {
            Field::Int(number) => Some(number),
            _ => None,
        };
        let key: NaiveKey = (
            text("file_name"),
            text("proc_name").expect("a process"),
            int("time_range").expect("a bucket"),
            int("epoch"),
            text("cat").expect("a category"),
            int("io_cat").expect("a kind") as u8,
            text("func_name").expect("a name"),
        );
        let group = expected.get(&key).unwrap_or_else(|| panic!("unexpected {key:?}"));
        assert!(seen.insert(key.clone()), "twice {key:?}");
        let close = |column: &str, expected: f64| {
            let found = table.get(row, column).number().unwrap_or_else(|| panic!("{column} of {key:?}"));
            assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{column} of {key:?}: {found}, not {expected}");
        };
        let sum = group.durs.iter().map(|dur| i128::from(*dur)).sum::<i128>();
        close("time", sum as f64 / 1e9);
        close("time_sq", group.durs.iter().map(|dur| i128::from(*dur).pow(2)).sum::<i128>() as f64 / 1e18);
        close("time_call_min", *group.durs.iter().min().expect("an event") as f64 / 1e9);
        close("time_call_max", *group.durs.iter().max().expect("an event") as f64 / 1e9);
        assert_eq!(int("count"), Some(group.durs.len() as i64), "{key:?}");
        assert_eq!(int("size"), Some(group.sizes.iter().sum()), "{key:?}");
        assert_eq!(int("size_call_min"), group.sizes.iter().min().copied(), "{key:?}");
        assert_eq!(int("size_call_max"), group.sizes.iter().max().copied(), "{key:?}");
        assert_eq!(int("offset_min"), group.offsets.iter().min().copied(), "{key:?}");
        assert_eq!(int("offset_max"), group.offsets.iter().max().copied(), "{key:?}");
        for bin in 0..12 {
            let expected = group.sizes.iter().filter(|size| bin_of(**size as u64) == bin).count() as i64;
            assert_eq!(int(&format!("size_bin_{}", bin_label(bin))), Some(expected), "{key:?}");
        }
    }
}

/// Count, time and bytes by category and name, of all events.
fn pairs(run: &Run) -> BTreeMap<(String, String), (u64, i128, u128)> {
    let question = GroupBy { rest: true, ..GroupBy::new([Key::Cat, Key::Name]) };
    let found = question.run::<Sums>(run).expect("grouped");
    let text = |value: KeyValue<'_>| match value {
        KeyValue::Text(text) => text.to_owned(),
        other => panic!("{other:?}"),
    };
    let rows =
        found.sorted().into_iter().map(|(key, cell)| ((text(key[0]), text(key[1])), (cell.count, cell.dur, cell.size)));
    rows.collect()
}

fn naive_pairs(files: &[TraceFile]) -> BTreeMap<(String, String), (u64, i128, u128)> {
    let mut all: BTreeMap<(String, String), (u64, i128, u128)> = BTreeMap::new();
    for (file, span) in files.iter().flat_map(|file| file.spans.iter().map(move |span| (file, span))) {
        let group = all.entry((CATS[span.cat].to_lowercase(), NAMES[span.name].to_owned())).or_default();
        group.0 += 1;
        group.1 += i128::from(times(file, span).1);
        group.2 += size_of(span).unwrap_or(0) as u128;
    }
    all
}

/// Wall time of I/O per thread and per file, by painting lines: those of each process, summed over processes.
fn painted_rows(files: &[TraceFile], by_file: bool) -> BTreeMap<String, i128> {
    let mut lines: BTreeMap<(String, usize, i64), BTreeSet<i64>> = BTreeMap::new();
    for (file, span) in files.iter().flat_map(|file| file.spans.iter().map(move |span| (file, span))) {
        let is_io = CATS[span.cat] != "reader" && CATS[span.cat] != "my.cat" && span.path != Some(2);
        let thread = format!("app#{}#{}#{}", HOSTS[file.host], span.pid, span.tid);
        let row = if by_file { span.path.map(|path| PATHS[path].to_owned()) } else { Some(thread) };
        if let (true, true, Some(row)) = (is_io, span.dur > 0, row) {
            lines.entry((row, file.host, span.pid)).or_default().extend(span.ts..span.ts + span.dur);
        }
    }
    let mut rows: BTreeMap<String, i128> = BTreeMap::new();
    lines.into_iter().for_each(|((row, _, _), line)| *rows.entry(row).or_default() += line.len() as i128 * 1_000_000);
    rows
}

fn union_rows(run: &Run, view: ViewType) -> BTreeMap<String, i128> {
    let question = Question { preset: Some(Preset::Posix), ..Question::default() };
    let rows = wall_times(run, &question, view).expect("read").into_iter().map(|(key, walls)| match key {
        RowKey::Text(text) => (text, walls[0].union),
        other => panic!("{other:?}"),
    });
    rows.collect()
}

/// Wall time of I/O by painting a line, one cell per ms: all processes, and the sum over processes.
fn painted(files: &[TraceFile]) -> (i128, i128) {
    let mut lines: BTreeMap<(usize, i64), BTreeSet<i64>> = BTreeMap::new();
    for (file, span) in files.iter().flat_map(|file| file.spans.iter().map(move |span| (file, span))) {
        if CATS[span.cat] != "reader" && CATS[span.cat] != "my.cat" && span.path != Some(2) {
            lines.entry((file.host, span.pid)).or_default().extend(span.ts..span.ts + span.dur);
        }
    }
    let all: BTreeSet<i64> = lines.values().flatten().copied().collect();
    let ms = 1_000_000;
    (all.len() as i128 * ms, lines.values().map(|line| line.len() as i128 * ms).sum())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn kernels_agree_with_a_plain_loop(files in proptest::collection::vec(file(), 1..4)) {
        let directory = tempfile::tempdir().expect("a directory");
        write(directory.path(), &files);
        let second = 1_000_000_000;
        let indexed = open(directory.path(), false);
        let first = metrics(&indexed, second);
        check_metrics(&first, &naive(&files, second));
        // Another question to the same run, and the same to one that is read without an index.
        let coarse = metrics(&indexed, 5 * second);
        check_metrics(&coarse, &naive(&files, 5 * second));
        let streamed = open(directory.path(), true);
        prop_assert_eq!(&metrics(&streamed, second), &first);
        prop_assert_eq!(&metrics(&open(directory.path(), false), 5 * second), &coarse);
        let expected = naive_pairs(&files);
        prop_assert_eq!(&pairs(&indexed), &expected);
        prop_assert_eq!(&pairs(&open(directory.path(), true)), &expected);
        let summary = Summary::of(&indexed, &Question { preset: Some(Preset::Posix), ..Question::default() })
            .expect("summed up");
        for (view, by_file) in [(ViewType::ProcName, false), (ViewType::FileName, true)] {
            prop_assert_eq!(union_rows(&indexed, view), painted_rows(&files, by_file));
            prop_assert_eq!(union_rows(&streamed, view), painted_rows(&files, by_file));
        }
        let (all, per_process) = painted(&files);
        prop_assert_eq!((summary.layers[0].time_union, summary.layers[0].time_union_proc), (all, per_process));
        prop_assert_eq!(summary.job.events, files.iter().map(|file| file.spans.len() as u64).sum::<u64>());
        let streamed = Summary::of(&streamed, &Question { preset: Some(summary.preset), ..Question::default() }).expect("summed up");
        prop_assert_eq!(&streamed.layers, &summary.layers);
        prop_assert_eq!(&streamed.operations, &summary.operations);
        prop_assert_eq!(&streamed.timeline, &summary.timeline);
        prop_assert_eq!(&streamed.top_files, &summary.top_files);
    }

    #[test]
    fn two_runs_at_once_are_two_runs(left in proptest::collection::vec(file(), 1..3), right in proptest::collection::vec(file(), 1..3)) {
        let (one, two) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
        write(one.path(), &left);
        write(two.path(), &right);
        let width = 2_000_000_000;
        let at_once = std::thread::scope(|scope| {
            let other = scope.spawn(|| metrics(&open(two.path(), false), width));
            (metrics(&open(one.path(), false), width), other.join().expect("no panic"))
        });
        check_metrics(&at_once.0, &naive(&left, width));
        check_metrics(&at_once.1, &naive(&right, width));
    }
}

/// The rules say what the tests above take for granted.
#[test]
fn default_rules_ignore_what_the_oracle_ignores() {
    let rules = Rules::default();
    assert!(rules.ignored_files.iter().any(|part| part == "/etc/"));
    assert!(
        PATHS.iter().filter(|path| rules.ignored_files.iter().any(|part| path.contains(part.as_str()))).count() == 1
    );
}
