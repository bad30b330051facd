"""Tests an installed weftline: smoke.py WEFT [--sql]. Run by the interpreter of a fresh environment; prints one line.

With --sql, weftline-sql is installed too and queries must work; without, the command and the Python package must say how to install it.
"""

import gzip
import json
import os
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


QUERY = "SELECT count(*) AS n FROM spans WHERE name = 'load'"
ADVICE = "`pip install weftline-sql` adds it"


def queries(weft: str, run: Path, installed: bool) -> None:
    # Another installation's weft-sql is not what is looked at here.
    os.environ["PATH"] = os.path.dirname(sys.executable)
    os.environ.pop("WEFT_SQL", None)
    asked = subprocess.run([weft, "query", "--format", "csv", str(run), QUERY], capture_output=True, text=True, check=False)
    parts = subprocess.run([weft, "doctor", "--parts"], capture_output=True, text=True, check=True).stdout
    if installed:
        assert asked.returncode == 0 and asked.stdout.split() == ["n", "1"], asked
        # Without libraries of Arrow the answer's columns show that it came.
        assert weftline.open(run).sql(QUERY).columns == ["n"]
        assert "weft query: answered by" in parts and ADVICE not in parts, parts
        return
    assert asked.returncode == 1 and ADVICE in asked.stderr, asked
    assert ADVICE in parts, parts
    try:
        weftline.open(run).sql(QUERY)
    except weftline.analysis.Error as error:
        assert ADVICE in str(error), error
    else:
        raise AssertionError("a query was answered without weftline-sql")


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
        queries(weft, place / "run", "--sql" in sys.argv)
        subprocess.run([sys.executable, "-c", PROGRAM.format(start="assert weftline.start('alone')")], cwd=place, check=True)
        check(place / "alone")
    asked = ", and answers queries" if "--sql" in sys.argv else ""
    print(f"wheels: Python {sys.version.split()[0]}: {tag} works, under `weft run` and alone{asked}")


if __name__ == "__main__":
    main()
