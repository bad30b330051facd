"""Runs small programs traced, in both ways, and reads what they left.

A program is a text. It is run either under ``weft run`` or by itself with ``weftline.start`` before its first line; the trace must be the
same. Tests ask for events by name.
"""

import gzip
import json
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

# How much longer than asked for a sleep may take on a busy machine, in microseconds.
SLACK = 400_000
# Seconds that a program may take; a worker that imports torch itself takes three of them.
LIMIT = 600 if "WEFT_TORCH_PYTHON" in os.environ else 120
# Categories of events that no program of ours made.
OTHERS = ("POSIX", "STDIO", "PROCESS", "dftracer", "weft")
MODES = ("weft run", "standalone")


def weft() -> str:
    """The command to test: that of the build, or the one in the package."""
    given = os.environ.get("WEFT_BIN")
    if given:
        return given
    import weftline

    return str(Path(weftline.__file__).parent / "bin/weft")


@dataclass
class Event:
    """A span, a life (the ``b`` and ``e`` of an async span together), or anything else."""

    name: str
    category: str
    phase: str
    pid: int
    tid: int
    start: int
    duration: int = 0
    args: dict[str, Any] = field(default_factory=dict)
    id: Optional[str] = None

    @property
    def end(self) -> int:
        return self.start + self.duration

    def holds(self, other: "Event") -> bool:
        """Did the other one happen within this one?"""
        return self.pid == other.pid and self.start <= other.start and other.end <= self.end


class Run:
    """What a program said, and its events."""

    def __init__(self, done: "subprocess.CompletedProcess[str]", directory: Path) -> None:
        self.status = done.returncode
        self.output = done.stdout
        self.errors = done.stderr
        self.directory = directory
        self.everything = read(directory) if directory.is_dir() else []
        self.events = [event for event in self.everything if event.category not in OTHERS]

    def all(self, name: str) -> list[Event]:
        """The events of that name, in the order in which they began."""
        return sorted((event for event in self.events if event.name == name), key=lambda event: event.start)

    def one(self, name: str, phase: str = "X") -> Event:
        found = [event for event in self.all(name) if event.phase == phase]
        assert len(found) == 1, f"{len(found)} events {name!r}; there are {sorted({event.name for event in self.events})}"
        return found[0]

    def life(self, name: str) -> Event:
        return self.one(name, "life")

    def said(self) -> Any:
        """The last line that the program printed, as JSON."""
        return json.loads(self.output.splitlines()[-1])


def read(directory: Path) -> list[Event]:
    lines = []
    for path in sorted(directory.glob("*.pfw.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            lines += [json.loads(line) for line in file if line.strip() not in ("[", "]", "")]
    events, begun = [], {}
    for line in lines:
        # Ends are exact: the nanoseconds below the microsecond are apart.
        made = Event(
            line["name"], line.get("cat", ""), line["ph"], line["pid"], line["tid"], line.get("ts", 0), line.get("dur", 0),
            line.get("args", {}), line.get("id"),
        )  # fmt: skip
        if made.phase == "b":
            begun[made.category, made.id] = made
            made.phase = "life"
        elif made.phase == "e":
            life = begun.pop((made.category, made.id))
            life.duration = made.start - life.start
            continue
        events.append(made)
    return events


def environment(**more: str) -> dict[str, str]:
    """Nothing of the machine's own tracing; the package under test."""
    unwanted = ("WEFT_LIVE", "LD_PRELOAD", "WEFT_PRELOAD_LIB", "DFTRACER_", "PERFFLOW_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", **more}


def run(
    program: str, directory: Path, mode: str = "weft run", status: int = 0, options: tuple[str, ...] = (), **variables: str
) -> Run:
    """Runs a program traced. Its file is `program.py`, so that it can be imported by processes that it starts."""
    place = directory / mode.replace(" ", "-")
    place.mkdir(parents=True)
    text = textwrap.dedent(program)
    if mode == "standalone":
        text = f"import weftline as _weftline\nif __name__ == '__main__':\n    assert _weftline.start({str(place / 'run')!r})\n" + text
    (place / "program.py").write_text(text)
    command = [sys.executable, "program.py"]
    if mode == "weft run":
        command = [weft(), "run", "-q", *options, "-o", str(place / "run"), "--", *command]
    done = subprocess.run(command, cwd=place, env=environment(**variables), capture_output=True, text=True, timeout=LIMIT, check=False)
    result = Run(done, place / "run")
    assert result.status == status, f"{mode}: status {result.status}\n{result.output}\n{result.errors}"
    return result


def untraced(program: str, directory: Path, *, python: tuple[str, ...] = (), status: int = 0, **variables: str) -> str:
    """Runs a program without any tracing; what it printed."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "program.py").write_text(textwrap.dedent(program))
    command = [sys.executable, *python, "program.py"]
    done = subprocess.run(command, cwd=directory, env=environment(**variables), capture_output=True, text=True, timeout=LIMIT, check=False)
    assert done.returncode == status, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def lasted(event: Event, milliseconds: float) -> None:
    """The event took as long as the program slept."""
    asked = milliseconds * 1000
    assert asked <= event.duration + 1 <= asked + SLACK, event
