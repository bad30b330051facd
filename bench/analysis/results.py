"""From measurements to the tables that are printed and committed: speeds, bars, index sizes, scaling."""

import json
import statistics
from dataclasses import asdict, dataclass, field

from tools import BARE, COLD, GROUPS, INDEX, OURS, PAIRS, REPORT, TASKS, WARM

MIB = 1 << 20


@dataclass
class Result:
    """What one tool needed for one task, in all rounds."""

    task: str
    state: str
    trace: str
    tool: str
    events: int
    cpu_s: list[float] = field(default_factory=list)
    peak_bytes: list[int] = field(default_factory=list)
    index_bytes: int | None = None
    trace_bytes: int = 0
    # Why there are no numbers, or what is wrong with the tool's answer.
    problem: str = ""
    rows: int | None = None

    @property
    def cpu(self) -> float | None:
        return statistics.median(self.cpu_s) if self.cpu_s else None

    @property
    def peak(self) -> float | None:
        return statistics.median(self.peak_bytes) if self.peak_bytes else None

    @property
    def speed(self) -> float | None:
        """Million events per second of processor time."""
        return self.events / self.cpu / 1e6 if self.cpu else None

    @property
    def index_share(self) -> float | None:
        """The index in per cent of the trace."""
        return 100 * self.index_bytes / self.trace_bytes if self.index_bytes and self.trace_bytes else None


@dataclass
class Bar:
    """One demand of the issue."""

    what: str
    value: float | None
    limit: float
    unit: str
    at_least: bool = True

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        reached = self.value >= self.limit if self.at_least else self.value <= self.limit
        return "reached" if reached else "**not reached**"

    def cells(self) -> list[str]:
        sign = "≥" if self.at_least else "≤"
        return [self.what, figure(self.value, self.unit), f"{sign} {figure(self.limit, self.unit)}", self.verdict]


def figure(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    digits = 0 if value >= 100 else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}{unit}"


def shortened(problem: str) -> str:
    """Fits a cell; the whole is in the JSON file."""
    words = " ".join(problem.split()).replace("|", "/")
    return words if len(words) <= 70 else words[:69] + "…"


def the(results: list[Result], task: str, state: str, trace: str, tool: str = OURS) -> Result | None:
    wanted = (task, state, trace, tool)
    return next((result for result in results if (result.task, result.state, result.trace, result.tool) == wanted), None)


def bars(results: list[Result], scaling: list[list[Result]]) -> list[Bar]:
    # Who gives a wrong answer reaches no bar, and is none.
    results = [result for result in results if not result.problem]

    def speed(task: str, state: str, trace: str) -> float | None:
        found = the(results, task, state, trace)
        return found.speed if found else None

    def share(trace: str) -> float | None:
        found = the(results, INDEX, COLD, trace)
        return found.index_share if found else None

    def beside_dfanalyzer(of) -> float | None:
        """How many times ours the better of the dfanalyzers takes, on the generated job."""
        mine = the(results, REPORT, COLD, "multi")
        others = [result for result in results if result.tool.startswith("dfanalyzer") and result.trace == "multi"]
        theirs = [of(result) for result in others if of(result)]
        return min(theirs) / of(mine) if mine and of(mine) and theirs else None

    everything = results + [result for step in scaling for result in step]
    peaks = [result.peak for result in everything if result.tool == OURS and result.peak]
    listed = [
        Bar("index, cold, multi-member", speed(INDEX, COLD, "multi"), 1.1, " M events/CPU-s"),
        Bar("index, cold, single-member", speed(INDEX, COLD, "single"), 0.9, " M events/CPU-s"),
        Bar("cat, name without index, multi-member", speed(PAIRS, BARE, "multi"), 3, " M events/CPU-s"),
        Bar("cat, name without index, single-member", speed(PAIRS, BARE, "single"), 2.5, " M events/CPU-s"),
        Bar("cat, name, warm", speed(PAIRS, WARM, "multi"), 20, " M events/CPU-s"),
        Bar("1 s, cat, name, pid, file, warm", speed(GROUPS, WARM, "multi"), 4, " M events/CPU-s"),
        Bar("posix report, cold: CPU of dfanalyzer ÷ weft", beside_dfanalyzer(lambda result: result.cpu), 25, "×"),
        Bar("posix report, cold: memory of dfanalyzer ÷ weft", beside_dfanalyzer(lambda result: result.peak), 8, "×"),
        Bar("index size, of the gzip -6 file", share("single"), 80, " %", at_least=False),
        Bar("index size, of our own trace", share("run"), 130, " %", at_least=False),
        Bar("peak memory of weft, largest of all rows", max(peaks) / MIB if peaks else None, 1024, " MiB", at_least=False),
    ]
    if len(scaling) > 1:
        listed.append(Bar("peak memory, most ÷ second most events, worst task", growth(scaling), 1.25, "×", at_least=False))
    return listed


