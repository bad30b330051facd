#!/usr/bin/env python3
"""What a woven call costs: `weft weave` beside -finstrument-functions of clang and gcc, in one table. Use `make bench-weave`.

All three tell the same recorder. The program measures itself (calls.c); runs are interleaved, medians are compared, and all
times are CPU times of the calling thread.
"""

import argparse
import json
import os
import shutil
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))

import measure
import table

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


def say(words: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {words}", file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weft", type=Path, default=ROOT / "target/release/weft", help="the weft to measure")
    parser.add_argument("--work", type=Path, default=ROOT / "target/bench-weave", help="programs and traces go here")
    parser.add_argument("--clangs", default="clang", help="compilers to weave with, separated by commas")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="a smoke test: the numbers mean little")
    parser.add_argument("--json", type=Path, help="also write all samples here")
    parser.add_argument("--update", type=Path, help="also put the report between the markers of this document")
    parser.add_argument("--gate", action="store_true", help="exit 1 when a bar is not reached")
    options = parser.parse_args()
    options.repeats = 1 if options.quick else options.repeats
    options.calls = 2000 if options.quick else 20000
    options.work = options.work.resolve()
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
    return json.loads(measure.run(command).output.strip().splitlines()[-1])


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
    options = parse()
    options.work.mkdir(parents=True, exist_ok=True)
    facts = table.machine()
    facts["weft"] = measure.run([str(options.weft), "--version"]).output.strip()
    facts["run"] = f"{time.strftime('%Y-%m-%d', time.gmtime())}, {options.repeats} interleaved repeats, load average {os.getloadavg()[0]:.1f} at the start"
    prefix = options.work / "prefix"
    try:
        measure.run([str(ROOT / "tools/install.sh"), str(options.weft), str(prefix)])
        measured = [row for clang in options.clangs.split(",") for row in rows(options, prefix / "bin/weft", prefix, clang)]
        for clang in options.clangs.split(","):
            facts[clang] = measure.run([clang, "--version"]).output.splitlines()[0]
        facts["gcc"] = measure.run(["gcc", "--version"]).output.splitlines()[0]
    except measure.Failed as failure:
        print(f"bench.py: {failure}", file=sys.stderr)
        return 1
    facts["run"] += f", {os.getloadavg()[0]:.1f} at the end"
    notes = [
        "the hooks of -finstrument-functions look their function up by its address and keep a stack (hooks.c); woven code has both at hand",
        "off, woven code makes two loads and two branches, which a processor does beside the call itself: near 0 means that, not that nothing was woven",
    ]
    table.publish(LAYOUT, measured, facts, notes, options.json or options.work / "results.json", options.update)
    missed = any(row.reached is False for row in measured)
    return 1 if missed and options.gate else 0


if __name__ == "__main__":
    sys.exit(main())
