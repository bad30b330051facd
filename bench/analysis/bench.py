#!/usr/bin/env python3
"""What an analysis costs: weft beside dftracer-utils, dfanalyzer, DuckDB and Polars. Use `make bench-analysis`.

All tools read the same generated files. Rounds are interleaved: every measurement once, then all again; the tables have
medians. Times are CPU times of the whole process tree, memory is that of its largest process. A tool that is missing or
fails is a row that says so, and a tool whose answer is not the generator's is marked.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import measure
import results
import table
import tools
import traces

LAYOUT = table.Layout("task", {}, "", "bench-analysis")
# A virtual environment for each file requirements-NAME.txt.
ENVIRONMENTS = ("stable", "newest", "engines")
# The task that a scaling step measures, in this order: a cold one makes the index for the warm ones behind it.
SCALED = ((tools.INDEX, tools.COLD), (tools.PAIRS, tools.WARM), (tools.REPORT, tools.COLD), (tools.REPORT, tools.WARM))


def say(words: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {words}", file=sys.stderr, flush=True)


def environment(work: Path, name: str) -> tuple[Path, dict[str, str]]:
    """A virtual environment's programs, and the versions that are pinned in it."""
    requirements = HERE / f"requirements-{name}.txt"
    subprocess.run([ROOT / "tools/python-venv.sh", work / f"venv-{name}", requirements], check=True)
    pinned = [line.strip().split("==") for line in requirements.read_text().splitlines() if "==" in line]
    return work / f"venv-{name}" / "bin", dict(pinned)


class Bench:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.scratch = options.work / "scratch"

    def wanted(self, measurement: tools.Measurement) -> bool:
        return all(word in measurement.name for word in self.options.only)

    def measurements(self) -> list[tools.Measurement]:
        """Everything, each tool's index before what uses it."""
        options = self.options
        stable, stable_pins = environment(options.work, "stable")
        newest, newest_pins = environment(options.work, "newest")
        engines, engine_pins = environment(options.work, "engines")
        utils, old_utils = newest_pins["dftracer-utils"], stable_pins["dftracer-utils"]
        say(f"traces of {options.events:,} events")
        listed = []
        made = options.work / f"generated-{options.events}"
        for trace in traces.generated(options.generator, made, options.events, ("single", "multi", "run")):
            listed += tools.ours(options.weft, options.group_by, trace)
            if trace.name == "run":
                continue
            listed += tools.inflaters(trace) + tools.engines(engines / "python3", engine_pins, trace)
            listed += tools.dftracer_utils(newest, utils, trace.copy_for("newest"))
            listed.append(tools.old_index(stable, old_utils, trace.copy_for("stable")))
            if trace.name == "multi":
                for programs, pins, stack in ((newest, newest_pins, "newest"), (stable, stable_pins, "stable")):
                    version = f"{pins['dftracer-analyzer']} with utils {pins['dftracer-utils']}"
                    copy = trace.copy_for(f"analyzer-{stack}")
                    listed.append(tools.dfanalyzer(programs, version, copy, self.scratch))
        fake = traces.faked(stable, options.work, options.events)
        listed += [one for one in tools.ours(options.weft, options.group_by, fake) if one.task != tools.FILTER]
        listed += tools.dftracer_utils(newest, utils, fake.copy_for("newest"))[:1]
        version = f"{newest_pins['dftracer-analyzer']} with utils {utils}"
        listed.append(tools.dfanalyzer(newest, version, fake.copy_for("analyzer-newest"), self.scratch))
        return [measurement for measurement in listed if self.wanted(measurement)]

    def run_all(self, measurements: list[tools.Measurement], repeats: int) -> list[results.Result]:
        found = [
            results.Result(one.task, one.state, one.trace.name, one.tool, one.trace.events, trace_bytes=one.trace.bytes)
            for one in measurements
        ]
        for round_ in range(repeats):
            for measurement, result in zip(measurements, found):
                if result.problem or (measurement.slow and round_ > 0):
                    continue
                say(f"{measurement.name}, {round_ + 1} of {1 if measurement.slow else repeats}")
                try:
                    self.run_one(measurement, result)
                except (measure.Failed, OSError) as failure:
                    result.problem = str(failure)
                    say(result.problem)
        return found

    def run_one(self, measurement: tools.Measurement, result: results.Result) -> None:
        if shutil.which(measurement.command[0]) is None:
            raise measure.Failed(f"{Path(measurement.command[0]).name} is not there")
        # dfanalyzer takes up what an earlier run left in its directory, whatever trace that was of.
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        printed, limit = self.scratch / "printed", self.options.limit
        if measurement.state == tools.COLD:
            measurement.trace.remove_index()
        elif measurement.index and measurement.index_at and not measurement.index_at.exists():
            measure.run_apart(measurement.index, printed, self.scratch, limit)
        cost = measure.run_apart(measurement.command, printed, self.scratch, limit)
        result.cpu_s.append(cost.cpu_ns / 1e9)
        result.peak_bytes.append(cost.peak_bytes)
        answer = measurement.found(printed)
        result.rows = answer.get("rows")
        wrong = [
            f"{what}: {answer[what]:,} instead of {right:,}"
            for what, right in measurement.expected.items()
            if right is not None and what in answer and answer[what] != right
        ]
        unknown = any(right is not None and what not in answer for what, right in measurement.expected.items())
        if wrong or unknown:
            # Kept beside the numbers; the other rounds are not needed to know it.
            result.problem = ", ".join(wrong) or "its answer could not be read"
        if measurement.task == tools.INDEX and measurement.index_at and measurement.index_at.exists():
            result.index_bytes = traces.size_below(measurement.index_at)

    def scaling(self) -> list[list[results.Result]]:
        """Ours alone, on traces of growing size."""
        steps = []
        for size in self.options.scaling:
            say(f"scaling: a trace of {size:g} million events")
            directory = self.options.work / "scaling"
            trace = traces.generated(self.options.generator, directory, round(size * 1e6), ("multi",), sharded=True)[0]
            mine = {(one.task, one.state): one for one in tools.ours(self.options.weft, self.options.group_by, trace)}
            steps.append(self.run_all([mine[which] for which in SCALED], self.options.scaling_repeats))
            shutil.rmtree(directory)
        return steps


