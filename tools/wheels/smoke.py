"""Looks whether an installed weftline works: smoke.py WEFT. Run by the interpreter of a fresh environment; prints one line."""

import gzip
import json
import subprocess
import sys
import tempfile
from importlib import metadata
from pathlib import Path

import weftline

PROGRAM = """
import weftline
{start}

@weftline.trace(args=True)
def load(path):
    with open(path, "w") as file:
        return file.write("x" * 100)

class Thing:
    @weftline.trace
    def method(self): return 1

with weftline.span("whole", kind="smoke"):
    load("data.txt")
    Thing().method()
"""


def events(run: Path) -> "dict[str, dict]":
    found = {}
    for path in run.glob("*.pfw.gz"):
        with gzip.open(path, "rt") as file:
            for line in file:
                if line.strip() not in ("[", "]", ""):
                    event = json.loads(line)
                    found[event["name"]] = event
    return found


def check(run: Path) -> None:
    seen = events(run)
    assert {"whole", "load", "Thing.method", "write", "close"} <= set(seen), sorted(seen)
    assert seen["load"]["args"] == {"path": "data.txt"}, seen["load"]
    assert seen["whole"]["ts"] <= seen["load"]["ts"], seen
    report = weftline.open(run).report()
    assert report.job["events"] >= len(seen) and "operations" in report.sections, report.text


def main() -> None:
    weft = sys.argv[1]
    wheel = metadata.distribution("weftline").read_text("WHEEL") or ""
    tag = next(line.partition(": ")[2] for line in wheel.splitlines() if line.startswith("Tag: "))
    assert tag.startswith("cp312-abi3" if sys.version_info >= (3, 12) else "cp39-abi3"), tag
    assert "weftline._analysis" not in sys.modules
    version = subprocess.run([weft, "--version"], capture_output=True, text=True, check=True).stdout
    assert weftline.__version__ in version and metadata.version("weftline") == weftline.__version__, version
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        command = [sys.executable, "-c", PROGRAM.format(start="")]
        subprocess.run([weft, "run", "-q", "-o", "run", "--", *command], cwd=place, check=True)
        check(place / "run")
        subprocess.run([sys.executable, "-c", PROGRAM.format(start="assert weftline.start('alone')")], cwd=place, check=True)
        check(place / "alone")
    print(f"wheels: Python {sys.version.split()[0]}: {tag} works, under `weft run` and alone")


if __name__ == "__main__":
    main()
