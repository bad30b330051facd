//! One report in all its forms, of a real trace: they tell the same, and the same every time.

use std::fs;
use std::path::Path;

use weftline_analysis::findings::{Config, findings};
use weftline_analysis::hlm::ViewType;
use weftline_analysis::summary::{Question, Summary, view_tables};
use weftline_index::{OpenOptions, Run};
use weftline_report::text::Plain;
use weftline_report::{Report, csv, html, json, make, parquet, sqlite, text};

fn report(name: &str, no_index: bool) -> Report {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("../testkit/golden").join(name).join("trace");
    let directory = tempfile::tempdir().expect("a temporary directory");
    for entry in fs::read_dir(golden).expect("the golden traces") {
        let path = entry.expect("an entry").path();
        fs::copy(&path, directory.path().join(path.file_name().expect("a name"))).expect("copied");
    }
    let run =
        Run::open(&[directory.path().to_owned()], &OpenOptions { no_index, ..OpenOptions::default() }).expect("opened");
    let question = Question { views: vec![ViewType::FileName], ..Question::default() };
    let summary = Summary::of(&run, &question).expect("a summary");
    let views = view_tables(&run, &question).expect("views");
    let verdict = findings(&run, &Config::default()).expect("a verdict");
    make::report(&[name.to_owned()], &run, &summary, views, &verdict)
}

#[test]
fn the_same_every_time() {
    for name in ["posix_small", "dlio"] {
        let first = report(name, false);
        assert_eq!(text::text(&first, 120, &Plain), text::text(&report(name, false), 120, &Plain), "{name}");
        assert_eq!(json::value(&first), json::value(&report(name, false)), "{name}");
        // Without an index there is no index to tell of; all else is the same.
        let streamed = report(name, true);
        assert_eq!(json::value(&first)["sections"], json::value(&streamed)["sections"], "{name}");
        assert_eq!(json::value(&first)["findings"], json::value(&streamed)["findings"], "{name}");
    }
}

/// A name that no column has would hide one in silence.
#[test]
fn every_column_that_is_named_exists() {
    for name in ["posix_small", "dlio"] {
        for section in report(name, false).sections {
            let missing: Vec<_> =
                section.columns.iter().filter(|column| section.table.column(column).is_none()).collect();
            assert!(missing.is_empty(), "{name}, {}: {missing:?}", section.key);
        }
    }
}

#[test]
fn people_see_what_matters() {
    let shown = text::text(&report("dlio", false), 120, &Plain);
    for expected in [
        "time  56.70 s",
        "  The model waits for data: 16.36 s of 56.70 s (28.9 %)\n",
        "compute 60.1 %, file I/O 28.2 %, waiting 11.8 % (the next batch of data), other 0 %; mean of 8 processes",
        "109.2 GiB read, 11.2 KiB written in 10,581 calls on 166 files",
        "reader_posix       19.39 s               127.81 s  127.81 s  127.81 s  10,432",
        "pread    126.56 s  7,200",
        "64 MiB – 256 MiB    800",
        "high  the model waits for data: 16.36 s (28.9 %)  [loader-starvation]",
        "view posix_file_name",
    ] {
        assert!(shown.contains(expected), "{expected:?} is not in\n{shown}");
    }
    let quiet = text::text(&report("posix_small", false), 120, &Plain);
    assert!(quiet.contains("rules checked") && !quiet.contains("findings"), "{quiet}");
    // Tables fit, whatever the terminal.
    for width in [60, 80, 100, 120, 200] {
        let shown = text::text(&report("dlio", false), width, &Plain);
        let long: Vec<&str> = shown.lines().filter(|line| line.chars().count() > width).collect();
        assert!(long.is_empty(), "{width}: {long:#?}");
    }
}

#[test]
fn a_page_loads_nothing() {
    let page = html::page(&report("dlio", false));
    for forbidden in ["<script", "src=", "href=", "url(", "http:", "https:", "@import"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert!(page.contains("the model waits for data") && page.contains("<svg"));
}

#[test]
fn tables_hold_the_same_in_every_form() {
    let report = report("dlio", false);
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str| directory.path().join(name);
    csv::write(&report, &path("csv")).expect("written");
    parquet::write(&report, &path("parquet")).expect("written");
    sqlite::write(&report, &path("report.db")).expect("written");
    sqlite::write(&report, &path("report.db")).expect("replaced");
    let database = rusqlite::Connection::open(path("report.db")).expect("a database");
    for (key, table) in make::tables(&report) {
        let lines = fs::read_to_string(path("csv").join(format!("{key}.csv"))).expect("there");
        assert!(lines.lines().count() > table.rows, "{key}");
        let rows: i64 =
            database.query_row(&format!("SELECT count(*) FROM \"{key}\""), [], |row| row.get(0)).expect("counted");
        assert_eq!(rows as usize, table.rows, "{key}");
        assert!(path("parquet").join(format!("{key}.parquet")).exists(), "{key}");
    }
    // A flat view has more columns than SQLite takes: the rest is in a second table.
    let (wide, rest): (i64, i64) = database
        .query_row("SELECT (SELECT count(*) FROM flat_file_name), (SELECT count(*) FROM flat_file_name_2 JOIN flat_file_name USING (file_name))", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .expect("both parts");
    assert_eq!(wide, rest);
    let time: f64 = database
        .query_row("SELECT time_sum FROM layers WHERE layer = 'reader_posix'", [], |row| row.get(0))
        .expect("a layer");
    assert!((time - 127.81).abs() < 0.01, "{time}");
    // Somebody else's file is left alone.
    fs::write(path("notes.db"), "important").expect("written");
    let refused = sqlite::write(&report, &path("notes.db")).expect_err("refused").to_string();
    assert!(refused.contains("is not an SQLite database of a report"), "{refused}");
    assert_eq!(fs::read_to_string(path("notes.db")).expect("there"), "important");
}
