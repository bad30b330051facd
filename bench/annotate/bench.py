#!/usr/bin/env python3
"""Measures the cost of annotations. Use `make bench-annotate`.

In Rust and C: spans beside those of LTTng-UST, Tracy, fastrace and puffin (recorders.py). In Python: weft beside DFTracer, PerfFlowAspect and
VizTracer (frontends.py). Each program measures itself; runs are interleaved, and medians are compared.
"""

import argparse
import contextlib
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(ROOT / "tools/wheels")]

import frontends
import harness
import make
import measure
import recorders
import table
from harness import say

SPANS = table.Layout(
    first="added ns per span",
    columns={"weft": "weft", **recorders.PEERS},
    incumbent=None,
    marker="bench-annotate-spans",
    variant="language",
)
PYTHON = table.Layout(
    first="added ns per annotation",
    columns={
        "weft": "weft",
        "weft-dftracer": "weft as dftracer",
        "weft-perfflow": "weft as perfflow",
        "dftracer": "DFTracer",
        "perfflow": "PerfFlowAspect",
        "viztracer": "VizTracer",
    },
    incumbent="dftracer",
    marker="bench-annotate",
    variant="language",
)
DECORATORS = ("function, no arguments", "function, 3 arguments")
# ns: with vectorcall (Python 3.12 and later) and without.
BARS_PYTHON = {"on": (150, 200), "off": (40, 70)}
BARS_SPANS = {("Rust", "on"): 60, ("Rust", "off"): 2, ("C", "on"): 60}


class Bench:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.rows: list[table.Row] = []

    def traces(self) -> Path:
        """An empty directory for one run's traces."""
        return harness.emptied(self.options.work / "traces")

    def sample(self, frontend: frontends.Frontend, switched_on: bool) -> dict[str, float]:
        traces = self.traces()
        command, variables = frontend.command(HERE / "workload.py", traces, switched_on, self.options.share)
        return measure.run(command, variables).said()

    def python(self, version: str, chosen: list[frontends.Frontend]) -> None:
        vectorcall = tuple(int(part) for part in version.split(".")[:2]) >= (3, 12)
        for state in ("on", "off"):
            samples: dict[str, dict[str, list[float]]] = {}
            for repeat in range(self.options.repeats):
                for frontend in chosen:
                    say(f"Python {version}, {frontend.name}, {state}, {repeat + 1} of {self.options.repeats}")
                    for kind, value in self.sample(frontend, state == "on").items():
                        samples.setdefault(kind, {}).setdefault(frontend.name, []).append(value)
            for kind, by_name in samples.items():
                bar = BARS_PYTHON[state][0 if vectorcall else 1] if kind in DECORATORS else None
                medians = {name: measure.median(values) for name, values in by_name.items()}
                self.rows.append(table.Row(state, kind, f"Python {version}", medians, bar, 0, by_name))

    def spans(self, chosen: list[recorders.Recorder]) -> list[str]:
        """All recorders in turn, as often as there are repeats; a sentence on each that failed or did not keep what it was told."""
        samples: dict[tuple[str, str, str], dict[str, list[float]]] = {}
        notes: dict[recorders.Recorder, str] = {}
        failed: set[recorders.Recorder] = set()
        for repeat in range(self.options.repeats):
            for recorder in chosen:
                title, language = SPANS.columns[recorder.column], recorder.language
                for state in recorder.states:
                    if recorder in failed:
                        break
                    say(f"{language}, {title}, {state}, {repeat + 1} of {self.options.repeats}")
                    try:
                        found = recorder.sample(state, self.traces(), count=repeat == 0)
                    except measure.Failed as failure:
                        if recorder.column == "weft":
                            raise
                        notes[recorder] = recorders.missing(title, failure)
                        failed.add(recorder)
                        break
                    if state == "on" and found.recorded is not None and found.recorded < found.made:
                        notes[recorder] = f"{title} kept {found.recorded:,} of {found.made:,} spans in {language}"
                    for kind, value in found.ns.items():
                        samples.setdefault((language, state, kind), {}).setdefault(recorder.column, []).append(value)
        # Stable: kinds stay in the programs' own order.
        order = [(language, state) for language in ("Rust", "C") for state in ("on", "off")]
        for language, state, kind in sorted(samples, key=lambda key: order.index(key[:2])):
            by_column = samples[language, state, kind]
            bar = BARS_SPANS.get((language, state)) if kind.startswith("0") else None
            medians = {column: measure.median(values) for column, values in by_column.items()}
            self.rows.append(table.Row(state, f"span, {kind}", language, medians, bar, 1, by_column))
        return list(notes.values())


