"""``weftline._analysis`` as a part of the package: not loaded by programs that are traced, honest when it fails, out of the way while it works."""

import json
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import golden
import pytest
import support
from test_types import mypy

import weftline
from weftline import analysis

USE = """
import weftline
from weftline import analysis
run = weftline.open(["a", "b"], groups=["g"], index=False, threads=2, progress=lambda what, done, total: None)
reveal_type(run)
reveal_type(run.report(preset="posix", time="1s", from_=0.5))
reveal_type(run.view("file_name", layer="posix"))
reveal_type(run.events(columns=("name",)))
reveal_type(run.sql("SELECT 1"))
reveal_type(run.info())
reveal_type(run.report().findings)
reveal_type(weftline.open)
"""
REVEALED = [
    "weftline.analysis.Run", "weftline._analysis.Report", "weftline._analysis.Table", "weftline._analysis.Stream", "weftline._analysis.Stream",
    "dict[str, Any]", "list[dict[str, Any]]",
]  # fmt: skip


def test_traced_programs_do_not_load_it(tmp_path: Path) -> None:
    program = """
    import sys, weftline
    from weftline import ai, span, trace
    heavy = ("weftline._analysis", "weftline.analysis", "pyarrow", "pandas", "subprocess", "shutil")
    assert not [name for name in heavy if name in sys.modules], sorted(sys.modules)
    assert not [line for line in open("/proc/self/maps") if "_analysis" in line]
    before = open
    from weftline import *
    assert open is before and "open" not in weftline.__all__
    """
    support.untraced(program, tmp_path)


def test_a_package_without_it_says_what_to_do(tmp_path: Path) -> None:
    program = """
    import sys
    sys.modules["weftline._analysis"] = None
    import weftline
    try:
        weftline.open("x")
    except ImportError as error:
        assert "pip install" in str(error) and "\\n" not in str(error), error
    else:
        raise AssertionError("it was loaded")
    """
    support.untraced(program, tmp_path)


