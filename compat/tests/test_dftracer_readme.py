"""The example of DFTracer's README, unchanged, with the README's environment only: no `weft run`, no LD_PRELOAD."""

import os

import numpy
import pytest
from support import PROGRAMS, one_duration, read

# What the README's listing takes for granted.
PRELUDE = """\
import os
from multiprocessing import get_context
from time import sleep

import numpy as np

cwd = os.getcwd()


def init():
    pass


"""


@pytest.mark.parametrize("compression", ["1", "0"])
def test_example_of_the_readme(compression, runner):
    (runner.directory / "data").mkdir()
    (runner.directory / "app.py").write_text(PRELUDE + (PROGRAMS / "dftracer_readme.py").read_text())
    done = runner.run(
        runner.directory / "app.py",
        DFTRACER_ENABLE=1,
        DFTRACER_LOG_FILE=runner.directory / "log_file",
        DFTRACER_DATA_DIR=f"/dev/shm/:/p/gpfs1/user/dataset:{runner.directory}/data",
        DFTRACER_TRACE_COMPRESSION=compression,
    )
    worker = int(done.stdout.split("with pid ")[1])
    assert done.stdout == f"Calling spawn on 2 with pid {worker}\n" and done.stderr == ""
    assert numpy.load(runner.directory / "data/demofile1.npz")["x"].shape == (8, 8, 1024)

    end = ".pfw.gz" if compression == "1" else ".pfw"
    files = {path.name: read(path) for path in runner.files("log_file-*")}
    pids = {int(name[len("log_file-app-") : -len(end)]): events for name, events in files.items()}
    assert worker in pids and os.getpid() not in pids
    (main,) = [events for events in pids.values() if any(event["name"] == "log_events" for event in events)]

    one_duration([event for event in main if event["cat"] == "COMPUTE"], "log_events", 1_000_000)
    for events, name in ((main, "demofile1.npz"), (pids[worker], "demofile2.txt")):
        path = f"{runner.directory}/data/{name}"
        calls = [event for event in events if event.get("args", {}).get("path") == path]
        kinds = {event["name"].rstrip("64") for event in calls}
        assert {"open", "write", "close"} <= kinds, (name, kinds)
    written = sum(
        event["args"].get("ret", 0) for event in pids[worker] if event["name"] == "write" and event["cat"] == "POSIX"
    )
    assert written == len("Now the file has more content!")


def test_example_of_the_readme_under_weft_run(runner):
    (runner.directory / "data").mkdir()
    (runner.directory / "app.py").write_text(PRELUDE + (PROGRAMS / "dftracer_readme.py").read_text())
    runner.under_weft(runner.directory / "app.py")
    events = runner.run_events()
    one_duration([event for event in events if event["cat"] == "COMPUTE"], "log_events", 1_000_000)
    paths = {event["args"].get("path") for event in events if event["cat"] == "POSIX" and "args" in event}
    assert {f"{runner.directory}/data/demofile1.npz", f"{runner.directory}/data/demofile2.txt"} <= paths
    assert runner.files("log_file*") == [] and runner.files("trace-*") == []
