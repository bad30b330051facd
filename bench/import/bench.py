#!/usr/bin/env python3
"""Measures what reading foreign files costs beside the tools of their formats, in one table. Use `make bench-import`.

Chrome JSON → index beside Perfetto's own engine (wasm under Node), in four layouts of the same events. Runs are interleaved, medians are compared, and all
times are CPU times of a command and its children.
"""

import argparse
import json
import random
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

import harness
import measure
import table
from harness import say

LAYOUT = table.Layout(
    first="what",
    columns={"weft": "weft", "peer": "the format's own tool"},
    incumbent="peer",
    marker="bench-import",
    variant="tool",
)
CPU, PEAK = "CPU µs per event", "peak memory, MB"
# 1.5 million events per CPU-second.
CPU_BAR = 1 / 1.5
# How many times the CPU time of Perfetto's engine.
RATIO_BAR = 10


def parse() -> argparse.Namespace:
    parser = harness.options(__doc__, LAYOUT.marker, repeats=5)
    parser.add_argument("--events", type=int, default=1_000_000, help="spans of each Chrome trace")
    options = harness.parsed(parser)
    if options.quick:
        options.repeats, options.events = 1, 20_000
    return options


def spans(count: int):
    """Spans as a framework writes them; the same at every call."""
    chosen, at = random.Random(7), 0
    for number in range(count):
        at += chosen.randrange(1, 60)
        yield {
            "ph": "X",
            "name": f"aten::op_{number % 83}",
            "cat": "cpu_op",
            "pid": 1 + number % 4,
            "tid": 100 + number % 8,
            "ts": at,
            # Shorter than the distance to the next one of its thread: Perfetto drops spans that cross.
            "dur": 1,
            "args": {"step": number // 1000, "Input Dims": f"[[{number % 64}, {number % 1024}]]"},
        }


def write_traces(directory: Path, count: int) -> dict[str, Path]:
    """One file per layout."""
    files = {name: directory / f"{name}.json" for name in ("lines", "one-line", "pretty", "object")}
    marked = directory / f"events-{count}"
    if marked.exists():
        return files
    harness.emptied(directory)
    compact = {"separators": (",", ":")}
    with files["lines"].open("w") as lines, files["one-line"].open("w") as one, files["pretty"].open("w") as pretty:
        lines.write("[\n")
        one.write("[")
        pretty.write("[")
        for number, span in enumerate(spans(count)):
            text, comma = json.dumps(span, **compact), "," if number else ""
            lines.write(text + "\n")
            one.write(comma + text)
            pretty.write(comma + "\n" + json.dumps(span, indent=2))
        one.write("]")
        pretty.write("\n]\n")
    with files["object"].open("w") as whole, files["one-line"].open() as one:
        whole.write('{"schemaVersion":1,"displayTimeUnit":"ms","traceEvents":')
        shutil.copyfileobj(one, whole)
        whole.write(',"traceName":"bench"}\n')
    marked.touch()
    return files


def interleaved(options: argparse.Namespace, what: str, commands: dict[str, Callable[[], measure.Cost]]) -> dict[str, list[measure.Cost]]:
    found: dict[str, list[measure.Cost]] = {name: [] for name in commands}
    for repeat in range(options.repeats):
        for name, run in commands.items():
            say(f"{what}, {name}, {repeat + 1} of {options.repeats}")
            found[name].append(run())
    return found


def rows_of(workload: str, tool: str, events: int, costs: dict[str, list[measure.Cost]], bar: float | None) -> list[table.Row]:
    cpu = {name: [cost.cpu_ns / 1e3 / events for cost in some] for name, some in costs.items()}
    peak = {name: [cost.peak_bytes / 1e6 for cost in some] for name, some in costs.items()}
    medians = [{name: measure.median(values) for name, values in some.items()} for some in (cpu, peak)]
    return [
        table.Row(CPU, workload, tool, medians[0], bar, 2, cpu),
        table.Row(PEAK, workload, tool, medians[1], None, 0, peak),
    ]


def chrome(options: argparse.Namespace) -> list[table.Row]:
    files = write_traces(options.work / "chrome", options.events)
    check = ROOT / "tools/perfetto/check.sh"
    found = []
    for layout, file in files.items():

        def ours(file: Path = file) -> measure.Cost:
            shutil.rmtree(file.parent / ".weft", ignore_errors=True)
            cost = measure.run([str(options.weft), "index", "--json", str(file)])
            rows = sum(part["rows"] for part in json.loads(cost.output))
            if rows < options.events:
                raise measure.Failed(f"{file}: {rows} of {options.events} events are in the index")
            return cost

        def theirs(file: Path = file) -> measure.Cost:
            return measure.run([str(check), "--expect-slices", str(options.events), str(file)])

        costs = interleaved(options, f"Chrome JSON, {layout}", {"weft": ours, "peer": theirs})
        found += rows_of(f"Chrome JSON → index: {layout}", "Perfetto, wasm", options.events, costs, CPU_BAR)
    return found


def main() -> int:
    options, occasion = parse(), harness.Occasion()
    metadata = harness.metadata(options.weft)
    # The first use makes the environment that Perfetto's engine comes in.
    measure.run([str(ROOT / "tools/perfetto/check.sh"), "--help"])
    measured = chrome(options)
    metadata["run"] = occasion.description(f"{options.repeats} interleaved repeats, {options.events:,} events")
    behind = [
        f"{row.workload}: {row.ratio('peer'):.1f} times less CPU than {row.variant}, asked for were {RATIO_BAR}"
        for row in measured
        if row.what == CPU and row.ratio("peer") is not None and row.ratio("peer") < RATIO_BAR
    ]
    notes = ["a bar of 0.67 µs is 1.5 million events per CPU-second", *behind]
    table.publish(LAYOUT, measured, metadata, notes, options.json, options.update)
    return harness.status(options, table.missed(measured) or bool(behind))


if __name__ == "__main__":
    harness.end(main)
