//! Screens of several sizes, as they are.

use std::collections::BTreeMap;

use super::*;
use crate::args::Color;
use crate::terminal::Terminal;

fn paint() -> Paint {
    Terminal::new(Color::Never).stdout()
}

fn process(pid: u32, name: &str, cpu: f64, events: f64) -> Process {
    Process {
        pid,
        ppid: 1,
        name: name.into(),
        cpu_percent: Some(cpu),
        rss_bytes: Some(u64::from(pid) << 20),
        read_bytes_per_second: Some(cpu * 1e6),
        write_bytes_per_second: None,
        traced_write_bytes_per_second: 4096.0,
        events_per_second: events,
        ..Process::default()
    }
}

fn heat(name: &str, time_share: f64) -> Heat {
    let name = name.to_owned();
    Heat { name, time_share, per_second: time_share * 1e5, read_bytes_per_second: 3e8, write_bytes_per_second: 0.0 }
}

fn picture() -> Picture {
    Picture {
        run: "20261116T055102Z-train.py-7f3a".into(),
        state: State::Running,
        elapsed_ns: 83_400_000_000,
        running: 3,
        ended: 14,
        interval_ns: 1_000_000_000,
        events_per_second: 123_456.4,
        drops: BTreeMap::new(),
        processes: vec![
            process(101, "python3 train.py --epochs 3", 12.3, 120_000.0),
            Process {
                rank: Some(3),
                ..process(102, "読み込み データ/日本語のとても長い名前のプログラム -v", 99.9, 3_000.0)
            },
            Process { dropped: 1_234, cpu_percent: None, ..process(103, "cat\x1b[2J\n big", 0.0, 456.4) },
        ],
        window_ns: 5_000_000_000,
        share_seen: 0.873,
        calls: vec![heat("pread64", 0.912), heat("write", 0.051), heat("epoch", 0.01)],
        files: vec![
            heat("/scratch/datasets/imagenet/train/shard-00017-of-01024.tfrecord", 0.9),
            heat("/データ/学習/日本語のとても長い名前のディレクトリ/ファイル名.bin", 0.05),
        ],
        notes: vec![],
    }
}

fn drawn(picture: &Picture, view: &View, width: usize, height: usize) -> String {
    let lines = draw(picture, view, width, height, paint());
    assert_eq!(lines.len(), height);
    for line in &lines {
        assert!(columns(line) <= width, "{} columns of {width}: {line}", columns(line));
        assert!(!line.contains(char::is_control), "{line:?}");
    }
    lines.join("\n")
}

#[test]
fn screens() {
    let view = View::default();
    for (width, height) in [(80, 24), (60, 15), (40, 10), (120, 12)] {
        insta::assert_snapshot!(format!("{width}x{height}"), drawn(&picture(), &view, width, height));
    }
}

#[test]
fn views() {
    let filtered = View { filter: "PYTHON".into(), sort: Sort::Events, ..View::default() };
    insta::assert_snapshot!("filtered", drawn(&picture(), &filtered, 80, 16));
    let typing = View { filter: "no such".into(), typing: true, scroll: 9, ..View::default() };
    insta::assert_snapshot!("typing", drawn(&picture(), &typing, 80, 12));
    insta::assert_snapshot!("help", drawn(&picture(), &View { help: true, ..View::default() }, 80, 24));
    let ended = Picture {
        state: State::Ended,
        processes: vec![],
        running: 0,
        drops: BTreeMap::from([("arena-full".into(), 5_000), ("name-lost".into(), 2)]),
        notes: vec!["a part of it runs on host far: use `weft top` there".into()],
        ..picture()
    };
    insta::assert_snapshot!("ended", drawn(&ended, &View { paused: true, ..View::default() }, 80, 16));
}

/// However small the terminal is, nothing is drawn outside of it.
#[test]
fn no_size_is_too_small() {
    for width in 0..90 {
        for height in 0..30 {
            for view in
                [View::default(), View { help: true, ..View::default() }, View { scroll: 99, ..View::default() }]
            {
                drawn(&picture(), &view, width, height);
            }
        }
    }
}

#[test]
fn numbers_are_short() {
    for (value, step, expected) in [
        (0.0, 1000.0, "0"),
        (0.2, 1000.0, "0.2"),
        (999.4, 1000.0, "999"),
        (999.6, 1000.0, "1.0K"),
        (123_456.0, 1000.0, "123K"),
        (1_048_576.0, 1024.0, "1.0M"),
        (f64::NAN, 1024.0, "0"),
        (1e30, 1000.0, "1000000000000E"),
    ] {
        assert_eq!(short(value, step), expected, "{value}");
    }
}

#[test]
fn texts_are_cut_by_columns() {
    for (text, width, expected, expected_left) in [
        ("abc", 3, "abc", "abc"),
        ("abcd", 3, "ab…", "…cd"),
        ("日本語", 5, "日本…", "…本語"),
        ("日本語", 4, "日…", "…語"),
        ("abc", 0, "", ""),
    ] {
        assert_eq!((cut(text, width).as_str(), cut_left(text, width).as_str()), (expected, expected_left), "{text}");
    }
}
