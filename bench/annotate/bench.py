#!/usr/bin/env python3
"""What an annotation costs. Use `make bench-annotate`.

In Rust and C: spans beside those of LTTng-UST, Tracy, fastrace and puffin (recorders.py). In Python: weft beside DFTracer, PerfFlowAspect and
VizTracer (frontends.py). Each program measures itself; runs are interleaved, and medians are compared.
"""

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE.parent), str(ROOT / "tools/wheels")]

import frontends
import make
import measure
import recorders
import table

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
        directory = self.options.work / "traces"
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        return directory

    def sample(self, frontend: frontends.Frontend, switched_on: bool) -> dict[str, float]:
        traces = self.traces()
        command, variables = frontend.command(HERE / "workload.py", traces, switched_on, self.options.share)
        said = measure.run(command, variables).output
        return json.loads(said.strip().splitlines()[-1])

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


def say(words: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {words}", file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weft", type=Path, default=ROOT / "target/release/weft", help="the weft to measure")
    parser.add_argument("--work", type=Path, default=ROOT / "target/bench-annotate", help="environments and traces go here")
    parser.add_argument("--wheels", type=Path, default=ROOT / "target/wheels", help="where `make wheels` put its wheels")
    parser.add_argument("--parts", default="spans,python", help="what to measure, separated by commas: spans, python")
    parser.add_argument("--pythons", default="3.12,3.11", help="versions of Python, separated by commas")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a smoke test: the numbers mean little")
    parser.add_argument("--json", type=Path, help="also write all samples here")
    parser.add_argument("--update", type=Path, help="also put the report between the markers of this document")
    parser.add_argument("--gate", action="store_true", help="exit 1 when a bar is not reached")
    options = parser.parse_args()
    options.share = 0.02 if options.quick else 1
    options.repeats = 1 if options.quick else options.repeats
    options.work = options.work.resolve()
    options.parts = options.parts.split(",")
    if unknown := set(options.parts) - {"spans", "python"}:
        parser.error(f"no part named {', '.join(sorted(unknown))}")
    # Spans of a round, and rounds.
    options.size = ["100", "11"] if options.quick else ["500", "201"]
    return options


def environment(options: argparse.Namespace, python: Path, name: str, requirements: Path) -> Path:
    """A virtual environment; its interpreter."""
    venv = options.work / f"{name}-{python.name}"
    subprocess.run([ROOT / "tools/python-venv.sh", venv, requirements], check=True, env={**os.environ, "PYTHON": str(python)})
    return venv / "bin/python3"


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


def measure_spans(options: argparse.Namespace, facts: dict[str, str]) -> tuple[list[table.Row], list[str]]:
    bench = Bench(options)
    weft = options.weft.resolve()
    in_c = measure.compile_with_weft(HERE / "weft_scope.c", options.work / "weft_scope", weft)
    chosen, versions, missing = recorders.prepare(options.work, weft, in_c, options.size)
    facts["peers"] = ", ".join(f"{title} {version}" for title, version in versions.items()) or "none"
    with contextlib.ExitStack() as running:
        for recorder in [recorder for recorder in chosen if isinstance(recorder, recorders.Lttng)]:
            try:
                running.enter_context(recorder)
            except measure.Failed as failure:
                chosen.remove(recorder)
                missing.append(recorders.missing(SPANS.columns[recorder.column], failure))
        notes = bench.spans(chosen)
    return bench.rows, [*missing, *notes]


def measure_python(options: argparse.Namespace, facts: dict[str, str]) -> tuple[list[table.Row], list[str]]:
    facts["incumbents"] = ", ".join((HERE / "requirements.txt").read_text().split()[-3:])
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
    options.work.mkdir(parents=True, exist_ok=True)
    results = options.json or options.work / "results.json"
    missed = False
    for part, layout, measure_part in (("spans", SPANS, measure_spans), ("python", PYTHON, measure_python)):
        if part not in options.parts:
            continue
        facts = table.machine()
        try:
            facts["weft"] = measure.run([str(options.weft), "--version"]).output.strip()
            load = f"load average {os.getloadavg()[0]:.1f} at the start"
            rows, notes = measure_part(options, facts)
        except measure.Failed as failure:
            print(f"bench.py: {failure}", file=sys.stderr)
            return 1
        load += f", {os.getloadavg()[0]:.1f} at the end"
        facts["run"] = f"{time.strftime('%Y-%m-%d', time.gmtime())}, {options.repeats} interleaved repeats, {load}"
        table.publish(layout, rows, facts, notes, results.with_stem(f"{results.stem}-{part}"), options.update)
        missed |= any(row.reached is False for row in rows)
    return 1 if missed and options.gate else 0


if __name__ == "__main__":
    sys.exit(main())
