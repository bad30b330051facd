"""One run, asked everywhere: the manifest of ``weft run``, ``weft top``, ``weft report``, ``weftline.open`` and SQL count the same calls, bytes and time."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import support
from test_analysis_sql import real

import weftline

SIZE = 300_000

SQLITE = """
import sqlite3
base = sqlite3.connect("base.db")
base.execute("CREATE TABLE t (n INTEGER, text TEXT)")
for n in range(20):
    base.execute("INSERT INTO t VALUES (?, ?)", (n, "x" * 500))
    base.commit()
print(base.execute("SELECT count(*) FROM t").fetchone())
"""

TRAINING = """
import os, shutil
for epoch in range(2):
    for number in range(8):
        with open(f"sample{number}", "rb", buffering=0) as sample:
            while batch := sample.read(16_000):
                sum(batch[::64])
    with open("checkpoint.pt", "wb") as checkpoint:
        checkpoint.write(b"w" * 100_000)
        os.fsync(checkpoint.fileno())
    shutil.copyfile("checkpoint.pt", f"kept{epoch}.pt")
"""

PROGRAMS = {
    "cp": ["cp", "from.bin", "to.bin"],
    "sqlite": [sys.executable, "-c", SQLITE],
    "training": [sys.executable, "-c", TRAINING],
}


def ns(seconds: float) -> int:
    return round(seconds * 1e9)


def of_report(report: dict[str, Any], work: str) -> dict[str, tuple[int, ...]]:
    """Calls, bytes read, bytes written and time by file. A report leaves out files of the system."""
    rows = [row for row in report["sections"]["top_files"] if row["file_name"].startswith(work)]
    return {row["file_name"]: (row["calls"], row["read_bytes"], row["written_bytes"], ns(row["time_sum"])) for row in rows}


@pytest.mark.parametrize("program", PROGRAMS)
def test_everybody_counts_the_same(program: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work, run = tmp_path / "work", tmp_path / "run"
    work.mkdir()
    (work / "from.bin").write_bytes(os.urandom(SIZE))
    for number in range(8):
        (work / f"sample{number}").write_bytes(os.urandom(50_000))
    subprocess.run([support.weft(), "run", "-o", run, "--", *PROGRAMS[program]], cwd=work, check=True, capture_output=True)

    [manifest] = [json.loads(path.read_text()) for path in (run / "run.d").glob("*.json") if "processes" in json.loads(path.read_text())]
    expected = {
        total["path"]: (total["reads"], total["writes"], total["read_bytes"], total["write_bytes"], total["time_ns"])
        for total in manifest["files"]
        if total["path"].startswith(str(work))
    }
    asked = subprocess.run([support.weft(), "report", "--json", "--top", "1000", run], check=True, capture_output=True).stdout
    opened = weftline.open(run)
    report, ours = of_report(json.loads(asked), str(work)), of_report(json.loads(opened.report().to_json()), str(work))
    assert report.keys() == expected.keys() and ours
    # Python's report has the largest files alone.
    assert ours == {path: report[path] for path in ours}
    for path, (_, read, written, time) in report.items():
        assert (read, written) == expected[path][2:4], path
        assert abs(time - expected[path][4]) <= 1, path
    if program == "cp":
        assert expected[f"{work}/from.bin"][2:4] == (SIZE, 0) and expected[f"{work}/to.bin"][2:4] == (0, SIZE)
    if program == "training":
        assert expected[f"{work}/checkpoint.pt"][2:4] == (200_000, 200_000) and expected[f"{work}/kept1.pt"][2:4] == (0, 100_000)

    program_of_sql = real()
    if program_of_sql is None:
        pytest.skip("weft-sql is not built; `make sql` does that, and WEFT_SQL names another")
    monkeypatch.setenv("WEFT_SQL", program_of_sql)

    def query(text: str) -> list[dict[str, Any]]:
        """By SQL in Python, and by the command."""
        said = subprocess.run([support.weft(), "query", "--format", "json", run, text], check=True, capture_output=True).stdout
        rows: list[dict[str, Any]] = opened.sql(text).to_arrow().to_pylist()
        assert json.loads(said) == rows
        return rows

    files = query(f"SELECT path, io_calls, reads, writes, read_bytes, write_bytes, io_ns FROM files WHERE path LIKE '{work}%' ORDER BY path")
    assert {row["path"]: (row["reads"], row["writes"], row["read_bytes"], row["write_bytes"], row["io_ns"]) for row in files} == expected
    for row in files:
        calls, read, written, time = report[row["path"]]
        assert (row["io_calls"], row["read_bytes"], row["write_bytes"]) == (calls, read, written)
        assert abs(row["io_ns"] - time) <= 1
    moved = {
        process["pid"]: (process["traced"]["posix_read"] + process["traced"]["stdio_read"], process["traced"]["posix_write"] + process["traced"]["stdio_write"])
        for process in manifest["processes"]
    }
    # Process 0 is the host, of which there are samples when the run took long enough.
    processes = query("SELECT pid, sum(read_bytes) AS r, sum(write_bytes) AS w FROM processes WHERE events > 0 AND pid > 0 GROUP BY pid ORDER BY pid")
    assert {row["pid"]: (row["r"], row["w"]) for row in processes} == moved
    calls = query("SELECT name, count(*) AS n, sum(dur_ns) AS ns FROM spans WHERE cat IN ('POSIX', 'STDIO') GROUP BY name ORDER BY name")
    # Calls that waited for somebody else, on a pipe for instance, stand apart from those of the same name on files.
    totals: dict[str, tuple[int, int]] = {}
    for total in manifest["calls"]:
        if total["cat"] in ("POSIX", "STDIO"):
            count, time_ns = totals.get(total["name"], (0, 0))
            totals[total["name"]] = (count + total["count"], time_ns + total["time_ns"])
    assert {row["name"]: (row["n"], row["ns"]) for row in calls} == totals


STEADY = f"""
import os
with open("from.bin", "rb", buffering=0) as source, open("to.bin", "wb", buffering=0) as target:
    while not os.path.exists("stop"):
        source.seek(0)
        target.write(source.read({SIZE // 10}))
"""


def test_top_counts_as_the_others_do(tmp_path: Path) -> None:
    """`weft top` shows rates of an interval; in a program that always does the same, bytes of a call are those of the whole run."""
    work, run = tmp_path / "work", tmp_path / "run"
    work.mkdir()
    (work / "from.bin").write_bytes(os.urandom(SIZE))
    program = [sys.executable, "-c", STEADY]
    with subprocess.Popen([support.weft(), "run", "-q", "-o", run, "--", *program], cwd=work, stderr=subprocess.DEVNULL) as running:
        try:
            begun = work / "to.bin"
            while not (begun.exists() and begun.stat().st_size) and running.poll() is None:
                time.sleep(0.01)
            said = subprocess.run([support.weft(), "top", "--once", "--json", "--interval", "500ms", run], check=True, capture_output=True).stdout
        finally:
            (work / "stop").touch()
    top = json.loads(said)
    [manifest] = [json.loads(path.read_text()) for path in (run / "run.d").glob("*.json") if "processes" in json.loads(path.read_text())]
    files = {total["path"]: total for total in manifest["files"]}
    report = of_report(json.loads(subprocess.run([support.weft(), "report", "--json", run], check=True, capture_output=True).stdout), str(work))
    for kind, name, direction in (("read", "from.bin", 1), ("write", "to.bin", 2)):
        path = str(work / name)
        whole = files[path][f"{kind}_bytes"] / files[path][f"{kind}s"]
        [call] = [call for call in top["calls"] if call["name"] == kind]
        [file] = [file for file in top["files"] if file["name"] == path]
        assert call[f"{kind}_bytes_per_second"] / call["per_second"] == pytest.approx(whole, rel=1e-9)
        assert file[f"{kind}_bytes_per_second"] == pytest.approx(call[f"{kind}_bytes_per_second"], rel=1e-9)
        assert report[path][direction] == files[path][f"{kind}_bytes"]
