"""The common part of all benchmark commands: options, progress messages, the properties of the machine above the table, and the exit status."""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import measure
import table

ROOT = Path(__file__).resolve().parent.parent


def say(words: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {words}", file=sys.stderr, flush=True)


def options(doc: str, name: str, repeats: int, quick: bool = True) -> argparse.ArgumentParser:
    """The options that all have; a benchmark adds its own. `name` is that of its make target, and of its work directory."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--weft", type=Path, default=ROOT / "target/release/weft", help="the weft to measure")
    parser.add_argument("--work", type=Path, default=ROOT / "target" / name, help="programs, environments and traces go here")
    parser.add_argument("--repeats", type=int, default=repeats, help="rounds; the tables have medians")
    if quick:
        parser.add_argument("--quick", action="store_true", help="a smoke test: the numbers mean little")
    parser.add_argument("--json", type=Path, help="write all samples here instead of results.json in the work directory")
    parser.add_argument("--update", type=Path, help="also put the report between the markers of this document")
    parser.add_argument("--gate", action="store_true", help="exit 1 when a bar is not reached")
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options as given, paths made absolute, the work directory made."""
    found = parser.parse_args()
    found.weft, found.work = found.weft.resolve(), found.work.resolve()
    found.work.mkdir(parents=True, exist_ok=True)
    found.json = found.json or found.work / "results.json"
    return found


def parts(parser: argparse.ArgumentParser, wanted: str, known: tuple[str, ...]) -> list[str]:
    """Names separated by commas; an unknown one ends the command."""
    listed = wanted.split(",")
    if unknown := set(listed) - set(known):
        parser.error(f"no part named {', '.join(sorted(unknown))}")
    return listed


class Occasion:
    """When a benchmark runs, and how busy the machine is meanwhile."""

    def __init__(self) -> None:
        self.day, self.load = time.strftime("%Y-%m-%d", time.gmtime()), os.getloadavg()[0]

    def description(self, what: str) -> str:
        """At the end, with what was repeated how often."""
        return f"{self.day}, {what}, load average {self.load:.1f} at the start, {os.getloadavg()[0]:.1f} at the end"


def metadata(weft: Path) -> dict[str, str]:
    if not weft.exists():
        raise measure.Failed(f"{weft} is not there; `make build` makes it")
    return {**table.machine(), "weft": measure.run([str(weft), "--version"]).output.strip()}


def venv(directory: Path, requirements: Path, python: Path | None = None) -> Path:
    """A virtual environment with what a file of requirements names; its directory of programs."""
    chosen = {**os.environ, "PYTHON": str(python or sys.executable)}
    subprocess.run([ROOT / "tools/python-venv.sh", directory, requirements], check=True, env=chosen)
    return directory / "bin"


def emptied(directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    return directory


def status(chosen: argparse.Namespace, missed: bool) -> int:
    return 1 if missed and chosen.gate else 0


def end(main: Callable[[], int]) -> None:
    """Runs a benchmark and ends with its status; a command that failed ends it with one line."""
    try:
        sys.exit(main())
    except measure.Failed as failure:
        sys.exit(f"bench.py: {failure}")
