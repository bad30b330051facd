"""The recorders of spans in compiled programs that are compared: how each program is built and made to record, and how many spans it then has.

Every program measures its own loops in the same way (cost.h, spans/src/lib.rs). A recorder that is missing on this machine is reported by name.
"""

import gzip
import json
import os
import re
import shutil
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import measure

HERE = Path(__file__).resolve().parent
# What Tracy's queue holds for a zone: its begin and its end, 32 bytes each.
TRACY_BYTES = 64
PEERS = {"lttng": "LTTng-UST", "tracy": "Tracy", "fastrace": "fastrace", "puffin": "puffin"}


@dataclass
class Sample:
    """What a program said of itself, and how many of its spans the recorder has; None where nobody counted."""

    ns: dict[str, float]
    made: int
    recorded: int | None


class Recorder:
    """One program: a column of the table, in one language."""

    states = ("on", "off")

    def __init__(self, column: str, language: str, program: Path, size: list[str]):
        self.column = column
        self.language = language
        self.program = program
        # How much the program does: spans of a round, rounds.
        self.size = size

    def sample(self, state: str, traces: Path, count: bool) -> Sample:
        """Runs the program once, with its traces in an empty directory; `count`: look also how many spans are in them."""
        said = said_by(measure.run([str(self.program), state, *self.size]).output)
        return Sample(said["ns"], said["made"], said["recorded"])


class Weft(Recorder):
    """Our own, under `weft run`."""

    def __init__(self, language: str, program: Path, size: list[str], weft: Path):
        super().__init__("weft", language, program, size)
        self.weft = weft

    def sample(self, state, traces, count):
        # The program in Rust is told the state as the others are.
        command = [str(self.program), *([state] if self.language == "Rust" else []), *self.size]
        if state == "on":
            command = [str(self.weft), "run", "-q", "-o", str(traces / "run"), "--", *command]
        said = said_by(measure.run(command).output)
        counted = spans_in((traces / "run").glob("*.pfw.gz")) if count and state == "on" else None
        return Sample(said["ns"], said["made"], counted)


class Tracy(Recorder):
    """Nobody asks for what it queues, so the growth of the program is what tells that it does."""

    states = ("on",)

    def sample(self, state, traces, count):
        # Virtual machines often hide that their counter runs evenly, and Tracy refuses to start then.
        variables = {"TRACY_NO_INVARIANT_CHECK": "1"}
        said = said_by(measure.run([str(self.program), state, *self.size], variables).output)
        return Sample(said["ns"], said["made"], queued(said["made"], said["grown_bytes"]))


class Lttng(Recorder):
    """Tracepoints, with a session that writes to disk."""

    def __init__(self, program: Path, size: list[str], home: Path):
        super().__init__("lttng", "C", program, size)
        # A daemon of somebody who is not root, and its programs, meet below this directory.
        self.variables = {"LTTNG_HOME": str(home)}
        self.pid_file = home / "sessiond.pid"
        home.mkdir(parents=True, exist_ok=True)

    def call(self, *words: str) -> str:
        return measure.run(["lttng", "--no-sessiond", *words], self.variables).output

    def __enter__(self) -> "Lttng":
        """Takes the session daemon that runs, or starts one, which ends with the block."""
        self.pid_file.unlink(missing_ok=True)
        try:
            self.call("list")
        except measure.Failed:
            measure.run(["lttng-sessiond", "--daemonize", "--no-kernel", f"--pidfile={self.pid_file}"], self.variables)
        return self

    def __exit__(self, *_) -> None:
        if not self.pid_file.exists():
            return
        pid = int(self.pid_file.read_text())
        os.kill(pid, signal.SIGTERM)
        for _ in range(100):
            if not Path(f"/proc/{pid}").exists():
                return
            time.sleep(0.05)

    def sample(self, state, traces, count):
        command = [str(self.program), *self.size]
        if state == "off":
            said = said_by(measure.run(command, self.variables).output)
            return Sample(said["ns"], said["made"], None)
        session = f"weft-bench-{os.getpid()}"
        self.call("create", session, f"--output={traces / 'lttng'}")
        try:
            self.call("enable-event", "--userspace", f"--session={session}", "weft_bench:*")
            self.call("start", session)
            said = said_by(measure.run(command, self.variables).output)
            self.call("stop", session)
            lost = discarded(self.call("list", session))
        finally:
            self.call("destroy", session)
        recorded = None
        if count:
            recorded = counted_events(measure.run(["babeltrace2", str(traces / "lttng"), "-c", "sink.utils.counter"]).output) // 2
        elif lost:
            recorded = said["made"] - lost
        return Sample(said["ns"], said["made"], recorded)