ERRORS: list[tuple[str, type[Exception], str, Any]] = [
    ("no such path", FileNotFoundError, "/no/such/run", lambda run: weftline.open("/no/such/run")),
    ("nothing named", ValueError, "name a run", lambda run: weftline.open([])),
    ("no group", OSError, "manifest.json", lambda run: weftline.open(run, groups=["a"])),
    ("threads", ValueError, "at least 1", lambda run: weftline.open(run, threads=0)),
    ("preset", ValueError, "unknown preset `x`; known are posix", lambda run: weftline.open(run).report(preset="x")),
    ("view", ValueError, "unknown view `x`; known are time_range", lambda run: weftline.open(run).view("x")),
    ("layer", ValueError, "no layer \"x\"; it has posix", lambda run: weftline.open(run).view("file_name", layer="x")),
    ("condition", ValueError, "there is no column nam", lambda run: weftline.open(run).events(where="nam = 'x'")),
    ("column", ValueError, "no column \"x\"; they have ts_ns", lambda run: weftline.open(run).events(columns=["x"])),
    ("no columns", ValueError, "columns is empty", lambda run: weftline.open(run).events(columns=[])),
    ("time", ValueError, "is not a time", lambda run: weftline.open(run).view("time_range", time="1 fortnight")),
    ("no width", ValueError, "above zero", lambda run: weftline.open(run).view("time_range", time=0)),
    ("time's type", TypeError, "must be a number of seconds", lambda run: weftline.open(run).report(from_=[])),
    ("cell", KeyError, "no column", lambda run: weftline.open(run).view("file_name")["x"]),
    ("callback", ZeroDivisionError, "division", lambda run: weftline.open(run, progress=lambda *calls: 1 // 0)),
]


@pytest.mark.parametrize(("kind", "words", "ask"), [case[1:] for case in ERRORS], ids=[case[0] for case in ERRORS])
def test_errors_are_exceptions_with_one_sentence(kind: type[Exception], words: str, ask: Any, tmp_path: Path) -> None:
    with pytest.raises(kind) as caught:
        ask(golden.trace("posix_small", tmp_path))
    assert words in str(caught.value) and "\n" not in str(caught.value)


def test_an_empty_directory_has_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(analysis.Error, match="no trace files"):
        weftline.open(tmp_path)


def test_lengths_of_time(tmp_path: Path) -> None:
    from datetime import timedelta

    run = weftline.open(golden.trace("posix_small", tmp_path))
    wanted = run.view("time_range", time="250ms", layer="posix").rows()
    for same in (0.25, "0.25", "0.25s", "250000us", "250 ms", timedelta(milliseconds=250)):
        assert run.view("time_range", time=same, layer="posix").rows() == wanted, same


def large(directory: Path) -> Path:
    """A trace that takes a while to read."""
    place = directory / "large"
    place.mkdir()
    lines = (golden.GOLDEN / "dlio/trace").glob("*.pfw.gz")
    text = b"".join(path.read_bytes() for path in sorted(lines))
    for number in range(8):
        (place / f"trace-{number}.pfw.gz").write_bytes(text)
    return place


def test_other_threads_go_on(tmp_path: Path) -> None:
    place = large(tmp_path)
    beats: list[float] = []
    stop = threading.Event()

    def beat() -> None:
        while not stop.is_set():
            beats.append(time.monotonic())
            time.sleep(0.005)

    other = threading.Thread(target=beat)
    other.start()
    try:
        spans = []
        for work in (lambda: weftline.open(place), lambda: weftline.open(place, index=False).report(), lambda: weftline.open(place).report()):
            begun = time.monotonic()
            work()
            spans.append((begun, time.monotonic()))
    finally:
        stop.set()
        other.join()
    for begun, ended in spans:
        within = [beat for beat in beats if begun <= beat <= ended]
        # With the lock held there would be none but at the ends.
        assert len(within) >= min(5, (ended - begun) / 0.1), (ended - begun, len(within))


def test_progress_is_told(tmp_path: Path) -> None:
    calls: list[tuple[str, int, int]] = []
    weftline.open(large(tmp_path), progress=lambda *now: calls.append(now))
    assert calls and calls[-1][1] == calls[-1][2] > 0
    assert all(0 <= done <= total and what for what, done, total in calls)


def test_progress_does_not_wait_for_a_reader_that_holds_the_lock(tmp_path: Path) -> None:
    import polars

    run = weftline.open(large(tmp_path), index=False, progress=lambda *now: None)
    assert polars.DataFrame(run.events(columns=["name"])).height == run.info()["events"]


def test_the_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(analysis._Bar, "PATIENCE", 0.0)
    bar = analysis._listener(True)
    assert bar is not None
    for done in (0, 50_000_000, 100_000_000):
        bar("indexing", done, 100_000_000)
    drawn = capsys.readouterr().err
    assert "indexing" in drawn and "50 of 100 MB" in drawn and drawn.endswith("\r")
    # Neither a terminal nor a notebook.
    assert analysis._listener(None) is None and analysis._listener(False) is None


def test_the_examples_of_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    golden.trace("posix_small", tmp_path).rename(tmp_path / "RUN")
    monkeypatch.chdir(tmp_path)
    text = (golden.GOLDEN.parents[2] / "docs/analyse-python.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len(blocks) == 5
    known: dict[str, Any] = {}
    for block in blocks:
        exec(block, known)
    assert len(known["frame"]) > 0 and len(known["seconds"]) > 0 and known["slowest"]["count"] > 0
    assert "rules checked" in capsys.readouterr().out


def test_runs_that_weft_made(tmp_path: Path) -> None:
    place = tmp_path / "run"
    program = "open('data.txt', 'w').write('x' * 4096)"
    subprocess.run([support.weft(), "run", "-q", "-o", str(place), "--", sys.executable, "-c", program], cwd=tmp_path, check=True)
    files = weftline.open(place).view("file_name", preset="posix", layer="posix")
    mine = next(row for row in files.rows() if row["file_name"].endswith("data.txt"))
    assert mine["write_size_sum"] == 4096


def test_samples_have_units(tmp_path: Path) -> None:
    place = tmp_path / "run"
    program = "import time\nwhile time.process_time() < 0.5: pass"
    job = subprocess.Popen(["/usr/bin/python3", "-c", program])
    command = [support.weft(), "collect", "-q", "--tree", str(job.pid), "--interval", "50ms", "-o", str(place)]
    subprocess.run(command, check=True)
    job.wait()
    run = weftline.open(place)
    samples = run.samples()
    assert samples.columns[:2] == ["time_ns", "dur_ns"] and {"host", "process", "pid", "program", "metric", "value", "unit"} <= set(samples.columns)
    rows = samples.to_arrow().to_pylist()
    of = lambda metric, pid: [row for row in rows if (row["metric"], row["pid"]) == (metric, pid)]
    cpu = of("cpu_ns", job.pid)
    assert cpu and {(row["unit"], row["type"]) for row in cpu} == {("ns", "delta")}
    assert {row["unit"] for row in of("rss_bytes", job.pid)} == {"bytes"} and {row["unit"] for row in of("idle_pct", 0)} == {"percent"}
    assert all(row["program"] is None for row in rows if row["pid"] == 0)
    # What the report adds up is what the rows hold.
    programs = run.report().sections["sampled_programs"].rows()
    assert sum(row["cpu_ns"] for row in programs) == sum(row["value"] for row in rows if row["metric"] == "cpu_ns" and row["category"] == "process")
    assert run.samples(where="pid = 0").to_arrow().num_rows == sum(row["pid"] == 0 for row in rows)


def test_runs_whose_sampler_was_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it had not put into its file yet is there, as much of it as the command finds in a copy of the run."""
    place = tmp_path / "run"
    sampler = subprocess.Popen([support.weft(), "collect", "-q", "--interval", "20ms", "-o", str(place)], cwd=tmp_path)
    try:
        deadline = time.monotonic() + 30
        while not any(tail.stat().st_size > 20_000 for tail in place.glob(".*.samples.tail")):
            assert time.monotonic() < deadline, "no samples"
            time.sleep(0.02)
    finally:
        sampler.kill()
        sampler.wait()
    copies = [shutil.copytree(place, tmp_path / name) for name in ("told", "bare")]
    checked = subprocess.run([support.weft(), "check", "--json", str(copies[0])], stdout=subprocess.PIPE, check=True)
    samples = json.loads(checked.stdout)["samples"]
    assert samples > 50
    assert weftline.open(place).info()["phases"]["C"] == samples
    assert not list(place.glob(".*.samples.tail"))
    # Without any weft it cannot be done, and that is said.
    monkeypatch.setattr(analysis, "BINARY", str(tmp_path / "nowhere"))
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.warns(UserWarning, match="the last samples of a collector are not in its file"):
        analysis._recover(str(copies[1]))


def test_users_see_types(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(USE)
    said = mypy("mypy", "--strict", "use.py", directory=tmp_path).replace("builtins.", "")
    revealed = [line.partition("Revealed type is ")[2].strip('"') for line in said.splitlines() if "Revealed" in line]
    assert revealed[:-1] == REVEALED and "progress" in revealed[-1]


def test_the_stub_is_true(tmp_path: Path) -> None:
    mypy("mypy.stubtest", "weftline._analysis", "--ignore-disjoint-bases", directory=tmp_path)
