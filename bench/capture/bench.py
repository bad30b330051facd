#!/usr/bin/env python3
"""Measures the cost of tracing: weft beside DFTracer and strace, on the same calls, in one table. Use `make bench-capture`.

What the first records of a process cost, and later ones, has a table of its own (laps.py). Repeats are interleaved (every
tracer once, then all again), medians are compared, and all times are CPU times. The files that are read and written are in
memory (/dev/shm if it exists), the traces in the work directory.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import harness
import laps
import measure
import table
import tracers
from harness import say

LAYOUT = table.Layout(
    first="added by tracing",
    columns={"untraced": "untraced", "weft": "weft", "dftracer": "DFTracer", "strace": "strace"},
    incumbent="dftracer",
    marker="bench-capture",
)
KINDS = {
    "pread": "4 KiB pread",
    "pwrite": "4 KiB pwrite",
    "openclose": "open/close",
    "fread": "64 B fread",
    "stat": "stat",
}
FILE_BYTES = 4 << 20
PROBE_CALLS = 1_000

# What weft is to reach, with all arguments recorded.
BAR_LOOP_NS = 60
BAR_TOTAL_NS = 400
BAR_INSTRUCTIONS = {"pread": 106, "pwrite": 106, "openclose": 160, "fread": 136, "stat": 180}
BAR_BYTES = 14
# `weft run -- /bin/true` as a whole, and each further process of a traced tree.
BAR_COMMAND_MS = 2.5
BAR_START_MS = 1.5
BAR_WORST_MS = 2
BAR_MEMORY_MIB = 8
BAR_MEMORY_PER_THREAD_MIB = 1


class Bench:
    def __init__(self, options: argparse.Namespace, configurations: list[tracers.Untraced]):
        self.options = options
        self.tracers = configurations
        self.work = options.work
        self.data = Path(tempfile.mkdtemp(prefix="weft-bench-", dir="/dev/shm" if os.path.isdir("/dev/shm") else None))
        self.loop = measure.compile_c(self.source("loop.c"), self.work / "loop")
        self.spawn = measure.compile_c(self.source("spawn.c"), self.work / "spawn")
        self.notes: list[str] = []
        self.rows: list[table.Row] = []
        for thread in range(max(options.threads)):
            (self.data / f"file.{thread}").write_bytes(os.urandom(FILE_BYTES))

    @staticmethod
    def source(name: str) -> Path:
        return HERE / "workloads" / name

    def close(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)
        shutil.rmtree(self.work / "traces", ignore_errors=True)

    def traces(self) -> Path:
        """An empty directory for one run's traces."""
        return harness.emptied(self.work / "traces")

    def traced(self, tracer: tracers.Untraced, program: list[str]) -> measure.Cost:
        command, environment = tracer.wrap(program, self.traces())
        return measure.run(command, environment)

    def loop_command(self, kind: str, threads: int, calls: int, *extra: str) -> list[str]:
        return [str(self.loop), kind, str(threads), str(calls), str(self.data / "file"), *extra]

    def run_loop(self, tracer: tracers.Untraced, kind: str, threads: int, *extra: str) -> tuple[dict, measure.Cost]:
        calls = max(threads * 2, int(self.options.calls * tracer.share))
        cost = self.traced(tracer, self.loop_command(kind, threads, calls, *extra))
        return cost.said(), cost

    def find_blind_spots(self) -> None:
        """Which tracer does not see which calls at all; comparing the cost of not looking would be unfair to others."""
        self.blind: dict[str, set[str]] = {kind: set() for kind in KINDS}
        for kind, shown in KINDS.items():
            for tracer in self.tracers:
                self.traced(tracer, self.loop_command(kind, 1, PROBE_CALLS))
                trace = tracer.read(self.work / "traces")
                if trace is None or not tracer.in_process or trace.events >= PROBE_CALLS:
                    continue
                if isinstance(tracer, tracers.Weft):
                    raise measure.Failed(f"weft recorded {trace.events} of {PROBE_CALLS} calls ({shown})")
                self.blind[kind].add(tracer.name)
                self.notes.append(
                    f"{tracer.name} recorded {trace.events} of {PROBE_CALLS} calls of {shown}: left out there"
                )

    def seeing(self, kind: str) -> list[tracers.Untraced]:
        return [tracer for tracer in self.tracers if tracer.name not in self.blind[kind]]

    def interleaved(self, repeats: int, sample, chosen: list[tracers.Untraced] | None = None) -> dict[str, list]:
        """`sample(tracer)` for every tracer in turn, `repeats` times over."""
        chosen = self.tracers if chosen is None else chosen
        found: dict[str, list] = {tracer.name: [] for tracer in chosen}
        for _ in range(repeats):
            for tracer in chosen:
                found[tracer.name].append(sample(tracer))
        return found

    def add(self, what, workload, threads, samples, bar=None, digits=0, over_untraced=True) -> None:
        """Adds a row of medians: the untraced one as it is, the others as what they add to it.

        Each run is compared with the untraced run of its own round, so that a slow minute of the machine cancels out.
        """
        values = {}
        for name, runs in samples.items():
            if over_untraced and name != "untraced":
                runs = [run - bare for run, bare in zip(runs, samples["untraced"])]
            if runs:
                values[name] = measure.median(runs)
        self.rows.append(table.Row(what, workload, threads, values, bar, digits, samples))

    # --- the measurements, in the order of the table ---

    def times_and_memory(self) -> None:
        """CPU per call on the calling thread, CPU per call in total, peak memory: one run gives all three."""
        loop_rows, total_rows, memory_rows = [], [], []
        for kind, shown in KINDS.items():
            for threads in self.options.threads:
                say(f"{shown}, {threads} thread(s)")
                runs = self.interleaved(
                    self.options.repeats, lambda tracer: self.run_loop(tracer, kind, threads), self.seeing(kind)
                )
                loop_rows.append(
                    (shown, threads, per_run(runs, lambda said, cost: said["loop_cpu_ns"] / said["calls"]))
                )
                total_rows.append((shown, threads, per_run(runs, lambda said, cost: cost.cpu_ns / said["calls"])))
                if kind == "pread":
                    memory = per_run(runs, lambda said, cost: said["peak_kib"] / 1024)
                    memory_rows.append((shown, threads, memory))
        for shown, threads, samples in loop_rows:
            self.add("ns per call, calling thread", shown, threads, samples, BAR_LOOP_NS)
        for shown, threads, samples in total_rows:
            self.add("ns per call, all processes", shown, threads, samples, BAR_TOTAL_NS)
        self.memory_rows = memory_rows

    def instructions(self) -> None:
        few, many = self.options.callgrind_calls
        for kind, shown in KINDS.items():
            say(f"instructions of {shown}")
            samples = {}
            for tracer in self.seeing(kind):
                if tracer.in_process:
                    counts = [self.count_instructions(tracer, kind, calls) for calls in (few, many)]
                    samples[tracer.name] = [(counts[1] - counts[0]) / (many - few)]
            self.add("instructions per call, program", shown, 1, samples, BAR_INSTRUCTIONS[kind])

    def count_instructions(self, tracer: tracers.Untraced, kind: str, calls: int) -> int:
        seen = 0
        # Valgrind starts programs in its own way; a tracer that then misses the program is started by Valgrind instead.
        for whole_command in (False, True):
            traces = self.traces()
            count = tracers.callgrind(tracer, self.loop_command(kind, 1, calls), traces, whole_command)
            trace = tracer.read(traces)
            seen = trace.events if trace else calls
            if seen >= calls:
                return count
        raise measure.Failed(f"{tracer.name} recorded {seen} of {calls} calls under callgrind")

    def sizes(self) -> None:
        say("bytes per event")
        regular, mixed = {}, {}
        for tracer in self.tracers:
            if isinstance(tracer, (tracers.Weft, tracers.Dftracer, tracers.Strace)):
                said, _ = self.run_loop(tracer, "pread", 1)
                trace = tracer.read(self.work / "traces")
                regular[tracer.name] = [trace.size / max(trace.events, 1)]
                if trace.events < said["calls"]:
                    self.notes.append(f"{tracer.name} recorded {trace.events} of {said['calls']} preads")
                mixed[tracer.name] = self.mixed_size(tracer)
        self.add("bytes per event, trace", "4 KiB pread", 1, regular, BAR_BYTES, 1, over_untraced=False)
        self.add("bytes per event, trace", "mixed tools", None, mixed, None, 1, over_untraced=False)

    def mixed_size(self, tracer: tracers.Untraced) -> list[float]:
        script = [str(HERE / "workloads/mixed.sh"), str(self.data / "mixed")]
        try:
            self.traced(tracer, script)
        except measure.Failed as failure:
            self.notes.append(f"mixed tools under {tracer.name} failed: {str(failure)[-200:]}")
            return []
        trace = tracer.read(self.work / "traces")
        self.notes.append(f"mixed tools: {tracer.name} recorded {trace.events:,} events in {trace.size:,} bytes")
        return [trace.size / max(trace.events, 1)]

    def start_up(self) -> None:
        say("start-up of /bin/true")
        repeats = self.options.start_repeats
        whole = self.interleaved(repeats, lambda tracer: self.traced(tracer, ["/bin/true"]).cpu_ns / 1e6)
        self.add("start-up, CPU ms", "command and /bin/true", None, whole, BAR_COMMAND_MS, 2)

        few, many = self.options.spawns

        def one_more(tracer: tracers.Untraced) -> float:
            costs = [self.traced(tracer, [str(self.spawn), str(count), "/bin/true"]).cpu_ns for count in (few, many)]
            return (costs[1] - costs[0]) / (many - few) / 1e6

        more = self.interleaved(max(3, self.options.repeats), one_more)
        self.add("start-up, CPU ms", "one more /bin/true", None, more, BAR_START_MS, 2)

    def worst_call(self) -> None:
        for kind, shown in KINDS.items():
            say(f"worst single {shown}")
            inside = [tracer for tracer in self.seeing(kind) if tracer.in_process]
            samples = self.interleaved(
                self.options.repeats,
                lambda tracer: self.run_loop(tracer, kind, 1, "worst")[0]["worst_ns"] / 1e6,
                inside,
            )
            self.add("worst call, CPU ms", shown, 1, samples, BAR_WORST_MS, 2, over_untraced=False)

    def memory(self) -> None:
        for shown, threads, samples in self.memory_rows:
            bar = BAR_MEMORY_MIB + BAR_MEMORY_PER_THREAD_MIB * threads
            self.add("peak memory, MiB", shown, threads, samples, bar, 1)

    def run(self) -> None:
        self.find_blind_spots()
        self.times_and_memory()
        if shutil.which("valgrind"):
            self.instructions()
        else:
            self.notes.append("no valgrind on this machine: instructions were not counted")
        self.sizes()
        self.start_up()
        self.worst_call()
        self.memory()