def millions(text: str) -> list[float]:
    return [float(part) for part in text.split(",")]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    release = ROOT / "target/release"
    parser.add_argument("--weft", type=Path, default=release / "weft", help="the weft to measure")
    examples = release / "examples"
    parser.add_argument("--group-by", type=Path, default=examples / "group_by", help="the program that asks for groups")
    parser.add_argument("--generator", type=Path, default=examples / "generate_trace", help="makes the traces")
    parser.add_argument("--work", type=Path, default=ROOT / "target/bench-analysis", help="environments and traces go here")
    parser.add_argument("--events", type=lambda text: round(float(text)), default=8_000_000, help="size of the traces")
    parser.add_argument("--repeats", type=int, default=3, help="rounds; slow tools run in the first only")
    only = "measure only what has this word in its name (task, state, trace, tool); may be repeated"
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help=only)
    scaling = "also measure weft on traces of so many million events, in rising order"
    parser.add_argument("--scaling", type=millions, default=[], metavar="1,10,50", help=scaling)
    parser.add_argument("--scaling-repeats", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a command is stopped")
    parser.add_argument("--prepare", action="store_true", help="only make the environments and traces")
    parser.add_argument("--json", type=Path, help="also write all samples here")
    parser.add_argument("--update", type=Path, help="also put the report between the markers of this document")
    parser.add_argument("--gate", action="store_true", help="exit 1 when a bar is not reached")
    options = parser.parse_args()
    for name in ("weft", "group_by", "generator", "work"):
        setattr(options, name, getattr(options, name).resolve())
    return options


def facts_of(options: argparse.Namespace) -> dict[str, str]:
    facts = table.machine()
    try:
        facts["weft"] = measure.run([str(options.weft), "--version"]).output.strip()
    except (measure.Failed, OSError) as failure:
        facts["weft"] = str(failure)
    facts["traces"] = (
        f"{options.events:,} events each; *multi* and *single* are the same text in gzip members of 1 MiB and in one, level 6; "
        "*run* is the same job as `weft run` writes it; *fake* is made by dftracer_gen_fake_trace"
    )
    day, load = time.strftime("%Y-%m-%d", time.gmtime()), os.getloadavg()[0]
    facts["run"] = f"{day}, {options.repeats} interleaved rounds, load average {load:.1f} at the start"
    return facts


NOTES = [
    "CPU ÷ weft compares with weft in the same state where there is such a row; *no index* reads the trace itself",
    "dfanalyzer, Polars and the slowest of dftracer-utils run in the first round only; the better dfanalyzer stands in the bars",
    "dftracer_view and dftracer_stats refuse to work without their index; of a single-member file they make a second copy "
    "(split/), which dftracer_stats then counts as well",
    "memory below some 30 MiB is that of the interpreter which starts the tools",
]


def main() -> int:
    options = parse()
    options.work.mkdir(parents=True, exist_ok=True)
    # dfanalyzer 0.0.9 names a directory after the user.
    os.environ.setdefault("USER", "bench")
    if not options.generator.exists():
        print(f"bench.py: {options.generator} is not there; use `make bench-analysis`, which builds it", file=sys.stderr)
        return 1
    facts, bench = facts_of(options), Bench(options)
    measurements = bench.measurements()
    if options.prepare:
        return 0
    found = bench.run_all(measurements, options.repeats)
    scaling = bench.scaling()
    facts["run"] += f", {os.getloadavg()[0]:.1f} at the end"
    groups = {result.rows for result in found if result.task == tools.GROUPS and result.trace != "fake" and result.rows}
    notes = [*NOTES, *(f"1 s, cat, name, pid, file: {rows:,} groups" for rows in sorted(groups))]
    text = results.report(found, scaling, facts, notes)
    print(text)
    (options.json or options.work / "results.json").write_text(results.as_json(found, scaling, facts, notes))
    if options.update:
        table.update(LAYOUT, options.update, text)
    missed = any(bar.verdict != "reached" for bar in results.bars(found, scaling))
    return 1 if missed and options.gate else 0


if __name__ == "__main__":
    sys.exit(main())
