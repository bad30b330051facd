"""The configurations that are compared: how each traces a command, and what it wrote."""

import gzip
import os
import re
from dataclasses import dataclass
from pathlib import Path

import measure


@dataclass
class Trace:
    """What a tracer left behind: bytes on disk, and events in them (metadata lines do not count)."""

    size: int
    events: int


class Untraced:
    name = "untraced"
    # Slow tracers do a part of the calls only; everything is reported per call.
    share = 1
    # Whether instructions in the traced program can be counted (a tracer outside of it adds none).
    in_process = True

    def wrap(self, program: list[str], traces: Path) -> tuple[list[str], dict[str, str]]:
        """The command and environment that run `program` traced into the directory `traces`."""
        return program, {}

    def read(self, traces: Path) -> Trace | None:
        return None


class Weft(Untraced):
    name = "weft"

    def __init__(self, binary: Path, arenas: str | None = None):
        """`arenas`: where they shall lie, if the product lets one choose."""
        self.binary = binary
        self.choice = []
        if arenas:
            self.name = f"weft, arenas in {arenas}"
            self.choice = ["--arenas", arenas]

    def wrap(self, program, traces):
        return [str(self.binary), "run", "-q", *self.choice, "-o", str(traces / "run"), "--", *program], {}

    def read(self, traces):
        return read_lines((traces / "run").glob("*.pfw.gz"), rb'"ph":"M"')


class Dftracer(Untraced):
    """The PyPI wheel, preloaded, with arguments recorded: the only mode that is like for like."""

    name = "dftracer"

    def __init__(self, library: Path):
        self.library = library

    @classmethod
    def in_venv(cls, venv: Path) -> "Dftracer":
        found = sorted(venv.glob("lib/python*/site-packages/dftracer/lib*/libdftracer_preload.so"))
        if not found:
            raise measure.Failed(f"no libdftracer_preload.so below {venv}")
        return cls(found[0])

    def wrap(self, program, traces):
        return program, {
            "LD_PRELOAD": str(self.library),
            "DFTRACER_ENABLE": "1",
            "DFTRACER_INIT": "PRELOAD",
            "DFTRACER_DATA_DIR": "all",
            "DFTRACER_INC_METADATA": "1",
            "DFTRACER_TRACE_COMPRESSION": "1",
            "DFTRACER_LOG_FILE": str(traces / "trace"),
        }

    def read(self, traces):
        return read_lines(traces.glob("trace*.pfw.gz"), rb'"ph":4')


class Strace(Untraced):
    name = "strace"
    share = 1 / 20
    in_process = False

    def wrap(self, program, traces):
        return ["strace", "-f", "-o", str(traces / "strace.out"), *program], {}

    def read(self, traces):
        text = (traces / "strace.out").read_bytes()
        return Trace(len(text), len(re.findall(rb"^\d+ +\w+\(", text, re.MULTILINE)))


def read_lines(files, metadata: bytes) -> Trace:
    """Counts the events of gzip files with one JSON object per line."""
    size = events = 0
    for path in files:
        size += path.stat().st_size
        # DFTracer leaves empty files behind in forked children; gzip rejects them.
        if path.stat().st_size == 0:
            continue
        with gzip.open(path, "rb") as lines:
            events += sum(line.startswith(b"{") and metadata not in line for line in lines)
    return Trace(size, events)


def callgrind(tracer: Untraced, program: list[str], traces: Path, whole_command: bool = False) -> int:
    """Instructions that `program` itself executes when traced, its libraries included, its tracer's processes not.

    Callgrind is put before the program, or with `whole_command` before the tracer, whose children it follows.
    """
    valgrind = [
        "valgrind",
        "--tool=callgrind",
        "--trace-children=yes",
        "--callgrind-out-file=/dev/null",
        f"--log-file={traces}/callgrind.%p",
    ]
    command, environment = tracer.wrap(program if whole_command else [*valgrind, *program], traces)
    measure.run([*valgrind, *command] if whole_command else command, environment)
    name = os.path.basename(program[0])
    for log in traces.glob("callgrind.*"):
        text = log.read_text(errors="replace")
        ran = re.search(r"Command: (\S+)", text)
        collected = re.search(r"Collected : (\d+)", text)
        if ran and collected and os.path.basename(ran[1]) == name:
            return int(collected[1])
    raise measure.Failed(f"no callgrind count for {' '.join(program)} under {tracer.name}")
