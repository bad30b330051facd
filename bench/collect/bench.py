#!/usr/bin/env python3
"""Measures the cost of sampling: weft beside a minimal Python sampler that reads the same files. Use `make bench-collect`.

The CPU share is that of a running collector, in percent of one core: the time of all its threads, start and end left out. Accuracy is
measured with one busy loop per core, beside a bare timerfd loop that runs at the same time.
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent)]

import harness
import measure
import table
from harness import say

COLUMNS = {"weft": "weft", "python": "Python", "timerfd": "bare timerfd"}
LAYOUT = table.Layout("what", COLUMNS, "python", "bench-collect", variant="interval")
INTERVAL_MS = 200
SETTLE_S = 2.0
# The name that processes take, for the pattern.
NAME = "bench-followed"
# What processes do that work: a moment twenty times a second, so that every sample finds that they ran.
WORKING = "while True: time.sleep(0.05)"
IDLE = "time.sleep(86400)"


class Processes:
    """Processes that do little or nothing, gone with the block."""

    def __init__(self, count: int, name: str = NAME, does: str = IDLE):
        program = (
            "import os,sys,time\n"
            "children=[]\n"
            f"for _ in range({count}):\n"
            "    pid=os.fork()\n"
            "    if pid==0:\n"
            f"        open('/proc/self/comm','w').write('{name}')\n"
            f"        {does}\n"
            "    children.append(pid)\n"
            "print(*children,flush=True)\n"
            "sys.stdin.read()\n"
            "for pid in children: os.kill(pid,9)\n"
        )
        self.parent = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pids = [int(pid) for pid in self.parent.stdout.readline().split()]

    def __enter__(self) -> "Processes":
        return self

    def __exit__(self, *_: object) -> None:
        self.parent.stdin.close()
        self.parent.wait()
        self.parent.stdout.close()


class Busy:
    """One busy loop per core."""

    def __enter__(self) -> "Busy":
        self.loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
        return self

    def __exit__(self, *_: object) -> None:
        for loop in self.loops:
            loop.kill()
            loop.wait()


def cpu_ns(pid: int) -> int:
    """CPU time of all threads of a process."""
    return sum(int(file.read_text().split()[0]) for file in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def share(process: subprocess.Popen, seconds: float) -> float:
    """Percent of a core that a process at work takes."""
    time.sleep(SETTLE_S)
    before, began = cpu_ns(process.pid), time.monotonic_ns()
    time.sleep(seconds)
    after, ended = cpu_ns(process.pid), time.monotonic_ns()
    return (after - before) / (ended - began) * 100


class Bench:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.rows: list[table.Row] = []
        self.notes: list[str] = []

    def place(self, name: str) -> Path:
        place = self.options.work / name
        shutil.rmtree(place, ignore_errors=True)
        return place

    def weft(self, name: str, *arguments: str) -> tuple[subprocess.Popen, Path]:
        run = self.place(name)
        command = [str(self.options.weft), "collect", "-q", "--interval", f"{INTERVAL_MS}ms", "-o", str(run), *arguments]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL), run

    def python(self, how: str, seconds: float) -> subprocess.Popen:
        command = [sys.executable, str(HERE / "naive.py"), str(INTERVAL_MS / 1000), str(seconds), how, "/dev/null"]
        return subprocess.Popen(command)

    def stop(self, process: subprocess.Popen) -> None:
        process.terminate()
        process.wait()

    def compare(self, what: str, workload: str, arguments: list[str], how: str, bar: float | None) -> None:
        """Both samplers side by side over the same time, several times; medians."""
        seconds = self.options.seconds
        samples: dict[str, list[float]] = {"weft": [], "python": []}
        sizes = []
        for _ in range(self.options.repeats):
            ours, run = self.weft("run", *arguments)
            samples["weft"].append(share(ours, seconds))
            self.stop(ours)
            if ours.returncode != 0:
                raise measure.Failed(f"weft collect {' '.join(arguments)}: exit status {ours.returncode}")
            ticks = json.loads(next(run.glob("run.d/*.json")).read_text())["samples"]["ticks"]
            sizes.append(sum(file.stat().st_size for file in run.glob("*.samples.pfw.gz")) / ticks)
            theirs = self.python(how, SETTLE_S + seconds + 2)
            samples["python"].append(share(theirs, seconds))
            self.stop(theirs)
        values = {name: measure.median(found) for name, found in samples.items()}
        self.rows.append(table.Row(what, workload, f"{INTERVAL_MS} ms", values, bar, 3, samples))
        self.notes.append(f"{workload}: weft's file grows by {measure.median(sizes):,.0f} bytes per tick")

    def compare_four(self, what: str, workload: str, four: Processes, bar: float | None) -> None:
        """Without the host, as Tracekit samples them, and with it."""
        arguments = [word for pid in four.pids for word in ("--tree", str(pid))]
        pids = ",".join(map(str, four.pids))
        self.compare(what, workload, [*arguments, "--no-host"], f"only:{pids}", bar)
        self.compare(what, f"{workload} and the host", arguments, pids, None)

    def cost(self) -> None:
        what = "CPU, % of a core"
        with Processes(4, does=WORKING) as four:
            say("4 followed processes")
            self.compare_four(what, "4 processes", four, 0.10)
            others = max(0, 130 - sum(name.isdigit() for name in os.listdir("/proc")))
            with Processes(others, "bench-other"):
                say("a pattern over 130 processes")
                pattern = f"^{NAME}$"
                arguments = ["--match", pattern, "--no-host"]
                self.compare(what, "a pattern over 130 processes", arguments, f"only:/{pattern}", 0.30)
        with Processes(4) as four:
            say("4 idle processes")
            self.compare_four(what, "4 idle processes", four, None)
        with Processes(1000) as many:
            say("1,000 idle processes")
            tree = ["--tree", str(many.parent.pid)]
            self.compare(what, "1,000 idle processes and the host", tree, ",".join(map(str, many.pids)), None)

    def accuracy(self) -> None:
        """Ticks of a minute with all cores busy, several times; medians. The mean interval is wrong by the difference of two latenesses
        over the number of ticks, so fewer ticks would measure how late the last one was."""
        ticks = round(self.options.accuracy_seconds * 1000 / INTERVAL_MS)
        timer = self.options.work / "timer"
        measure.run(["cc", "-O2", "-o", str(timer), str(HERE / "timer.c")])
        kinds = (("mean interval, ms off", off, 0.1, 4), ("p99 lateness, ms", lateness, 10.0, 3))
        samples: dict[str, dict[str, list[float]]] = {what: {"weft": [], "timerfd": []} for what, *_ in kinds}
        for _ in range(self.options.repeats):
            say(f"{ticks} ticks with all cores busy")
            with Busy(), Processes(4) as four:
                ours, run = self.weft("busy", *(word for pid in four.pids for word in ("--tree", str(pid))))
                command = [str(timer), str(INTERVAL_MS * 1_000_000), str(ticks)]
                bare = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
                out = bare.communicate()[0]
                self.stop(ours)
            bare_ends = [int(line) for line in out.split()]
            weft_ends = tick_times(run)
            for what, of, *_ in kinds:
                samples[what]["weft"].append(of(weft_ends))
                samples[what]["timerfd"].append(of(bare_ends))
        for what, _, bar, digits in kinds:
            values = {name: measure.median(found) for name, found in samples[what].items()}
            row = table.Row(what, "one busy loop per core", f"{INTERVAL_MS} ms", values, bar, digits, samples[what])
            self.rows.append(row)


def tick_times(run: Path) -> list[int]:
    """When the host was sampled at a tick, ns. The last sample of all comes with the end, wherever between two ticks that is, and is none."""
    ends = []
    for file in run.glob("*.samples.pfw.gz"):
        with gzip.open(file, "rt") as lines:
            for line in lines:
                if line.startswith('{"name":"cpu",'):
                    event = json.loads(line)
                    ends.append((event["ts"] + event["dur"]) * 1000 + event.get("ns", 0) % 1000)
    ticks = json.loads(next(run.glob("run.d/*.json")).read_text())["samples"]["ticks"]
    # An end right after a tick has none: no clock tick of the processors has passed.
    if len(ends) not in (ticks, ticks + 1):
        raise measure.Failed(f"{len(ends)} samples of the host for {ticks} ticks and the end")
    return sorted(ends)[:ticks]


def off(ends: list[int]) -> float:
    """How far the mean interval is from what was asked for; a tick that stands for several counts as these."""
    steps = sum(round((b - a) / (INTERVAL_MS * 1e6)) for a, b in zip(ends, ends[1:]))
    return abs((ends[-1] - ends[0]) / steps / 1e6 - INTERVAL_MS)


def lateness(ends: list[int]) -> float:
    """The 99th percentile of the distance to the grid of the most punctual tick."""
    interval = INTERVAL_MS * 1_000_000
    phase = [(end - ends[0]) - round((end - ends[0]) / interval) * interval for end in ends]
    late = sorted(value - min(phase) for value in phase)
    return late[min(len(late) - 1, round(0.99 * (len(late) - 1)))] / 1e6


def parse() -> argparse.Namespace:
    parser = harness.options(__doc__, LAYOUT.marker, repeats=3)
    parser.add_argument("--seconds", type=float, default=20, help="length of one measurement")
    parser.add_argument("--accuracy-seconds", type=float, default=60, help="length of one measurement of punctuality")
    options = harness.parsed(parser)
    if options.quick:
        options.repeats, options.seconds, options.accuracy_seconds = 1, 5, 10
    return options


def main() -> int:
    options, occasion = parse(), harness.Occasion()
    bench = Bench(options)
    metadata = harness.metadata(options.weft)
    bench.cost()
    bench.accuracy()
    metadata["run"] = occasion.description(f"{options.repeats} repeats of {options.seconds:g} s")
    bench.notes.append("Tracekit's collector, measured before on such a machine: 0.20–0.27 % for 4 processes without the host, 1.5 % for a pattern over 131 processes, p99 interval 263 ms at 200")
    table.publish(LAYOUT, bench.rows, metadata, bench.notes, options.json, options.update)
    return harness.status(options, table.missed(bench.rows))


if __name__ == "__main__":
    harness.end(main)
