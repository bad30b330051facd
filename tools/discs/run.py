"""Reads a run directory with nothing but the standard library: what compare.py and check.py look at."""

import gzip
import json
import pathlib
import subprocess
import tempfile


def import_folder(weft, path):
    """Imports a folder; returns (record, events). Times of events are integer nanoseconds."""
    with tempfile.TemporaryDirectory() as scratch:
        run = pathlib.Path(scratch) / "run"
        command = [str(weft), "import", "--json", "--host", "unknown", str(path), "-o", str(run)]
        # A zone that nothing here is in: the machine's own must not matter.
        done = subprocess.run(command, capture_output=True, text=True, env={"TZ": "Asia/Kathmandu"})
        if done.returncode != 0:
            raise SystemExit(f"{path}: {done.stderr.strip()}")
        return json.loads(done.stdout), list(events(run))


def events(run):
    for path in sorted(run.glob("*.pfw.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                line = line.strip().rstrip(",")
                if line.startswith("{"):
                    yield timed(json.loads(line))


def timed(event):
    """Adds `start` and `end` in ns: whole microseconds, and their remainders in one field (start * 1000 + end)."""
    if "ts" not in event:
        return event
    rest = event.get("ns", 0)
    event["start"] = event["ts"] * 1000 + rest // 1000
    event["end"] = (event["ts"] + event.get("dur", 0)) * 1000 + rest % 1000
    return event
