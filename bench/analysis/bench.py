#!/usr/bin/env python3
"""Measures the cost of an analysis: weft beside dftracer-utils, dfanalyzer, DuckDB and Polars. Use `make bench-analysis`.

All tools read the same generated files. Rounds are interleaved: every measurement once, then all again; the tables have
medians. Times are CPU times of the whole process tree, memory is that of its largest process. A tool that is missing or
fails gets a row that says so, and a tool with a wrong answer is marked.
"""

import argparse
import os
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

import harness
import instructions
import measure
import results
import table
import tools
import traces
from harness import ROOT, say

MARKER = "bench-analysis"
# The task that a scaling step measures, in this order: a cold one makes the index for the warm ones behind it.
SCALED = ((tools.INDEX, tools.COLD), (tools.PAIRS, tools.WARM), (tools.REPORT, tools.COLD), (tools.REPORT, tools.WARM))


def environment(work: Path, name: str) -> tuple[Path, dict[str, str]]:
    """A virtual environment's programs, and the versions that are pinned in it."""
    requirements = HERE / f"requirements-{name}.txt"
    pinned = [line.strip().split("==") for line in requirements.read_text().splitlines() if "==" in line]
    return harness.venv(work / f"venv-{name}", requirements), dict(pinned)


class Bench:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.scratch = options.work / "scratch"

    def wanted(self, measurement: tools.Measurement) -> bool:
        return all(word in measurement.name for word in self.options.only)

    def measurements(self) -> list[tools.Measurement]:
        """Everything, each tool's index before what uses it."""
        options = self.options
        made = options.work / f"generated-{options.events}"
        say(f"traces of {options.events:,} events")
        generated = traces.generated(options.generator, made, options.events, ("single", "multi", "plain", "run"))
        listed = [one for trace in generated for one in tools.ours(options.weft, options.group_by, trace)]
        if not options.alone:
            listed += self.others([trace for trace in generated if trace.name in ("single", "multi")])
        return [measurement for measurement in listed if self.wanted(measurement)]

    def others(self, generated: list[traces.Trace]) -> list[tools.Measurement]:
        """What the other tools are asked, and weft and they on what DFTracer's own generator makes."""
        options = self.options
        stable, stable_pins = environment(options.work, "stable")
        newest, newest_pins = environment(options.work, "newest")
        engines, engine_pins = environment(options.work, "engines")
        utils, old_utils = newest_pins["dftracer-utils"], stable_pins["dftracer-utils"]
        listed = []
        for trace in generated:
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
        return listed

    def run_all(self, measurements: list[tools.Measurement], repeats: int) -> list[results.Result]:
        found = [
            results.Result(one.task, one.state, one.trace.name, one.tool, one.events, trace_bytes=one.trace.bytes)
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
        harness.emptied(self.scratch)
        printed, limit = self.scratch / "printed", self.options.limit
        if measurement.state == tools.COLD:
            measurement.trace.remove_index()
        elif measurement.index and measurement.index_at and not measurement.index_at.exists():
            measure.run_apart(measurement.index, printed, self.scratch, limit)
        cost = measure.run_apart(measurement.command, printed, self.scratch, limit)
        result.cpu_s.append(cost.cpu_ns / 1e9)
        result.peak_bytes.append(cost.peak_bytes)
        answer = measurement.found(printed)
        result.rows, result.found = answer.get("rows"), answer.get("events")
        # Kept beside the numbers; the other rounds are not needed to know it.
        result.problem = measurement.wrong(answer)
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
    parser = harness.options(__doc__, MARKER, repeats=3, quick=False)
    examples = ROOT / "target/release/examples"
    parser.add_argument("--group-by", type=Path, default=examples / "group_by", help="the program that asks for groups")
    parser.add_argument("--generator", type=Path, default=examples / "generate_trace", help="makes the traces")
    parser.add_argument("--events", type=lambda text: round(float(text)), default=8_000_000, help="size of the traces")
    only = "measure only what has this word in its name (task, state, trace, tool); may be repeated"
    parser.add_argument("--only", action="append", default=[], metavar="WORD", help=only)
    parser.add_argument("--alone", action="store_true", help="measure weft only; no environments are made")
    profile = "count instructions by callgrind instead, of a run of our own (default: one of 150,000 events that is generated)"
    parser.add_argument("--profile", nargs="?", type=Path, const=True, metavar="RUN", help=profile)
    scaling = "also measure weft on traces of so many million events, in rising order"
    parser.add_argument("--scaling", type=millions, default=[], metavar="1,10,50", help=scaling)
    parser.add_argument("--scaling-repeats", type=int, default=1)
    parser.add_argument("--limit", type=float, default=600, help="seconds after which a command is stopped")
    parser.add_argument("--prepare", action="store_true", help="only make the environments and traces")
    options = harness.parsed(parser)
    options.group_by, options.generator = options.group_by.resolve(), options.generator.resolve()
    return options


def metadata_of(options: argparse.Namespace) -> dict[str, str]:
    metadata = harness.metadata(options.weft)
    metadata["traces"] = (
        f"{options.events:,} events each; *multi* and *single* are the same text in gzip members of 1 MiB and in one, level 6; *plain* is that text; "
        "*run* is the same job as `weft run` writes it; *fake* is made by dftracer_gen_fake_trace"
    )
    return metadata


NOTES = [
    "CPU ÷ weft compares with weft in the same state where there is such a row; *no index* reads the trace itself",
    "dfanalyzer, Polars and the slowest of dftracer-utils run in the first round only; the stable dfanalyzer, which is the better one, stands in the bars",
    "a posix report has its findings, as it has by default; the start of the process is `weft --version`",
    "dftracer_view and dftracer_stats refuse to work without their index; of a single-member file they make a second copy "
    "(split/), which dftracer_stats then counts as well",
    "memory below some 30 MiB is that of the interpreter which starts the tools",
]


def profile(options: argparse.Namespace) -> int:
    """Where the time goes, in a table of its own."""
    occasion, metadata = harness.Occasion(), harness.metadata(options.weft)
    if options.profile is True:
        directory = options.work / f"generated-{instructions.EVENTS}"
        trace = traces.generated(options.generator, directory, instructions.EVENTS, ("run",))[0]
        run, events, origin = trace.directory, trace.events, "the generated job, as `weft run` writes it"
    else:
        run = options.profile
        events, command = instructions.known_of(options.weft, run)
        origin = f"recorded by `weft run -- {command}`"
    say(f"instructions of {events:,} events")
    copy = instructions.copied(run, options.work / "profiled")
    found = instructions.profiles(options.weft, copy, harness.emptied(options.work / "scratch"), options.limit)
    metadata["trace"] = f"{events:,} events, {origin}"
    metadata["run"] = occasion.description("one thread under callgrind")
    text = instructions.report(found, events, metadata)
    print(text)
    options.json.with_stem(f"{options.json.stem}-profile").write_text(instructions.as_json(found, events, metadata))
    if options.update:
        table.update(instructions.MARKER, options.update, text)
    return 0


def main() -> int:
    options, occasion = parse(), harness.Occasion()
    # dfanalyzer 0.0.9 names a directory after the user.
    os.environ.setdefault("USER", "bench")
    if options.profile:
        return profile(options)
    metadata, bench = metadata_of(options), Bench(options)
    measurements = bench.measurements()
    if options.prepare:
        return 0
    found = bench.run_all(measurements, options.repeats)
    scaling = bench.scaling()
    metadata["run"] = occasion.description(f"{options.repeats} interleaved rounds")
    groups = {result.rows for result in found if result.task == tools.GROUPS and result.trace != "fake" and result.rows}
    notes = [*NOTES, *(f"1 s, cat, name, pid, file: {rows:,} groups" for rows in sorted(groups))]
    text = results.report(found, scaling, metadata, notes)
    print(text)
    options.json.write_text(results.as_json(found, scaling, metadata, notes))
    if options.update:
        table.update(MARKER, options.update, text)
    return harness.status(options, any(bar.verdict != "reached" for bar in results.bars(found, scaling)))


if __name__ == "__main__":
    harness.end(main)
