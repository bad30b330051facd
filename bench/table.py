"""Makes the table that is printed and committed, with each bar and whether it was reached."""

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """What the columns of a benchmark's table are: heading by key of `Row.values`, and which of them is compared with weft's."""

    first: str
    columns: dict[str, str]
    # None: there is no column with a ratio.
    incumbent: str | None
    # The part of a document between two comments with this name is the benchmark's.
    marker: str
    variant: str = "threads"
    # What the ratio's heading calls the column `weft`.
    divisor: str = "weft"

    @property
    def ratio(self) -> str:
        return f"{self.columns[self.incumbent]} ÷ {self.divisor}"


@dataclass
class Row:
    """One line of the table. `values` are medians by tracer; `bar` is what weft must not exceed."""

    what: str
    workload: str
    variant: int | str | None
    values: dict[str, float | None]
    bar: float | None = None
    digits: int = 0
    samples: dict[str, list[float]] = field(default_factory=dict)

    @property
    def reached(self) -> bool | None:
        """Judged as it is printed: a row never says that 106 is more than 106."""
        weft = self.values.get("weft")
        return None if self.bar is None or weft is None else round(weft, self.digits) <= self.bar

    def ratio(self, incumbent: str | None) -> float | None:
        weft, other = self.values.get("weft"), self.values.get(incumbent)
        return other / weft if weft and other and weft > 0 else None

    def cells(self, layout: Layout) -> list[str]:
        verdict = {None: "", True: "reached", False: "**not reached**"}[self.reached]
        ratio = self.ratio(layout.incumbent)
        return [
            self.what,
            self.workload,
            str(self.variant or ""),
            *(number(self.values.get(column), self.digits) for column in layout.columns),
            *([] if layout.incumbent is None else ["" if ratio is None else f"{ratio:.3g}×"]),
            "" if self.bar is None else f"≤ {number(self.bar, self.digits)}",
            verdict,
        ]


def number(value: float | None, digits: int) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"


def markdown(layout: Layout, rows: list[Row]) -> str:
    heading = [layout.first, "workload", layout.variant, *layout.columns.values()]
    ratio = [] if layout.incumbent is None else [layout.ratio]
    return padded([*heading, *ratio, "bar", ""], [row.cells(layout) for row in rows], 2)


def padded(heading: list[str], lines: list[list[str]], left: int) -> str:
    """A table that reads well in a terminal too; all columns after the first `left` and before the last are numbers."""
    widths = [max(len(line[at]) for line in [heading, *lines]) for at in range(len(heading))]

    def is_text(at: int) -> bool:
        return at < left or at == len(heading) - 1

    def shown(line: list[str]) -> str:
        placed = enumerate(zip(line, widths))
        cells = (cell.ljust(width) if is_text(at) else cell.rjust(width) for at, (cell, width) in placed)
        return "| " + " | ".join(cells) + " |"

    rule = "|" + "|".join("-" * (width + 1) + ("-" if is_text(at) else ":") for at, width in enumerate(widths)) + "|"
    return "\n".join([shown(heading), rule, *map(shown, lines)]) + "\n"


def verdicts(layout: Layout, rows: list[Row]) -> str:
    """One line per bar: its worst row decides."""
    lines = []
    for what in dict.fromkeys(row.what for row in rows):
        judged = [row for row in rows if row.what == what and row.reached is not None]
        if not judged:
            continue
        worst = max(judged, key=lambda row: row.values["weft"] / row.bar)
        where = ", ".join(filter(None, [worst.workload, f"{layout.variant} {worst.variant}" if worst.variant else ""]))
        state = "reached" if all(row.reached for row in judged) else "NOT REACHED"
        value, bar = number(worst.values["weft"], worst.digits), number(worst.bar, worst.digits)
        lines.append(f"- {what}: {state}; at worst {value}, bar {bar} ({where})")
    return "\n".join(lines)


def missed(rows: list[Row]) -> bool:
    return any(row.reached is False for row in rows)


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


def report(layout: Layout, rows: list[Row], metadata: dict[str, str], notes: list[str]) -> str:
    parts = ["".join(f"- {name}: {value}\n" for name, value in metadata.items()), markdown(layout, rows)]
    if judged := verdicts(layout, rows):
        parts.append(judged + "\n")
    if notes:
        parts.append("".join(f"- {note}\n" for note in notes))
    return "\n".join(parts)


def as_json(layout: Layout, rows: list[Row], metadata: dict[str, str], notes: list[str]) -> str:
    listed = [{**asdict(row), "reached": row.reached, "ratio": row.ratio(layout.incumbent)} for row in rows]
    return json.dumps({"machine": metadata, "rows": listed, "notes": notes}, indent=1) + "\n"


def update(marker: str, document: Path, text: str) -> None:
    """Replaces what stands between the two comments with this name in a document."""
    begin, end = f"<!-- {marker}: begin -->", f"<!-- {marker}: end -->"
    before, rest = document.read_text().split(begin, 1)
    after = rest.split(end, 1)[1]
    document.write_text(f"{before}{begin}\n\n{text}\n{end}{after}")


def publish(layout: Layout, rows: list[Row], metadata: dict[str, str], notes: list[str], results: Path, document: Path | None) -> None:
    """Prints the report, writes all samples to `results`, and puts the report into a document if there is one."""
    text = report(layout, rows, metadata, notes)
    print(text)
    results.write_text(as_json(layout, rows, metadata, notes))
    if document:
        update(layout.marker, document, text)