def growth(scaling: list[list[Result]]) -> float | None:
    """Peak memory with the most events beside that with the second most, of the task where it grows most."""
    before, last = scaling[-2:]
    ratios = []
    for result in last:
        smaller = the(before, result.task, result.state, result.trace)
        if smaller and smaller.peak and result.peak:
            ratios.append(result.peak / smaller.peak)
    return max(ratios, default=None)


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


def speeds(results: list[Result]) -> str:
    lines = []
    order = sorted(results, key=lambda result: (TASKS.index(result.task), result.trace, result.tool != OURS))
    for result in order:
        problem = shortened(result.problem)
        if result.cpu is None:
            lines.append([result.task, result.trace, f"{result.tool}, {result.state}", "–", "–", "–", "", problem])
            continue
        place = (result.task, result.trace)
        rivals = [mine for mine in order if mine.tool == OURS and (mine.task, mine.trace) == place and mine.cpu]
        # Ours in the same state where there is one: who has no index is compared with ours without index.
        same = [mine for mine in rivals if mine.state == result.state] or rivals
        ratio = f"{result.cpu / same[0].cpu:.3g}×" if same and result.tool != OURS else ""
        figures = [figure(result.speed, ""), figure(result.cpu, ""), figure(result.peak / MIB, "")]
        lines.append([result.task, result.trace, f"{result.tool}, {result.state}", *figures, ratio, problem])
    heading = ["task", "trace", "tool", "M events per CPU-s", "CPU s", "peak MiB", "CPU ÷ weft", ""]
    return padded(heading, lines, 3)


def sizes(results: list[Result]) -> str:
    lines = [
        [
            result.trace, result.tool,
            f"{result.trace_bytes / 1e6:,.1f}", f"{result.index_bytes / 1e6:,.1f}", f"{result.index_share:.1f} %", "",
        ]
        for result in sorted(results, key=lambda result: (result.trace, result.tool != OURS))
        if result.task == INDEX and result.index_share is not None
    ]
    return padded(["trace", "index by", "trace MB", "index MB", "share", ""], lines, 2) if lines else ""


def scaling_table(scaling: list[list[Result]]) -> str:
    lines = []
    for step in scaling:
        for result in step:
            figures = [figure(result.speed, ""), figure(result.cpu, ""), figure(result.peak / MIB if result.peak else None, "")]
            share = figure(result.index_share, " %") if result.task == INDEX else ""
            lines.append([f"{result.events:,}", f"{result.task}, {result.state}", *figures, share, shortened(result.problem)])
    heading = ["events", "task", "M events per CPU-s", "CPU s", "peak MiB", "index size", ""]
    return padded(heading, lines, 2) if lines else ""


def report(results: list[Result], scaling: list[list[Result]], facts: dict[str, str], notes: list[str]) -> str:
    judged = padded(["bar", "measured", "demanded", ""], [bar.cells() for bar in bars(results, scaling)], 1)
    told = "".join(f"- {name}: {value}\n" for name, value in facts.items())
    parts = [told, judged, speeds(results), sizes(results), scaling_table(scaling), "".join(f"- {note}\n" for note in notes)]
    return "\n".join(part for part in parts if part)


def as_json(results: list[Result], scaling: list[list[Result]], facts: dict[str, str], notes: list[str]) -> str:
    def listed(some: list[Result]) -> list[dict]:
        return [{**asdict(result), "speed": result.speed, "index_share": result.index_share} for result in some]

    judged = [{**asdict(bar), "verdict": bar.verdict.strip("*")} for bar in bars(results, scaling)]
    steps = [listed(step) for step in scaling]
    document = {"machine": facts, "bars": judged, "results": listed(results), "scaling": steps, "notes": notes}
    return json.dumps(document, indent=1) + "\n"
