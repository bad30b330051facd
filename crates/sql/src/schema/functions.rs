//! The functions in addition to DataFusion's.

use super::Function;

/// All of them. The examples give their results on any run that has spans.
pub(crate) const FUNCTIONS: &[Function] = &[
    Function {
        name: "origin",
        usage: "origin()",
        about: "Start of the run's first span, nanoseconds since 1970. Time buckets count from it. Conditions such as `ts_ns < origin() + 5000000000` skip row groups.",
        example: "SELECT origin() = min(start_ns) AS same FROM spans",
        result: "true",
    },
    Function {
        name: "time_bucket",
        usage: "time_bucket(ts_ns, width)",
        about: "Number of the time bucket, counted from the run's origin. A width is a string such as `'1s'`, `'100ms'`, `'5m'`, or nanoseconds.",
        example: "SELECT time_bucket(origin() + 2500000000, '1s') AS bucket",
        result: "2",
    },
    Function {
        name: "bucket_start",
        usage: "bucket_start(ts_ns, width)",
        about: "Start of the time bucket that holds a time, nanoseconds since 1970.",
        example: "SELECT bucket_start(origin() + 2500000000, '1s') - origin() AS ns",
        result: "2000000000",
    },
    Function {
        name: "human_size",
        usage: "human_size(bytes)",
        about: "Bytes in readable form.",
        example: "SELECT human_size(1536) AS size",
        result: "1.5 KiB",
    },
    Function {
        name: "human_time",
        usage: "human_time(ns)",
        about: "Nanoseconds in readable form.",
        example: "SELECT human_time(1500000) AS time",
        result: "1.5 ms",
    },
    Function {
        name: "overlap",
        usage: "overlap(start1, end1, start2, end2)",
        about: "How long two intervals overlap, in their own unit; 0 if they do not.",
        example: "SELECT overlap(0, 10, 7, 20) AS ns",
        result: "3",
    },
    Function {
        name: "io_op",
        usage: "io_op(name)",
        about: "Operation of a call by its name, as in the column `op` of `io`.",
        example: "SELECT io_op('pread64') AS op",
        result: "read",
    },
    Function {
        name: "arg",
        usage: "arg(args, key)",
        about: "One argument out of `args` or `extra`, as text; null if it is missing.",
        example: "SELECT arg('{\"batch\":32,\"file\":\"a\"}', 'batch') AS batch",
        result: "32",
    },
    Function {
        name: "percentile",
        usage: "percentile(x, q)",
        about: "Aggregate: the smallest value that is at least as large as the share `q` (0 to 1) of all values. Exact; always one of the values. (`percentile_cont` interpolates, `approx_percentile_cont` estimates in bounded memory.)",
        example: "SELECT percentile(x, 0.9) AS p90 FROM (VALUES (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)) AS t(x)",
        result: "9",
    },
    Function {
        name: "span_union",
        usage: "span_union(start_ns, end_ns)",
        about: "Aggregate: how long at least one of the intervals was active. Nested and parallel spans count once.",
        example: "SELECT span_union(a, b) AS ns FROM (VALUES (0, 10), (5, 15), (20, 25)) AS t(a, b)",
        result: "20",
    },
];