def said_by(output: str) -> dict:
    """A program's own line is the last; a recorder may have printed before it."""
    return json.loads(output.strip().splitlines()[-1])


def queued(made: int, grown_bytes: int) -> int:
    """Zones that can be in Tracy's queue. It grows by blocks, and what the program freed before may have gone into it: a tenth is let pass."""
    return made if grown_bytes * 10 >= made * TRACY_BYTES * 9 else grown_bytes // TRACY_BYTES


def discarded(listing: str) -> int:
    """Events that a session did not keep, from the answer of `lttng list SESSION`."""
    found = re.findall(r"Discarded events:\s*(\d+)", listing)
    if not found:
        raise measure.Failed("lttng list does not say how many events were discarded")
    return sum(int(number) for number in found)


def counted_events(answer: str) -> int:
    """Events of a trace, from the answer of babeltrace2's counter, which tells how far it is every 10,000 messages."""
    found = re.findall(r"(\d+)\s+Event messages?", answer)
    if not found:
        raise measure.Failed(f"babeltrace2 counted nothing: {answer.strip()[-200:]}")
    return int(found[-1])


def spans_in(files) -> int:
    """Spans of our trace files; lines of I/O calls and of metadata do not count."""
    spans = 0
    for path in files:
        with gzip.open(path, "rb") as lines:
            spans += sum(is_span(line) for line in lines)
    return spans


def is_span(line: bytes) -> bool:
    return b'"ph":"X"' in line and any(name in line for name in (b'"name":"step"', b'"name":"load"', b'"name":"annotated"'))


def locked_versions(lock: str, names: list[str]) -> dict[str, str]:
    """Versions that a Cargo.lock has of some packages."""
    return {name: version for name, version in re.findall(r'^name = "(.+)"\nversion = "(.+)"$', lock, re.MULTILINE) if name in names}


def missing(title: str, failure: measure.Failed) -> str:
    """One line on a peer that is not in the table, with the last words of what failed."""
    return f"{title} is missing: {' '.join(str(failure).split())[-300:]}"


def build_rust(name: str, work: Path) -> Path:
    """Builds one program of the package `spans`, alone."""
    cargo = [os.environ.get("CARGO", "cargo"), "build", "--quiet", "--release", "--locked"]
    package = ["--manifest-path", str(HERE / "spans/Cargo.toml"), "--target-dir", str(work / "cargo")]
    measure.run([*cargo, *package, "--features", name, "--bin", f"{name}-spans"])
    return work / f"cargo/release/{name}-spans"


def build_lttng(work: Path) -> Path:
    for needed in ("lttng", "lttng-sessiond", "babeltrace2"):
        if shutil.which(needed) is None:
            raise measure.Failed(f"no {needed} (Debian: lttng-tools, liblttng-ust-dev, babeltrace2)")
    program = work / "lttng_scope"
    measure.run(["cc", "-O2", f"-I{HERE}", str(HERE / "lttng_scope.c"), "-o", str(program), "-llttng-ust", "-ldl"])
    return program


def prepare(work: Path, weft: Path, weft_in_c: Path, size: list[str]) -> tuple[list[Recorder], dict[str, str], list[str]]:
    """The recorders that can be had here, their versions, and a sentence on each that cannot."""
    ready: list[Recorder] = [
        Weft("Rust", build_rust("weft", work), size, weft),
        Weft("C", weft_in_c, size, weft),
    ]
    versions, absent = {}, []
    locked = locked_versions((HERE / "spans/Cargo.lock").read_text(), ["tracy-client", "fastrace", "puffin"])
    for name, title in PEERS.items():
        try:
            if name == "lttng":
                ready.append(Lttng(build_lttng(work), size, work / "lttng-home"))
                versions[title] = measure.run(["lttng", "--version"]).output.split(" - ")[0].split()[-1]
            else:
                kind = Tracy if name == "tracy" else Recorder
                ready.append(kind(name, "Rust", build_rust(name, work), size))
                versions[title] = locked["tracy-client" if name == "tracy" else name]
        except measure.Failed as failure:
            absent.append(missing(title, failure))
    return ready, versions, absent
