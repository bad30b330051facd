//! One pair of traces per rule.

use super::builder::Trace;
use super::{check, judge};
use crate::findings::Severity;

const SECOND: i64 = 1_000_000;

/// A trace that lasts for some seconds, and what happens in it.
fn lasting(seconds: i64, fill: impl FnOnce(&mut Trace)) -> Trace {
    let mut trace = Trace::new().process(1, "a", None);
    fill(&mut trace);
    trace.until(1, seconds * SECOND)
}

/// Transfers of one kind, one after the other in the file.
fn transfers(name: &'static str, count: i64, dur: i64, bytes: i64) -> impl FnOnce(&mut Trace) {
    move |trace| {
        for place in 0..count {
            trace.transfer(1, name, "/data/x", dur, place * bytes, bytes);
        }
    }
}

#[test]
fn small_transfers() {
    for (rule, name) in [("small-reads", "read"), ("small-writes", "write")] {
        let at = |bytes| lasting(10, transfers(name, 20_000, 200, bytes));
        let found = check(rule, &at(4095), &at(4096));
        assert_eq!((found.at_stake.calls, found.at_stake.time_ns), (20_000, 4_000_000_000), "{found:#?}");
        assert_eq!(found.place.files, ["/data/x"]);
        assert!((found.at_stake.share - 0.4).abs() < 1e-9 && (found.score - 0.8).abs() < 1e-9, "{found:#?}");
        // The pattern is there, and costs a twentieth of the time, or just less.
        check(rule, &lasting(80, transfers(name, 20_000, 200, 100)), &lasting(81, transfers(name, 20_000, 200, 100)));
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

#[test]
fn random_access() {
    let jumping = |count: i64, gap: i64, bytes: i64| {
        lasting(10, move |trace| {
            for place in 0..count {
                trace.transfer(1, "pread", "/data/x", 1_000, place * (bytes + gap), bytes);
            }
        })
    };
    check("random-access", &jumping(2_000, 131_073, 4096), &jumping(2_000, 131_072, 4096));
    check("random-access", &jumping(1_001, 1 << 20, 4096), &jumping(1_000, 1 << 20, 4096));
    check("random-access", &jumping(2_000, 1 << 20, 262_144), &jumping(2_000, 1 << 20, 262_145));
    // DFTracer's reads have no offset; it is that of the seek before.
    let followed = |step: i64| {
        lasting(10, move |trace| {
            trace.call(1, "open", "/data/x", 1, r#""ret":3"#);
            for place in 0..2_000 {
                let to = place * step;
                trace.call(1, "lseek", "/data/x", 1, &format!(r#""offset":{to},"whence":0,"ret":{to}"#));
                trace.call(1, "read", "/data/x", 1_000, r#""ret":4096"#);
            }
        })
    };
    check("random-access", &followed(1 << 20), &followed(4096));
}

#[test]
fn re_reads() {
    let times = |times: i64, mebibytes: i64| {
        lasting(10, move |trace| {
            for _ in 0..times {
                for place in 0..mebibytes {
                    trace.transfer(1, "read", "/data/x", 20_000, place << 20, 1 << 20);
                }
            }
        })
    };
    let found = check("re-reads", &times(3, 40), &times(2, 70));
    assert_eq!(found.at_stake.bytes, 80 << 20, "{found:#?}");
    check("re-reads", &times(3, 32), &times(3, 31));
}

#[test]
fn storms() {
    let opens = |per_file: i64| {
        lasting(10, move |trace| {
            for round in 0..per_file * 40 {
                let path = format!("/data/{}", round % 40);
                trace.call(1, "open", &path, 500, r#""ret":3"#);
                trace.call(1, "close", &path, 10, r#""fd":3,"ret":0"#);
            }
        })
    };
    let found = check("open-storm", &opens(50), &opens(49));
    assert_eq!((found.at_stake.calls, found.place.file_count, found.place.files.len()), (49 * 40, 40, 5), "{found:#?}");
    let stats = |per_file: i64| {
        lasting(10, move |trace| {
            for round in 0..per_file * 20 {
                trace.call(1, "stat", &format!("/data/{}", round % 20), 500, r#""ret":-2"#);
            }
        })
    };
    check("stat-storm", &stats(100), &stats(99));
    let seeks = |seeks: i64| {
        lasting(10, move |trace| {
            for place in 0..seeks {
                trace.call(1, "lseek", "/data/x", 500, r#""fd":3,"offset":0,"whence":0,"ret":0"#);
                if place < 2_000 {
                    trace.transfer(1, "read", "/data/x", 1, place * 4096, 4096);
                }
            }
            for place in seeks..2_000 {
                trace.transfer(1, "read", "/data/x", 1, place * 4096, 4096);
            }
        })
    };
    check("seek-storm", &seeks(2_000), &seeks(1_999));
}

#[test]
fn syncs() {
    let synced = |writes: i64, every: i64, us: i64| {
        lasting(10, move |trace| {
            for place in 0..writes {
                trace.transfer(1, "write", "/data/x", 10, place * 8192, 8192);
                if place % every == 0 {
                    trace.call(1, "fsync", "/data/x", us, r#""fd":3,"ret":0"#);
                }
            }
        })
    };
    // What they cost decides, not how many writes there are for each: a database writes several pages for a commit.
    check("fsync-per-write", &synced(800, 8, 20_000), &synced(100, 1, 4_000));
    check("fsync-per-write", &synced(50, 1, 20_000), &synced(49, 1, 20_000));
    let opened = |flags: i64| {
        lasting(10, move |trace| {
            trace.call(1, "open", "/data/x", 10, &format!(r#""flags":{flags},"ret":3"#));
            transfers("write", 100, 20_000, 8192)(trace);
        })
    };
    check("fsync-per-write", &opened(0o4_010_001), &opened(0o1));
    // What a disk needs for the bytes is not the sync's fault: the checkpoints of a training job.
    let saved = |bytes: i64| {
        lasting(10, move |trace| {
            for place in 0..60 {
                trace.transfer(1, "write", "/data/x", 1_000, place * bytes, bytes);
                trace.call(1, "fsync", "/data/x", 30_000, r#""fd":3,"ret":0"#);
            }
        })
    };
    check("fsync-per-write", &saved((4 << 20) - 1), &saved(4 << 20));
}

#[test]
fn metadata_bound() {
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

/// Four processes of one program, each of which does what `fill` says.
fn four(ends: [i64; 4], mut fill: impl FnMut(i64, &mut Trace)) -> Trace {
    let mut trace = Trace::new();
    for pid in 1..=4 {
        trace = trace.process(pid, "a", None);
        fill(pid, &mut trace);
        trace = trace.until(pid, ends[pid as usize - 1]);
    }
    trace
}

#[test]
fn skew() {
    for (rule, name) in [("writer-skew", "write"), ("reader-skew", "read")] {
        let skewed = |mebibytes: i64, others: i64| {
            four([10 * SECOND; 4], move |pid, trace| {
                for place in 0..if pid == 1 { mebibytes } else { others } {
                    trace.transfer(pid, name, &format!("/data/{pid}"), 50_000, place << 20, 1 << 20);
                }
            })
        };
        let found = check(rule, &skewed(96, 8), &skewed(96, 9));
        assert_eq!(found.place.processes.iter().map(|who| who.pid).collect::<Vec<_>>(), [1], "{found:#?}");
        check(rule, &skewed(64, 0), &skewed(63, 0));
    }
}

#[test]
fn stragglers() {
    let last = |end: i64| four([4 * SECOND, 4 * SECOND, 4 * SECOND, end], |_, _| {});
    let found = check("straggler-process", &last(6 * SECOND), &last(6 * SECOND - 1));
    assert_eq!((found.at_stake.time_ns, found.place.processes[0].pid), (2_000_000_000, 4), "{found:#?}");
    // Two of four: half of the work is longer, nobody is a straggler.
    check("straggler-process", &last(8 * SECOND), &four([4 * SECOND, 4 * SECOND, 8 * SECOND, 8 * SECOND], |_, _| {}));
    let hosts = |end: i64| {
        let mut trace = Trace::new();
        for (pid, host) in [(1, "a"), (2, "b"), (3, "c")] {
            let end = if pid == 3 { end } else { 4 * SECOND };
            trace = trace.process(pid, host, None).until(pid, end);
        }
        trace
    };
    let found = check("straggler-host", &hosts(6 * SECOND), &hosts(6 * SECOND - 1));
    assert!(found.what.starts_with("Host c "), "{found:#?}");
}

#[test]
fn ranks() {
    let some = |ranks: i64, most: i64| {
        let mut trace = Trace::new();
        for rank in 0..ranks {
            let pid = rank + 1;
            trace = trace.process(pid, "a", Some(rank));
            trace.transfer(
                pid,
                "read",
                &format!("/data/{rank}"),
                if rank == 2 { most } else { 2 * SECOND },
                0,
                1 << 20,
            );
            trace = trace.until(pid, 10 * SECOND);
        }
        trace
    };
    let ranks = |most: i64| some(4, most);
    // With three ranks of 2 s, 3.6 s is one and a half times the mean.
    let found = check("rank-imbalance", &ranks(3_600_000), &ranks(3_599_999));
    assert!(found.what.starts_with("Rank 2 ") && found.advice.starts_with("Deal out files by size"), "{found:#?}");
    check("rank-imbalance", &ranks(9_000_000), &some(3, 9_000_000));
    // Files have nothing to do with computing.
    let computing = |most: i64| {
        (0..4).fold(Trace::new(), |trace, rank| {
            let dur = if rank == 2 { most } else { 2 * SECOND };
            trace
                .process(rank + 1, "a", Some(rank))
                .span(rank + 1, "compute", "step", 0, dur, "")
                .until(rank + 1, 10 * SECOND)
        })
    };
    let found = check("rank-imbalance", &computing(3_600_000), &computing(3_599_999));
    assert!(
        found.what.contains("compute") && found.advice.starts_with("Give every rank as much to compute"),
        "{found:#?}"
    );
}

#[test]
fn what_no_rule_explains_is_named() {
    // Large reads one after the other: nothing is wrong with them but that they take the time.
    let reading = |seconds: i64, of: i64| lasting(of, transfers("read", seconds * 2, SECOND / 2, 8 << 20));
    let found = check("dominant-io", &reading(10, 20), &reading(9, 20));
    assert_eq!((found.severity, found.at_stake.time_ns), (Severity::Medium, 10_000_000_000), "{found:#?}");
    assert_eq!(
        (found.what.as_str(), found.place.files.as_slice()),
        (
            "File I/O takes 10.00 s, 50.0 % of the wall time, mostly reading /data/x by process 1.",
            &["/data/x".to_owned()][..]
        )
    );
    let found = check("dominant-io", &reading(9, 18), &reading(9, 20));
    assert_eq!(found.severity, Severity::Low, "it ends before it is worth an hour: {found:#?}");
    // Another rule explains it, or only a small part of it.
    let mixed = |small: i64| {
        lasting(20, move |trace| {
            transfers("read", 20, SECOND / 2, 8 << 20)(trace);
            (0..small).for_each(|place| {
                trace.transfer(1, "write", "/data/y", 500, place * 100, 100);
            });
        })
    };
    check("dominant-io", &mixed(9_000), &lasting(20, transfers("read", 30_000, 500, 100)));
    // A process that computes too waits for a pipe; one that only waits is there for that.
    let waiting = |seconds: i64, compute: i64| {
        lasting(20, move |trace| {
            for _ in 0..seconds * 10 {
                trace.call(1, "read", "pipe:[123]", SECOND / 10, r#""fd":0,"size":100,"ret":10"#);
            }
        })
        .span(1, "compute", "step", 15 * SECOND, compute, "")
    };
    let found = check("dominant-waiting", &waiting(10, SECOND), &waiting(9, SECOND));
    assert_eq!((found.severity, found.at_stake.time_ns), (Severity::Medium, 10_000_000_000), "{found:#?}");
    assert!(found.what.contains("waits 10.00 s, 50.0 % of the wall time: 10.00 s for a pipe"), "{found:#?}");
    let found = check("dominant-waiting", &waiting(15, SECOND / 2), &waiting(9, SECOND));
    assert_eq!(found.severity, Severity::Low, "{found:#?}");
}

#[test]
fn unaligned() {
    let from = |first: i64, count: i64| {
        lasting(10, move |trace| {
            for place in 0..count {
                trace.transfer(1, "write", "/data/x", 1_000, first + place * 65_536, 65_536);
            }
        })
    };
    check("unaligned-io", &from(100, 2_000), &from(8192, 2_000));
    check("unaligned-io", &from(100, 1_000), &from(100, 999));
}

#[test]
fn tiny_buffers() {
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

#[test]
fn read_after_write() {
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

/// Spans as DLIO writes them: of its framework's object only `compute` is a step, and what `_eval` holds is none of training.
#[test]
fn accelerator_utilisation_is_dlios() {
    let framework = |trace: Trace, method: &str, start: i64, dur: i64, step: &str| {
        trace.span(1, "ai_framework", &format!("TorchFramework.{method}"), start, dur, step)
    };
    let mut trace = Trace::new().process(1, "a", Some(0));
    // Two blocks, the second behind a checkpoint. The loader takes a second for the first batch and 60 ms for each other one.
    for (epoch, begun) in [(1, 0), (2, 10 * SECOND)] {
        trace = framework(trace, "get_loader", begun, 10, "");
        for step in 1..=5 {
            let start = begun + SECOND + (step - 1) * 100_000;
            // `trace_object` counts the steps of the epoch, `compute` those of the block.
            trace = framework(trace, "trace_object", start - 50, 5, &format!(r#""step":{}"#, step + 5 * (epoch - 1)));
            trace = framework(trace, "compute", start, 40_000, &format!(r#""step":{step}"#));
        }
    }
    let evaluated = 20 * SECOND;
    trace = trace.span(1, "dlio_benchmark", "DLIOBenchmark._eval", evaluated, SECOND, r#""epoch":2"#);
    for step in 1..=5 {
        trace = framework(trace, "compute", evaluated + step * 40_000, 40_000, &format!(r#""step":{step}"#));
    }
    let found = judge(&trace.until(1, 30 * SECOND), &[]).training.expect("a training job");
    assert!((found.accelerator_utilisation - 0.4).abs() < 1e-9, "{found:?}");
    assert_eq!((found.steps, found.blocks, found.processes), (10, 2, 1));
}

/// A training loop of ten steps of one second: so much of each waits, so much computes.
fn training(fetch: i64, compute: i64, own_loading: bool) -> Trace {
    let mut trace = Trace::new().process(1, "a", None);
    for step in 0..10 {
        let start = step * SECOND;
        trace = trace.span(1, "dataloader", "fetch", start, fetch, "");
        if own_loading {
            trace = trace.span(1, "data", "item", start, fetch, "");
        }
        trace = trace.span(1, "compute", "step", start + SECOND - compute, compute, "");
    }
    trace
}

#[test]
fn loaders() {
    let found = check("loader-starvation", &training(200_000, 800_000, false), &training(199_999, 800_000, false));
    // The reference's severity: (0.2 - 0.1) / 0.25.
    assert!((found.score - 0.4).abs() < 1e-6, "{found:#?}");
    // With waits counted outside of compute, the second limit binds only when it is lowered.
    for (limit, expected) in [("0.60", 0), ("0.61", 1)] {
        let found = judge(&training(300_000, 600_000, false), &[&format!("loader-starvation.compute={limit}")]);
        assert_eq!(
            found.findings.iter().filter(|finding| finding.rule == "loader-starvation").count(),
            expected,
            "{limit}"
        );
    }
    // Waiting that compute hides is none.
    check("loader-starvation", &training(200_000, 800_000, false), &training(500_000, 840_000, false));
    check("too-few-workers", &training(400_000, 600_000, true), &training(400_000, 600_000, false));
    let workers = |busy: i64| {
        (0..10).fold(training(400_000, 600_000, false).process(2, "a", None), |trace, step| {
            trace.span(2, "data", "item", step * SECOND, busy, "")
        })
    };
    // Ten pieces of work in 9 s and a bit: the last one ends the worker's time.
    check("too-few-workers", &workers(900_000), &workers(700_000));
}

#[test]
fn checkpoints() {
    let spans = |dur: i64| {
        let trace = training(10_000, 900_000, false).span(1, "checkpoint", "capture", 10 * SECOND, dur, "");
        trace.until(1, 20 * SECOND)
    };
    check("checkpoint-stall", &spans(1_000_000), &spans(999_999));
    // Saved in the background, while the model computes.
    let hidden =
        training(10_000, 980_000, false).span(1, "checkpoint", "capture", 0, 10 * SECOND, "").until(1, 20 * SECOND);
    check("checkpoint-stall", &spans(SECOND), &hidden);
    let files = |path: &'static str| {
        lasting(10, move |trace| {
            for place in 0..10 {
                trace.transfer(1, "write", path, 100_000, place << 20, 1 << 20);
            }
        })
    };
    check("checkpoint-stall", &files("/out/model.ckpt"), &files("/out/model.txt"));
}

#[test]
fn slopes() {
    let slow = |dur: i64| {
        lasting(10, move |trace| {
            for round in 0..1_000 {
                for file in 0..5 {
                    let path = format!("/data/{file}");
                    trace.transfer(1, "read", &path, if file == 3 { dur } else { 100 }, round * 8192, 8192);
                }
            }
        })
    };
    // At a slope of tan(58.5°) the score is 0.3: 400 µs of calls elsewhere and 3.1 times as long here would be below a second.
    let found = check("slope", &slow(2_000), &slow(900));
    assert_eq!(found.place.files, ["/data/3"], "{found:#?}");
    // More bytes in the same time: the file is used more, not slower.
    let large = lasting(10, |trace| {
        for round in 0..1_000 {
            for file in 0..5 {
                let bytes = if file == 3 { 1 << 20 } else { 8192 };
                trace.transfer(
                    1,
                    "read",
                    &format!("/data/{file}"),
                    if file == 3 { 2_000 } else { 100 },
                    round * bytes,
                    bytes,
                );
            }
        }
    });
    check("slope", &slow(2_000), &large);
}
