"""``weftline.open`` on the golden traces: views, metrics, events, reports, in the hands of those who take them."""

import json
import subprocess
from pathlib import Path
from typing import Any, Callable

import duckdb
import golden
import pandas
import polars
import pyarrow
import pytest
import support

import weftline
from weftline import analysis


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, analysis.Run]:
    directory = tmp_path_factory.mktemp("golden")
    return {name: weftline.open(golden.trace(name, directory)) for name in ("posix_small", "dlio", "hybrid", "hybrid_v1")}


VIEWS = [
    (name, layer, view)
    for name in ("posix_small", "dlio")
    for layer in ("posix", "reader_posix", "checkpoint_posix")
    for view in ("time_range", "proc_name", "file_name")
]


@pytest.mark.parametrize(("name", "layer", "view"), VIEWS)
def test_views_equal_the_canonical_tables(runs: dict[str, analysis.Run], name: str, layer: str, view: str) -> None:
    expected = golden.table(f"{name}/canonical/view_{layer}_{view}")
    ours = runs[name].view(view, preset="dlio", time="1s", layer=layer)
    rows = {str(row[view]): row for row in ours.rows()}
    assert sorted(rows) == sorted(row[view] for row in expected)
    for row in expected:
        for column, value in row.items():
            assert column == view or golden.equal(rows[row[view]][column], value), (row[view], column, value)


def test_metrics_equal_the_canonical_table(runs: dict[str, analysis.Run]) -> None:
    keys = ("proc_name", "time_range", "cat", "io_cat", "func_name")
    expected = {tuple(row[key] for key in keys): row for row in golden.table("posix_small/canonical/hlm_proc_time")}
    found = {tuple(str(row[key]) for key in keys): row for row in runs["posix_small"].metrics().rows()}
    assert sorted(found) == sorted(expected)
    for key, row in expected.items():
        for column in ("time", "count", "time_call_min", "time_call_max"):
            assert golden.equal(found[key][column], row[column]), (key, column)


def test_flat_views_hold_all_layers(runs: dict[str, analysis.Run]) -> None:
    flat = runs["dlio"].view("time_range", preset="dlio", time="1s")
    assert {"time_range", "compute_time_sum", "reader_posix_size_sum", "u_reader_time_union"} <= set(flat.columns)
    assert "time_range" in flat and "nothing" not in flat
    assert flat["time_range"] == sorted(flat["time_range"])


def read_pyarrow(stream: Any) -> tuple[int, int, list[str]]:
    table = pyarrow.table(stream)
    assert pyarrow.types.is_dictionary(table.schema.field("name").type)
    return table.num_rows, sum(table["dur_ns"].drop_null().to_pylist()), sorted(set(table["name"].to_pylist()))


def read_pandas(stream: Any) -> tuple[int, int, list[str]]:
    frame = pandas.DataFrame.from_arrow(stream)
    assert isinstance(frame["name"].dtype, pandas.CategoricalDtype)
    return len(frame), int(frame["dur_ns"].sum()), sorted(frame["name"].unique())


def read_to_pandas(stream: Any) -> tuple[int, int, list[str]]:
    frame = stream.to_pandas()
    return len(frame), int(frame["dur_ns"].sum()), sorted(frame["name"].unique())


def read_polars(stream: Any) -> tuple[int, int, list[str]]:
    frame = polars.DataFrame(stream)
    return frame.height, frame["dur_ns"].sum(), sorted(frame["name"].cast(polars.String).unique().to_list())


def read_duckdb(stream: Any) -> tuple[int, int, list[str]]:
    query = "SELECT count(*), sum(dur_ns)::BIGINT, list_sort(list(DISTINCT name::VARCHAR)) FROM stream"
    [(rows, time, names)] = duckdb.sql(query).fetchall()
    return rows, time, names


READERS = [read_pyarrow, read_pandas, read_to_pandas, read_polars, read_duckdb]


@pytest.mark.parametrize("index", [True, False], ids=["index", "no index"])
@pytest.mark.parametrize("read", READERS)
def test_events_in_the_hands_of_others(read: Callable[[Any], tuple[int, int, list[str]]], index: bool, tmp_path: Path) -> None:
    run = weftline.open(golden.trace("posix_small", tmp_path), index=index)
    assert (tmp_path / "posix_small/.weft").exists() == index
    stored = [row for row in golden.table("posix_small/canonical/raw_events")]
    stream = run.events(columns=["name", "cat", "ph", "path", "dur_ns", "host"], where="ph = 'X'")
    rows, time, names = read(stream)
    # Those that the canonical table leaves out are calls on files of the system, and the tracer's own.
    assert rows == run.report().job["events"] >= len(stored)
    assert time >= 1000 * sum(int(float(row["dur"])) for row in stored)
    assert {row["name"] for row in stored} <= set(names)
    assert read(stream) == (rows, time, names), "a stream can be read again"