def per_run(runs: dict[str, list], value) -> dict[str, list[float]]:
    return {name: [value(said, cost) for said, cost in list_] for name, list_ in runs.items()}


def parse() -> argparse.Namespace:
    parser = harness.options(__doc__, LAYOUT.marker, repeats=7)
    parser.add_argument("--only", default="untraced,weft,dftracer,strace", help="tracers, separated by commas")
    parser.add_argument("--threads", type=lambda text: [int(part) for part in text.split(",")], default=[1, 2, 4])
    parser.add_argument("--calls", type=int, default=400_000, help="calls per run, shared by the threads")
    parser.add_argument("--parts", default="calls,laps", help="what to measure, separated by commas: calls, laps")
    options = harness.parsed(parser)
    options.callgrind_calls = (5_000, 20_000)
    options.start_repeats = max(15, options.repeats)
    options.spawns = (10, 60)
    # One run has one first lap, and takes a second.
    options.laps, options.lap_repeats = 5, max(15, options.repeats)
    options.parts = harness.parts(parser, options.parts, ("calls", "laps"))
    if options.quick:
        options.laps, options.lap_repeats = 2, 1
        options.calls, options.repeats, options.start_repeats = 20_000, 1, 3
        options.callgrind_calls, options.spawns = (500, 1_500), (2, 6)
    return options


