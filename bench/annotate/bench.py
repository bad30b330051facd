#!/usr/bin/env python3
"""What an annotation costs: weft beside DFTracer, PerfFlowAspect and VizTracer, in one table. Use `make bench-annotate`.

Each front-end's program measures itself (workload.py); runs are interleaved, medians are compared, and all times are CPU
times of the calling thread. Rust and C have no incumbent here and stand alone.
"""

import argparse
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
import table

LAYOUT = table.Layout(
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
BARS_NATIVE = {("Rust", "on"): 60, ("Rust", "off"): 2, ("C", "on"): 60}


class Bench:
    def __init__(self, options: argparse.Namespace):
        self.options = options
        self.rows: list[table.Row] = []
        self.notes: list[str] = []

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

    def native(self, language: str, program: list[str]) -> None:
        """A program that prints `{"0 arguments": ns, "3 arguments": ns}`."""
        launcher = [str(self.options.weft), "run", "-q", "-o"]
        for state in ("on", "off"):
            samples: dict[str, list[float]] = {}
            for _ in range(self.options.repeats):
                say(f"{language}, {state}")
                command = [*launcher, str(self.traces() / "run"), "--", *program] if state == "on" else program
                for kind, value in json.loads(measure.run(command).output.strip().splitlines()[-1]).items():
                    samples.setdefault(kind, []).append(value)
            for kind, values in samples.items():
                bar = BARS_NATIVE.get((language, state)) if kind.startswith("0") else None
                medians = {"weft": measure.median(values)}
                self.rows.append(table.Row(state, f"span, {kind}", language, medians, bar, 1, {"weft": values}))


def say(words: str) -> None:
    print(f"[{time.strftime('%H:%M:%S')}] {words}", file=sys.stderr, flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weft", type=Path, default=ROOT / "target/release/weft", help="the weft to measure")
    parser.add_argument("--work", type=Path, default=ROOT / "target/bench-annotate", help="environments and traces go here")
    parser.add_argument("--wheels", type=Path, default=ROOT / "target/wheels", help="where `make wheels` put its wheels")
    parser.add_argument("--rust", type=Path, help="the program crates/annotations/examples/span_cost")
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


def compile_c(options: argparse.Namespace) -> Path:
    """The C program, linked against an installation."""
    prefix, program = options.work / "prefix", options.work / "c_scope"
    measure.run([str(ROOT / "tools/install.sh"), str(options.weft), str(prefix)])
    source = HERE / "c_scope.c"
    paths = [f"-I{prefix}/include", f"-L{prefix}/lib", f"-Wl,-rpath,{prefix}/lib"]
    measure.run(["cc", "-O2", "-o", str(program), str(source), *paths, "-lweft"])
    return program


def main() -> int:
    options = parse()
    options.work.mkdir(parents=True, exist_ok=True)
    bench = Bench(options)
    facts = table.machine()
    facts["weft"] = measure.run([str(options.weft), "--version"]).output.strip()
    facts["incumbents"] = ", ".join((HERE / "requirements.txt").read_text().split()[-3:])
    facts["run"] = f"{time.strftime('%Y-%m-%d', time.gmtime())}, {options.repeats} interleaved repeats, load average {os.getloadavg()[0]:.1f} at the start"
    try:
        if options.rust:
            bench.native("Rust", [str(options.rust)])
        bench.native("C", [str(compile_c(options))])
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
    except measure.Failed as failure:
        print(f"bench.py: {failure}", file=sys.stderr)
        return 1
    bench.notes.append("PerfFlowAspect with log-enable=False does not call the function at all: its off column is the cost of not working")
    bench.notes.append("VizTracer needs no decorator; its figures are what a traced call costs, off is before its start")
    facts["run"] += f", {os.getloadavg()[0]:.1f} at the end"
    text = table.report(LAYOUT, bench.rows, facts, bench.notes)
    print(text)
    (options.json or options.work / "results.json").write_text(table.as_json(LAYOUT, bench.rows, facts, bench.notes))
    if options.update:
        table.update(LAYOUT, options.update, text)
    missed = any(row.reached is False for row in bench.rows)
    return 1 if missed and options.gate else 0


if __name__ == "__main__":
    sys.exit(main())