def test_all_columns_of_events(runs: dict[str, analysis.Run]) -> None:
    for run in runs.values():
        table = run.events().to_arrow()
        assert table.column_names == analysis.event_columns() == run.events().columns
        assert table.num_rows == run.info()["events"]
        arguments = [json.loads(text) for text in table["args"].to_pylist() if text is not None]
        assert arguments and all(isinstance(one, dict) for one in arguments)


def test_events_and_canonical_events_agree(runs: dict[str, analysis.Run]) -> None:
    columns = ["name", "ts_ns", "dur_ns", "tid", "path"]
    table = runs["posix_small"].events(columns=columns, where="ph = 'X'").to_arrow().to_pylist()
    ours = {(row["name"], row["ts_ns"] // 1000, row["dur_ns"] // 1000, row["tid"], row["path"] or "") for row in table}
    expected = {
        (row["name"], int(float(row["ts"])), int(float(row["dur"])), int(float(row["tid"])), row["file_name"])
        for row in golden.table("posix_small/canonical/raw_events")
    }
    assert expected <= ours


def test_conditions_and_times(runs: dict[str, analysis.Run]) -> None:
    run = runs["posix_small"]

    def names(**asked: Any) -> set[str]:
        return set(run.events(columns=["name"], **asked).to_arrow()["name"].to_pylist())

    assert names(where="name IN ('read', 'write') AND dur_ns >= 0") <= {"read", "write"}
    assert names(where="path LIKE '/no/such/%'") == set()
    origin = run.info()["origin_ns"]
    late = run.events(columns=["ts_ns", "dur_ns"], from_="500ms", to=0.9).to_arrow().to_pylist()
    assert late and all(row["ts_ns"] < origin + 900_000_000 for row in late)
    assert all(row["ts_ns"] + (row["dur_ns"] or 0) >= origin + 500_000_000 for row in late)
    reads = run.view("file_name", layer="posix", where="name = 'read'")
    assert sum(reads["count_sum"]) == len(run.events(columns=["pid"], where="name = 'read' AND ph = 'X'").to_arrow())
    coarse, fine = run.view("time_range", layer="posix", time="1s"), run.view("time_range", layer="posix", time="100ms")
    assert len(fine) > len(coarse) and sum(fine["count_sum"]) == sum(coarse["count_sum"])


def test_reports(runs: dict[str, analysis.Run]) -> None:
    report = runs["posix_small"].report(preset="posix", time="1s", views=["file_name"])
    assert report.job["processes"] == 4 and report.job["preset"] == "posix"
    assert {"layers", "operations", "sizes", "flat_file_name"} <= set(report.sections)
    operations = report.sections["operations"]
    assert sum(operations["count"]) <= report.job["events"]
    assert json.loads(report.to_json())["job"] == report.job
    assert all({"rule", "severity", "advice", "query"} <= set(finding) for finding in report.findings)
    assert str(report) == report.text and "read" in report.text
    page = report._repr_html_()
    assert page.startswith("<iframe") and "<script" not in page and "&lt;h1" not in page
    assert report.html.startswith("<!doctype html>")


def test_a_report_of_a_run_tells_what_was_lost_and_covered(tmp_path: Path) -> None:
    traced = support.run("print(open(__file__).read() != '')", tmp_path)
    command = [support.weft(), "report", "--json", str(traced.directory)]
    theirs = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    ours = weftline.open(traced.directory).report()
    assert ours.job["lost_events"] == 0 and 0 < ours.job["coverage_percent"]["read"] <= 100
    assert json.loads(ours.to_json())["job"] == theirs["job"]
    assert " coverage  " in ours.text and " lost  " in ours.text


def test_records_of_the_tracer_and_samples_of_hosts(runs: dict[str, analysis.Run]) -> None:
    for name in ("hybrid", "hybrid_v1"):
        profiles, system = runs[name].profiles(), runs[name].system()
        assert sum(profiles["count"]) == 922, name
        assert len(system) > 0 and all(value is not None for value in system["sys_cpu_idle_pct"])
        # On the time axis of the trace: the first sample may lie before its origin.
        assert min(profiles["time_range"]) >= 0 and max(system["time_range"]) <= max(profiles["time_range"]) + 5


def test_what_a_run_holds(runs: dict[str, analysis.Run]) -> None:
    info = runs["posix_small"].info()
    assert len(info["files"]) == 4 and info["preset"] == "posix" and info["layers"] == ["posix"]
    assert sum(file["events"] for file in info["files"]) <= info["events"] == sum(info["phases"].values())
    assert all(file["flaws"] == 0 and file["unreadable"] is None for file in info["files"])
    assert len(info["processes"]) == 4 and info["index"][0]["rows"] == info["events"]
    assert "799" in repr(runs["posix_small"]) or str(info["events"]) in repr(runs["posix_small"])


def test_several_runs_and_globs(tmp_path: Path) -> None:
    place = golden.trace("posix_small", tmp_path)
    files = sorted(place.glob("*.pfw.gz"))
    whole = weftline.open(place).info()["events"]
    assert weftline.open(files).info()["events"] == whole
    assert weftline.open(str(place / "*.pfw.gz"), threads=1).info()["events"] == whole
