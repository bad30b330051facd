#!/usr/bin/env python3
"""One query by a general engine, straight from a compressed trace: engine.py duckdb|polars pairs|groups|filter FILE…

`pairs` groups by category and name, `groups` by second, category, name, process and file, `filter` keeps the calls of one name. Each
has the aggregates that ours has. Columns are declared, so no engine spends time on guessing them. Prints rows and events as JSON.
"""

import json
import sys

ONE_NAME = "fsync"


def with_duckdb(query: str, files: list[str]) -> tuple[int, int]:
    import duckdb

    duckdb.sql("SET enable_progress_bar = false")
    columns = """{name: 'VARCHAR', cat: 'VARCHAR', ph: 'VARCHAR', pid: 'BIGINT', ts: 'BIGINT', dur: 'BIGINT',
        args: 'STRUCT(hhash VARCHAR, fhash VARCHAR, ret BIGINT)'}"""
    source = f"read_json($files, format = 'newline_delimited', ignore_errors = true, columns = {columns})"
    aggregates = "count(*) AS n, sum(dur), sum(args.ret), min(dur), max(dur)"
    asked = {
        "pairs": f"SELECT cat, name, {aggregates} FROM {source} WHERE ph = 'X' GROUP BY ALL",
        "groups": f"SELECT ts // 1000000, cat, name, pid, args.fhash, {aggregates} FROM {source} WHERE ph = 'X' GROUP BY ALL",
        "filter": f"SELECT cat, name, {aggregates} FROM {source} WHERE ph = 'X' AND name = '{ONE_NAME}' GROUP BY ALL",
    }[query]
    # The outer count keeps the rows out of Python.
    return duckdb.execute(f"SELECT count(*), coalesce(sum(n), 0)::BIGINT FROM ({asked})", {"files": files}).fetchone()


def with_polars(query: str, files: list[str]) -> tuple[int, int]:
    import polars as pl

    arguments = pl.Struct({"hhash": pl.String, "fhash": pl.String, "ret": pl.Int64})
    schema = {"name": pl.String, "cat": pl.String, "ph": pl.String, "pid": pl.Int64, "ts": pl.Int64, "dur": pl.Int64, "args": arguments}
    events = pl.scan_ndjson(files, schema=schema).filter(pl.col("ph") == "X")
    arguments = pl.col("args").struct
    if query == "filter":
        events = events.filter(pl.col("name") == ONE_NAME)
    keys = ["cat", "name"]
    if query == "groups":
        keys = [pl.col("ts") // 1_000_000, "cat", "name", "pid", arguments.field("fhash")]
    dur = pl.col("dur")
    sums = [pl.len().alias("n"), dur.sum().alias("time"), arguments.field("ret").sum().alias("bytes"), dur.min().alias("least"), dur.max().alias("most")]
    found = events.group_by(keys).agg(sums).select(pl.len().alias("rows"), pl.col("n").sum()).collect(engine="streaming")
    return found.row(0)


def main() -> int:
    engine, query, *files = sys.argv[1:]
    rows, events = {"duckdb": with_duckdb, "polars": with_polars}[engine](query, files)
    print(json.dumps({"rows": rows, "events": events}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
