"""Runs a command and measures its cost. CPU time only: wall time means nothing on a machine that others use too."""

import json
import os
import signal
import statistics
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


class Failed(Exception):
    """A command of the benchmark ended with an error; the message carries its last words."""


@dataclass
class Cost:
    """One run of a command: CPU time of it and of all processes it waited for, and what it printed."""

    cpu_ns: int
    output: str
    # Of the largest process. Never less than what this interpreter takes itself: a child starts out as a copy of it.
    peak_bytes: int = 0

    def said(self) -> dict:
        """What a program of a benchmark says of itself: its own line is the last, a tracer may have printed before it."""
        return json.loads(self.output.strip().splitlines()[-1])


def run(command: list[str], environment: dict[str, str] | None = None) -> Cost:
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, env={**os.environ, **(environment or {})}
        )
        output = process.stdout.read().decode()
        process.stdout.close()
        # wait4 and not wait: it gives this child's resource usage alone.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            errors.seek(0)
            words = errors.read().decode(errors="replace").strip()[-600:]
            raise Failed(f"{' '.join(command)}: exit status {process.returncode}: {words}")
    return Cost(round((usage.ru_utime + usage.ru_stime) * 1e9), output, usage.ru_maxrss * 1024)


def run_apart(command: list[str], into: Path, directory: Path, limit_s: float) -> Cost:
    """Runs a command that may print much, leave processes behind, or never end.

    What it prints goes to the file `into`, what it says to one beside it; it starts in `directory`. It leads a session, so that
    its whole family can be stopped.
    """
    stderr = into.with_suffix(".err")
    with into.open("wb") as output, stderr.open("wb") as errors:
        process = subprocess.Popen(command, stdout=output, stderr=errors, cwd=directory, start_new_session=True)
        stopped = threading.Event()

        def stop() -> None:
            stopped.set()
            os.killpg(process.pid, signal.SIGKILL)

        watch = threading.Timer(limit_s, stop)
        watch.start()
        _, status, usage = os.wait4(process.pid, 0)
        watch.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
    if stopped.is_set():
        raise Failed(f"stopped after {limit_s:.0f} s")
    if process.returncode != 0:
        raise Failed(f"exit status {process.returncode}: {last_words(stderr, into)}")
    return Cost(round((usage.ru_utime + usage.ru_stime) * 1e9), "", usage.ru_maxrss * 1024)


def last_words(*files: Path) -> str:
    """The line that says why: the first one about an error, else the last one of what was said."""
    for file in files:
        lines = [line.strip() for line in file.read_text(errors="replace").splitlines() if line.strip()]
        if lines:
            return next((line for line in lines if line.lower().startswith("error")), lines[-1])
    return ""


def median(samples: list[float]) -> float:
    return statistics.median(samples)


def compile_c(source: Path, program: Path) -> Path:
    program.parent.mkdir(parents=True, exist_ok=True)
    run([os.environ.get("CC", "cc"), "-O2", "-pthread", "-o", str(program), str(source)])
    return program


def compile_with_weft(source: Path, program: Path, weft: Path) -> Path:
    """A C program that uses weft.h, linked against an installation of the given weft, which is made beside the program."""
    program.parent.mkdir(parents=True, exist_ok=True)
    prefix = program.parent / "prefix"
    run([str(ROOT / "tools/install.sh"), str(weft), str(prefix)])
    paths = [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib"]
    run([os.environ.get("CC", "cc"), "-O2", "-o", str(program), str(source), *paths, "-lweft"])
    return program
