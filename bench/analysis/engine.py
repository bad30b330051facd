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
    aggregates = "count(*) AS n, sum(dur) AS time, sum(args.ret) AS bytes, min(dur) AS least, max(dur) AS most"
    asked = {
        "pairs": f"SELECT cat, name, {aggregates} FROM {source} WHERE ph = 'X' GROUP BY ALL",
        "groups": f"""SELECT ts // 1000000, cat, name, pid, args.fhash, {aggregates} FROM {source}
            WHERE ph = 'X' GROUP BY ALL""",
        "filter": f"SELECT cat, name, {aggregates} FROM {source} WHERE ph = 'X' AND name = '{ONE_NAME}' GROUP BY ALL",
    }[query]
    # The outer sums keep the rows out of Python, and need every aggregate: what nobody reads is not computed.
    read = ", ".join(f"sum({name})" for name in ("time", "bytes", "least", "most"))
    counted = f"SELECT count(*), coalesce(sum(n), 0)::BIGINT, {read} FROM ({asked})"
    return duckdb.execute(counted, {"files": files}).fetchone()[:2]


def with_polars(query: str, files: list[str]) -> tuple[int, int]:
    import polars as pl

    arguments = pl.Struct({"hhash": pl.String, "fhash": pl.String, "ret": pl.Int64})
    texts, numbers = dict.fromkeys(["name", "cat", "ph"], pl.String), dict.fromkeys(["pid", "ts", "dur"], pl.Int64)
    schema = {**texts, **numbers, "args": arguments}
    events = pl.scan_ndjson(files, schema=schema).filter(pl.col("ph") == "X")
    arguments = pl.col("args").struct
    if query == "filter":
        events = events.filter(pl.col("name") == ONE_NAME)
    keys = ["cat", "name"]
    if query == "groups":
        keys = [pl.col("ts") // 1_000_000, "cat", "name", "pid", arguments.field("fhash")]
    dur = pl.col("dur")
    groups = events.group_by(keys).agg(
        n=pl.len(), time=dur.sum(), bytes=arguments.field("ret").sum(), least=dur.min(), most=dur.max()
    )
    read = [pl.col(name).sum() for name in ("n", "time", "bytes", "least", "most")]
    found = groups.select(pl.len().alias("rows"), *read).collect(engine="streaming")
    return found.row(0)[:2]


def main() -> int:
    engine, query, *files = sys.argv[1:]
    rows, events = {"duckdb": with_duckdb, "polars": with_polars}[engine](query, files)
    print(json.dumps({"rows": rows, "events": events}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
