"""Measures the cost of a record on the first lap through an arena and on later laps: a part of bench.py.

A process writes its first records to memory that it has not touched before; each page of it costs a fault unless it was populated in
advance. Later laps reuse the pages. Laps of one process are compared with those of an untraced process in the same round. Where the product can choose
between memory and disk for its arenas, both are measured.
"""

from dataclasses import dataclass

import measure
import table
import tracers
from harness import say

LAYOUT = table.Layout(
    first="added by tracing",
    columns={"untraced": "untraced", "first": "first lap", "weft": "later laps"},
    incumbent="first",
    marker="bench-capture-laps",
    variant="arenas",
    divisor="later",
)
KINDS = {"pread": "4 KiB pread", "span": "C span"}
# A fresh arena has 28 segments of 2,047 records (crates/recorder/src/layout.rs); a lap must fit without growing it.
RECORDS = 50_000
# What later laps are to reach; the first one has no bar of its own.
BAR_NS = 60


@dataclass
class Laps:
    """One run: the first lap and the median of the others, times per record and faults per 1,000 records.

    The kernel counts a fault for every page that becomes present, also for those of a call that makes many present at once.
    """

    first_ns: float
    later_ns: float
    first_faults: float
    later_faults: float


def read(said: dict, records: int) -> Laps:
    """From what the program prints."""
    times, faults = said["cpu_ns"], said["faults"]
    if len(times) < 2 or len(times) != len(faults):
        raise measure.Failed(f"laps: {len(times)} times and {len(faults)} numbers of faults")
    later_faults = measure.median(faults[1:])
    return Laps(
        times[0] / records, measure.median(times[1:]) / records, faults[0] * 1000 / records, later_faults * 1000 / records
    )


def places(help_text: str) -> list[str | None]:
    """Where the product's arenas can lie, from `weft run --help`; None: it does not let one choose."""
    return ["memory", "disk"] if "--arenas" in help_text else [None]


def rows(kind: str, runs: dict[str, list[Laps]], configurations: dict[str, str]) -> list[table.Row]:
    """Rows for one kind of record: medians over rounds, tracers less the untraced run of their own round. `configurations`: label by tracer."""
    made = []
    for what, first, later, bar, digits in (
        ("ns per record", "first_ns", "later_ns", BAR_NS, 0),
        ("new pages per 1,000 records", "first_faults", "later_faults", None, 1),
    ):
        bare_first = [getattr(run, first) for run in runs["untraced"]]
        bare_later = [getattr(run, later) for run in runs["untraced"]]
        for name, label in configurations.items():
            samples = {
                "untraced": bare_later,
                "first": [getattr(run, first) - bare for run, bare in zip(runs[name], bare_first)],
                "weft": [getattr(run, later) - bare for run, bare in zip(runs[name], bare_later)],
            }
            values = {column: measure.median(found) for column, found in samples.items()}
            made.append(table.Row(what, KINDS[kind], label, values, bar, digits, samples))
    return made


def run(bench) -> tuple[list[table.Row], list[str]]:
    """Measures all kinds; the rows, and what is to be said about them."""
    options = bench.options
    program = measure.compile_with_weft(bench.source("laps.c"), bench.work / "laps", options.weft)
    untraced, chosen, notes = tracers.Untraced(), {}, []
    for place in places(measure.run([str(options.weft), "run", "--help"]).output):
        tracer = tracers.Weft(options.weft, place)
        try:
            bench.traced(tracer, ["/bin/true"])
        except measure.Failed as failure:
            notes.append(f"arenas in {place} could not be had: {' '.join(str(failure).split())[-200:]}")
        else:
            chosen[tracer] = place or "default"
    made = []
    for kind in KINDS:
        command = [str(program), kind, str(RECORDS), str(options.laps), str(bench.data / "file.0")]

        def sample(tracer: tracers.Untraced) -> Laps:
            said = bench.traced(tracer, command).said()
            if tracer not in looked_at:
                looked_at.add(tracer)
                trace = tracer.read(bench.work / "traces")
                if trace and trace.events < RECORDS * options.laps:
                    notes.append(f"{tracer.name}: {trace.events:,} of {RECORDS * options.laps:,} records of {KINDS[kind]} were kept")
            return read(said, RECORDS)

        looked_at: set[tracers.Untraced] = set()
        say(f"laps of {KINDS[kind]}")
        runs = bench.interleaved(options.lap_repeats, sample, [untraced, *chosen])
        made += rows(kind, runs, {tracer.name: label for tracer, label in chosen.items()})
    return made, notes
