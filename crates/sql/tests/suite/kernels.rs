//! SQL and the kernels of `weftline-analysis` agree.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use weftline_analysis::group::{GroupBy, Key, KeyValue, Sums};
use weftline_index::{OpenOptions, Run};

use crate::ask::{Traces, rows};

/// Count, sum, minimum and maximum of durations, and bytes: per group, its keys as texts.
type Groups = BTreeMap<Vec<String>, (i64, i64, i64, i64, i64)>;

fn by_kernel(traces: &Traces, keys: &[Key], io_only: bool) -> Groups {
    let run = Run::open(&[traces.path().to_owned()], &OpenOptions::default()).expect("opened");
    let mut question = GroupBy::new(keys);
    if io_only {
        question.filter.cats = Some(Arc::new(|cat| ["posix", "stdio"].contains(&cat.to_lowercase().as_str())));
    }
    question.rest = true;
    let answer = question.run::<Sums>(&run).expect("answered");
    let text = |value: &KeyValue<'_>| match value {
        KeyValue::Null => "null".to_owned(),
        KeyValue::Int(number) => number.to_string(),
        KeyValue::Text(text) => (*text).to_owned(),
    };
    let groups = answer.sorted().into_iter().map(|(values, sums)| {
        let key = values.iter().map(text).collect();
        let size = if io_only { i64::try_from(sums.size).expect("it fits") } else { 0 };
        (key, (sums.count as i64, i64::try_from(sums.dur).expect("it fits"), sums.dur_min, sums.dur_max, size))
    });
    groups.collect()
}

fn by_sql(traces: &Traces, table: &str, keys: &[&str], io_only: bool) -> Groups {
    let named: Vec<String> = keys.iter().enumerate().map(|(place, key)| format!("{key} AS k{place}")).collect();
    let groups: Vec<String> = (0..keys.len()).map(|place| format!("k{place}")).collect();
    let bytes = if io_only { "coalesce(sum(bytes), 0)" } else { "0" };
    let sql = format!(
        "SELECT {}, count(*) AS n, sum(dur_ns) AS total, min(dur_ns) AS least, max(dur_ns) AS most, {bytes} AS bytes FROM {table} GROUP BY {}",
        named.join(", "),
        groups.join(", ")
    );
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let number = |row: &Value, key: &str| row[key].as_i64().unwrap_or_else(|| panic!("{key} of {row}"));
    rows(traces, &sql)
        .iter()
        .map(|row| {
            let key = (0..keys.len()).map(|place| text(&row[format!("k{place}")])).collect();
            (
                key,
                (
                    number(row, "n"),
                    number(row, "total"),
                    number(row, "least"),
                    number(row, "most"),
                    number(row, "bytes"),
                ),
            )
        })
        .collect()
}

fn check(name: &str, table: &str, keys: &[(Key, &str)]) {
    let traces = Traces::golden(name);
    let (kernel, sql): (Vec<Key>, Vec<&str>) = keys.iter().copied().unzip();
    let io_only = table == "io";
    let expected = by_kernel(&traces, &kernel, io_only);
    assert!(!expected.is_empty(), "{name} {sql:?}");
    assert_eq!(by_sql(&traces, table, &sql, io_only), expected, "{name} {sql:?}");
}

#[test]
fn group_bys_are_equal() {
    let bucket = (Key::Bucket, "time_bucket(start_ns, '1s')");
    let cat = (Key::Cat, "lower(cat)");
    for name in ["posix_small", "dlio"] {
        check(name, "spans", &[cat, (Key::Name, "name")]);
        check(name, "spans", &[bucket, cat, (Key::Name, "name"), (Key::Thread, "tid"), (Key::File, "path")]);
        check(name, "spans", &[(Key::Host, "host"), (Key::Epoch, "epoch"), (Key::Step, "step")]);
        check(
            name,
            "io",
            &[bucket, (Key::Name, "name"), (Key::Directory, "nullif(regexp_replace(path, '/[^/]*$', ''), '')")],
        );
        check(name, "io", &[(Key::Thread, "tid"), (Key::File, "path")]);
    }
}

/// Operations are the numbers of the kernels' I/O categories.
#[test]
fn operations_are_equal() {
    let by_number = "CASE op WHEN 'read' THEN 1 WHEN 'write' THEN 2 WHEN 'metadata' THEN 3 WHEN 'process' THEN 4 WHEN 'ipc' THEN 5 \
                     WHEN 'other' THEN 6 WHEN 'sync' THEN 7 END";
    for name in ["posix_small", "dlio"] {
        check(name, "io", &[(Key::IoCat, by_number)]);
    }
}
