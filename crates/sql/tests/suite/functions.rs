//! What the functions give, beyond the examples of the document.

use serde_json::{Value, json};

use crate::ask::{Traces, one, rows};

#[test]
fn single_values() {
    let traces = Traces::of(r#"{"name":"a","cat":"app","ph":"X","pid":1,"tid":1,"ts":1000000,"dur":5}"#);
    let check = |expression: &str, expected: Value| {
        assert_eq!(one(&traces, &format!("SELECT {expression} AS x")), expected, "{expression}");
    };
    check("origin()", json!(1_000_000_000));
    check("time_bucket(999999999, '1s')", json!(-1));
    check("time_bucket(1000000000, '1s')", json!(0));
    check("time_bucket(2500000000, '500ms')", json!(3));
    check("time_bucket(2500000000, 500000000)", json!(3));
    check("time_bucket(NULL, '1s')", json!(null));
    check("bucket_start(2700000000, '0.5s')", json!(2_500_000_000_i64));
    check("bucket_start(origin() + 90000000000, '1m') - origin()", json!(60_000_000_000_i64));
    check("human_size(0)", json!("0 B"));
    check("human_size(-1536)", json!("-1.5 KiB"));
    check("human_size(9223372036854775807)", json!("8.0 EiB"));
    check("human_size(NULL)", json!(null));
    check("human_time(999)", json!("999 ns"));
    check("human_time(1500)", json!("1.5 µs"));
    check("human_time(2500000000)", json!("2.50 s"));
    check("human_time(3723000000000)", json!("1 h 02 min 03 s"));
    check("human_time(2.5e9)", json!("2.50 s"));
    check("overlap(0, 10, 10, 20)", json!(0));
    check("overlap(0, 10, 2, 3)", json!(1));
    check("overlap(0, NULL, 2, 3)", json!(null));
    check("io_op('fsync')", json!("sync"));
    check("io_op('frobnicate')", json!("other"));
    check(r#"arg('{"a":"x\ny"}', 'a')"#, json!("x\ny"));
    check(r#"arg('{"a":1}', 'b')"#, json!(null));
    check("arg('nonsense', 'b')", json!(null));
    check("(SELECT percentile(x, 0.5) FROM (VALUES (3), (1), (2), (NULL)) t(x))", json!(2));
    check("(SELECT percentile(x, 0) FROM (VALUES (3), (1), (2)) t(x))", json!(1));
    check("(SELECT percentile(x, 1) FROM (VALUES (3.5), (1.0)) t(x))", json!(3.5));
    check("(SELECT percentile(dur_ns, 0.5) FROM events WHERE name = 'none')", json!(null));
    check("(SELECT span_union(start_ns, end_ns) FROM spans WHERE name = 'none')", json!(null));
}

/// Percentiles and unions per group, against what is computed here from the raw spans.
#[test]
fn aggregates_are_exact() {
    let traces = Traces::golden("dlio");
    let spans = rows(&traces, "SELECT name, start_ns, end_ns, dur_ns FROM spans");
    let groups = rows(
        &traces,
        "SELECT name, percentile(dur_ns, 0.9) AS p90, percentile(dur_ns, 0.01) AS p1, span_union(start_ns, end_ns) AS wall FROM spans GROUP BY name",
    );
    assert!(groups.len() > 20, "{}", groups.len());
    let number = |row: &Value, key: &str| row[key].as_i64().expect("a number");
    for group in &groups {
        let mine: Vec<&Value> = spans.iter().filter(|span| span["name"] == group["name"]).collect();
        let mut durations: Vec<i64> = mine.iter().map(|span| number(span, "dur_ns")).collect();
        durations.sort_unstable();
        for (key, share) in [("p90", 0.9), ("p1", 0.01)] {
            let enough = |value: &&i64| {
                durations.iter().filter(|other| other <= value).count() as f64 >= share * durations.len() as f64
            };
            assert_eq!(number(group, key), *durations.iter().find(enough).expect("the largest is enough"), "{group}");
        }
        let mut intervals: Vec<(i64, i64)> =
            mine.iter().map(|span| (number(span, "start_ns"), number(span, "end_ns"))).collect();
        intervals.sort_unstable();
        let (mut total, mut reached) = (0, i64::MIN);
        for (start, end) in intervals {
            total += (end - start.max(reached)).max(0);
            reached = reached.max(end);
        }
        assert_eq!(number(group, "wall"), total, "{group}");
    }
}