def parse() -> argparse.Namespace:
    parser = harness.options(__doc__, "bench-annotate", repeats=5)
    parser.add_argument("--wheels", type=Path, default=ROOT / "target/wheels", help="where `make wheels` put its wheels")
    parser.add_argument("--parts", default="spans,python", help="what to measure, separated by commas: spans, python")
    parser.add_argument("--pythons", default="3.12,3.11", help="versions of Python, separated by commas")
    options = harness.parsed(parser)
    options.share = 0.02 if options.quick else 1
    options.repeats = 1 if options.quick else options.repeats
    options.parts = harness.parts(parser, options.parts, ("spans", "python"))
    # Spans of a round, and rounds.
    options.size = ["100", "11"] if options.quick else ["500", "201"]
    return options


def environment(options: argparse.Namespace, python: Path, name: str, requirements: Path) -> Path:
    """A virtual environment; its interpreter."""
    return harness.venv(options.work / f"{name}-{python.name}", requirements, python) / "python3"


def ours(options: argparse.Namespace, python: Path, name: str) -> Path:
    """An environment with our package; pip chooses among the wheels the one made for this Python."""
    requirements = options.work / "requirements.txt"
    requirements.write_text(f"--no-index\n--find-links {options.wheels.resolve()}\nweftline\n")
    return environment(options, python, name, requirements)


def with_drop_ins(options: argparse.Namespace, python: Path) -> Path:
    interpreter = ours(options, python, "drop-ins")
    sources = options.work / "compat"
    shutil.copytree(ROOT / "compat", sources, dirs_exist_ok=True)
    install = [interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*install, sources / "dftracer", sources / "perfflowaspect"], check=True)
    return interpreter


def measure_spans(options: argparse.Namespace, metadata: dict[str, str]) -> tuple[list[table.Row], list[str]]:
    bench = Bench(options)
    in_c = measure.compile_with_weft(HERE / "weft_scope.c", options.work / "weft_scope", options.weft)
    chosen, versions, missing = recorders.prepare(options.work, options.weft, in_c, options.size)
    metadata["peers"] = ", ".join(f"{title} {version}" for title, version in versions.items()) or "none"
    with contextlib.ExitStack() as running:
        for recorder in [recorder for recorder in chosen if isinstance(recorder, recorders.Lttng)]:
            try:
                running.enter_context(recorder)
            except measure.Failed as failure:
                chosen.remove(recorder)
                missing.append(recorders.missing(SPANS.columns[recorder.column], failure))
        notes = bench.spans(chosen)
    return bench.rows, [*missing, *notes]


def measure_python(options: argparse.Namespace, metadata: dict[str, str]) -> tuple[list[table.Row], list[str]]:
    metadata["incumbents"] = ", ".join((HERE / "requirements.txt").read_text().split()[-3:])
    bench = Bench(options)
    present = make.pythons()
    for version in options.pythons.split(","):
        python = present.get(tuple(int(part) for part in version.split(".")))
        if python is None:
            raise measure.Failed(f"no Python {version} on this machine")
        chosen = [
            frontends.ours(ours(options, python, "weft"), options.weft),
            *frontends.drop_ins(with_drop_ins(options, python)),
            *frontends.others(environment(options, python, "others", HERE / "requirements.txt")),
        ]
        bench.python(version, chosen)
    return bench.rows, [
        "PerfFlowAspect with log-enable=False does not call the function at all: its off column is the cost of not working",
        "VizTracer needs no decorator; its figures are what a traced call costs, off is before its start",
    ]


def main() -> int:
    options = parse()
    missed = False
    for part, layout, measure_part in (("spans", SPANS, measure_spans), ("python", PYTHON, measure_python)):
        if part not in options.parts:
            continue
        metadata, occasion = harness.metadata(options.weft), harness.Occasion()
        rows, notes = measure_part(options, metadata)
        metadata["run"] = occasion.description(f"{options.repeats} interleaved repeats")
        table.publish(layout, rows, metadata, notes, options.json.with_stem(f"{options.json.stem}-{part}"), options.update)
        missed |= table.missed(rows)
    return harness.status(options, missed)


if __name__ == "__main__":
    harness.end(main)
