"""From numbers to the one table that is printed and committed, with each bar and whether it was reached."""

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path

COLUMNS = ("untraced", "weft", "dftracer", "strace")
HEADINGS = {"untraced": "untraced", "weft": "weft", "dftracer": "DFTracer", "strace": "strace"}
BEGIN = "<!-- bench-capture: begin -->"
END = "<!-- bench-capture: end -->"


@dataclass
class Row:
    """One line of the table. `values` are medians by tracer; `bar` is what weft must not exceed."""

    what: str
    workload: str
    threads: int | None
    values: dict[str, float | None]
    bar: float | None = None
    digits: int = 0
    samples: dict[str, list[float]] = field(default_factory=dict)

    @property
    def reached(self) -> bool | None:
        weft = self.values.get("weft")
        return None if self.bar is None or weft is None else weft <= self.bar

    @property
    def ratio(self) -> float | None:
        weft, incumbent = self.values.get("weft"), self.values.get("dftracer")
        return incumbent / weft if weft and incumbent and weft > 0 else None

    def cells(self) -> list[str]:
        verdict = {None: "", True: "reached", False: "**not reached**"}[self.reached]
        return [
            self.what,
            self.workload,
            str(self.threads or ""),
            *(number(self.values.get(column), self.digits) for column in COLUMNS),
            "" if self.ratio is None else f"{self.ratio:.3g}×",
            "" if self.bar is None else f"≤ {number(self.bar, self.digits)}",
            verdict,
        ]


def number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def markdown(rows: list[Row]) -> str:
    """The table, padded so that it reads well in a terminal too."""
    heading = ["added by tracing", "workload", "threads", *(HEADINGS[column] for column in COLUMNS)]
    lines = [[*heading, "DFTracer ÷ weft", "bar", ""]] + [row.cells() for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    left = {0, 1, 9}

    def shown(line: list[str]) -> str:
        cells = (
            cell.ljust(width) if at in left else cell.rjust(width) for at, (cell, width) in enumerate(zip(line, widths))
        )
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join("-" * (width + 1) + ("-" if at in left else ":") for at, width in enumerate(widths)) + "|"
    return "\n".join([shown(lines[0]), rule, *map(shown, lines[1:])])


def verdicts(rows: list[Row]) -> str:
    """One line per bar: its worst row decides."""
    lines = []
    for what in dict.fromkeys(row.what for row in rows):
        judged = [row for row in rows if row.what == what and row.reached is not None]
        if not judged:
            continue
        worst = max(judged, key=lambda row: row.values["weft"] / row.bar)
        where = " ".join(filter(None, [worst.workload, f"with {worst.threads} threads" if worst.threads else ""]))
        state = "reached" if all(row.reached for row in judged) else "NOT REACHED"
        value, bar = number(worst.values["weft"], worst.digits), number(worst.bar, worst.digits)
        lines.append(f"- {what}: {state}; at worst {value}, bar {bar} ({where})")
    return "\n".join(lines)


def machine() -> dict[str, str]:
    cpu = next(
        (line.split(":", 1)[1].strip() for line in lines_of("/proc/cpuinfo") if line.startswith("model name")), "?"
    )
    memory = next((int(line.split()[1]) for line in lines_of("/proc/meminfo") if line.startswith("MemTotal")), 0)
    clock = "".join(lines_of("/sys/devices/system/clocksource/clocksource0/current_clocksource"))
    system = next(
        (line.split("=", 1)[1].strip('"') for line in lines_of("/etc/os-release") if line.startswith("PRETTY_NAME")),
        "?",
    )
    return {
        "CPU": f"{os.cpu_count()} × {cpu}",
        "memory": f"{memory / 2**20:.0f} GiB",
        "kernel": f"{platform.release()}, clocksource {clock or '?'}",
        "system": f"{system}, {' '.join(platform.libc_ver())}",
    }


def lines_of(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []


def report(rows: list[Row], facts: dict[str, str], notes: list[str]) -> str:
    parts = ["".join(f"- {name}: {value}\n" for name, value in facts.items()), markdown(rows) + "\n"]
    if judged := verdicts(rows):
        parts.append(judged + "\n")
    if notes:
        parts.append("".join(f"- {note}\n" for note in notes))
    return "\n".join(parts)


def as_json(rows: list[Row], facts: dict[str, str], notes: list[str]) -> str:
    listed = [{**asdict(row), "reached": row.reached, "ratio": row.ratio} for row in rows]
    return json.dumps({"machine": facts, "rows": listed, "notes": notes}, indent=1) + "\n"


def update(document: Path, text: str) -> None:
    """Replaces what stands between the two markers of a document."""
    old = document.read_text()
    before, rest = old.split(BEGIN, 1)
    after = rest.split(END, 1)[1]
    document.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{after}")
