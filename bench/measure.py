"""Runs a command and says what it cost. CPU time only: wall time means nothing on a machine that others use too."""

import os
import statistics
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path


class Failed(Exception):
    """A command of the benchmark ended with an error; the message carries its last words."""


@dataclass
class Cost:
    """One run of a command: CPU time of it and of all processes it waited for, and what it printed."""

    cpu_ns: int
    output: str


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
    return Cost(round((usage.ru_utime + usage.ru_stime) * 1e9), output)


def median(samples: list[float]) -> float:
    return statistics.median(samples)


def compile_c(source: Path, program: Path) -> Path:
    program.parent.mkdir(parents=True, exist_ok=True)
    run([os.environ.get("CC", "cc"), "-O2", "-pthread", "-o", str(program), str(source)])
    return program