def configure(options: argparse.Namespace) -> tuple[list[tracers.Untraced], dict[str, str]]:
    """The tracers asked for, made ready, and the metadata that the report states about them."""
    chosen = ["untraced", *(name for name in options.only.split(",") if name != "untraced")]
    if "calls" not in options.parts:
        chosen = ["untraced", "weft"]
    made: list[tracers.Untraced] = []
    metadata = harness.metadata(options.weft)
    for name in chosen:
        if name == "untraced":
            made.append(tracers.Untraced())
        elif name == "weft":
            made.append(tracers.Weft(options.weft))
        elif name == "dftracer":
            venv = options.work / "venv"
            requirements = HERE / "requirements.txt"
            harness.venv(venv, requirements)
            made.append(tracers.Dftracer.in_venv(venv))
            metadata["DFTracer"] = requirements.read_text().splitlines()[-1] + ", preloaded, DFTRACER_INC_METADATA=1"
        elif name == "strace":
            made.append(tracers.Strace())
            metadata["strace"] = (
                measure.run(["strace", "--version"]).output.splitlines()[0]
                + f", -f -o, {tracers.Strace.share:.0%} of the calls"
            )
        else:
            sys.exit(f"bench.py: no tracer named {name}")
    return made, metadata


def main() -> int:
    options = parse()
    lap_rows: list[table.Row] = []
    lap_notes: list[str] = []
    occasion = harness.Occasion()
    configurations, metadata = configure(options)
    bench = Bench(options, configurations)
    try:
        if "calls" in options.parts:
            bench.run()
        if "laps" in options.parts:
            lap_rows, lap_notes = laps.run(bench)
    finally:
        bench.close()
    if "calls" in options.parts:
        metadata["run"] = occasion.description(f"{options.calls:,} calls, {options.repeats} interleaved repeats")
        table.publish(LAYOUT, bench.rows, metadata, bench.notes, options.json, options.update)
    if "laps" in options.parts:
        metadata = {name: value for name, value in metadata.items() if name not in ("DFTracer", "strace")}
        metadata["run"] = occasion.description(f"{options.laps} laps of {laps.RECORDS:,} records, {options.lap_repeats} interleaved repeats")
        results = options.json.with_stem(options.json.stem + "-laps")
        table.publish(laps.LAYOUT, lap_rows, metadata, lap_notes, results, options.update)
    return harness.status(options, table.missed([*bench.rows, *lap_rows]))


if __name__ == "__main__":
    harness.end(main)
