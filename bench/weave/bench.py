#!/usr/bin/env python3
"""Measures the cost of woven calls: `weft weave` beside -finstrument-functions of clang and gcc, in one table. Use `make bench-weave`.

All three call the same recorder. The program measures itself (calls.c); runs are interleaved, medians are compared, and all
times are CPU times of the calling thread.
"""

import argparse
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

import harness
import measure
import table
from harness import say

LAYOUT = table.Layout(
    first="added ns per call",
    columns={
        "weft": "weft weave",
        "clang": "clang -finstrument-functions",
        "gcc": "gcc -finstrument-functions",
    },
    incumbent="clang",
    marker="bench-weave",
    variant="compiler",
)
# ns: a call that is recorded, and one of a woven program that nobody traces.
BARS = {"on": 70, "off": 3}


def parse() -> argparse.Namespace:
    parser = harness.options(__doc__, LAYOUT.marker, repeats=7)
    parser.add_argument("--clangs", default="clang", help="compilers to weave with, separated by commas")
    options = harness.parsed(parser)
    options.repeats = 1 if options.quick else options.repeats
    options.calls = 2000 if options.quick else 20000
    return options


def build(options: argparse.Namespace, weft: Path, prefix: Path, clang: str) -> dict[str, Path]:
    """One program for each column."""
    include, library = f"-I{prefix}/include", prefix / "lib"
    linked = [f"-L{library}", f"-Wl,-rpath,{library}", "-lweft", "-ldl", "-rdynamic"]
    programs = {column: options.work / f"calls-{column}-{clang}" for column in LAYOUT.columns}
    measure.run([str(weft), "weave", "--", clang, "-O2", str(HERE / "calls.c"), "-o", str(programs["weft"])])
    for column, compiler in (("clang", clang), ("gcc", "gcc")):
        hooks = options.work / f"hooks-{column}.o"
        measure.run([compiler, "-O2", "-c", include, str(HERE / "hooks.c"), "-o", str(hooks)])
        flags = ["-O2", "-finstrument-functions", "-Wno-attributes", str(HERE / "calls.c"), str(hooks)]
        measure.run([compiler, *flags, "-o", str(programs[column]), *linked])
    return programs


def sample(options: argparse.Namespace, weft: Path, program: Path, state: str) -> dict[str, float]:
    command = [str(program), str(options.calls)]
    if state == "on":
        run = options.work / "run"
        shutil.rmtree(run, ignore_errors=True)
        command = [str(weft), "run", "-q", "-o", str(run), "--", *command]
    return measure.run(command).said()


def rows(options: argparse.Namespace, weft: Path, prefix: Path, clang: str) -> list[table.Row]:
    programs = build(options, weft, prefix, clang)
    found = []
    for state in ("on", "off"):
        samples: dict[str, dict[str, list[float]]] = {}
        for repeat in range(options.repeats):
            for column, program in programs.items():
                say(f"{clang}, {column}, {state}, {repeat + 1} of {options.repeats}")
                for kind, value in sample(options, weft, program, state).items():
                    samples.setdefault(kind, {}).setdefault(column, []).append(value)
        for kind, by_column in samples.items():
            medians = {column: measure.median(values) for column, values in by_column.items()}
            found.append(table.Row(state, kind, clang, medians, BARS[state], 1, by_column))
    return found


def main() -> int:
    options, occasion = parse(), harness.Occasion()
    metadata = harness.metadata(options.weft)
    prefix = options.work / "prefix"
    measure.run([str(ROOT / "tools/install.sh"), str(options.weft), str(prefix)])
    clangs = options.clangs.split(",")
    measured = [row for clang in clangs for row in rows(options, prefix / "bin/weft", prefix, clang)]
    for compiler in (*clangs, "gcc"):
        metadata[compiler] = measure.run([compiler, "--version"]).output.splitlines()[0]
    metadata["run"] = occasion.description(f"{options.repeats} interleaved repeats")
    notes = [
        "the hooks of -finstrument-functions look their function up by its address and keep a stack (hooks.c); woven code has both at hand",
        "off, woven code makes two loads and two branches, which a processor does beside the call itself: near 0 means that, not that nothing was woven",
    ]
    table.publish(LAYOUT, measured, metadata, notes, options.json, options.update)
    return harness.status(options, table.missed(measured))


if __name__ == "__main__":
    harness.end(main)
