"""From measurements to the tables that are printed and committed: speeds, bars, index sizes, scaling."""

import json
from dataclasses import asdict, dataclass, field

import measure
from table import padded
from tools import BARE, COLD, GROUPS, INDEX, OURS, PAIRS, REPORT, START, TASKS, WARM, WINDOW

MIB = 1 << 20
# The one that the bars name: the stable release, which takes less than the newest.
DFANALYZER = "dfanalyzer 0.0.9 with utils 0.0.12"
RATE = " M events/CPU-s"
# Speeds to reach, by task, state and trace.
SPEEDS = (
    ("index, cold, multi-member", INDEX, COLD, "multi", 1.6),
    ("index, cold, own run", INDEX, COLD, "run", 1.4),
    ("index, cold, single-member", INDEX, COLD, "single", 0.9),
    ("cat, name without index, multi-member", PAIRS, BARE, "multi", 3.5),
    ("cat, name without index, own run", PAIRS, BARE, "run", 3.0),
    ("cat, name without index, single-member", PAIRS, BARE, "single", 2.5),
    ("cat, name, warm", PAIRS, WARM, "multi", 20),
    ("1 s, cat, name, pid, file, warm", GROUPS, WARM, "multi", 4),
    ("posix report with findings, cold, multi-member", REPORT, COLD, "multi", 1.15),
    ("posix report with findings, cold, own run", REPORT, COLD, "run", 1.0),
    ("posix report with findings, warm, multi-member", REPORT, WARM, "multi", 4),
    ("posix report with findings, warm, own run", REPORT, WARM, "run", 3),
)
# What plain text is compared with the compressed one in.
TEXT_TASKS = ((INDEX, COLD), (PAIRS, BARE), (REPORT, COLD))


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
    # Events in the tool's answer.
    found: int | None = None

    @property
    def cpu(self) -> float | None:
        return measure.median(self.cpu_s) if self.cpu_s else None

    @property
    def peak(self) -> float | None:
        return measure.median(self.peak_bytes) if self.peak_bytes else None

    @property
    def speed(self) -> float | None:
        """Million events per second of processor time; None where the task does not read all of them."""
        return self.events / self.cpu / 1e6 if self.cpu and self.events else None

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
        # Judged as it is printed.
        value = round(self.value, digits_of(self.value))
        reached = value >= self.limit if self.at_least else value <= self.limit
        return "reached" if reached else "**not reached**"

    def cells(self) -> list[str]:
        sign = "≥" if self.at_least else "≤"
        return [self.what, figure(self.value, self.unit), f"{sign} {figure(self.limit, self.unit)}", self.verdict]


def figure(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    return f"{value:,.{digits_of(value)}f}{unit}"


def digits_of(value: float) -> int:
    """Digits after the point: three that count, but no more than thousandths."""
    return next((digits for digits, least in enumerate((100, 10, 0.1)) if value >= least), 3)


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

    def of_ours(value, task: str, state: str, trace: str) -> float | None:
        found = the(results, task, state, trace)
        return value(found) if found else None

    def cpu_ratio(one: tuple[str, str, str], other: tuple[str, str, str]) -> float | None:
        first, second = (of_ours(lambda result: result.cpu, *place) for place in (one, other))
        return first / second if first and second else None

    def share(trace: str) -> float | None:
        return of_ours(lambda result: result.index_share, INDEX, COLD, trace)

    def beside_dfanalyzer(of) -> float | None:
        """How many times ours dfanalyzer takes, on the generated job."""
        mine, other = (the(results, REPORT, COLD, "multi", tool) for tool in (OURS, DFANALYZER))
        return of(other) / of(mine) if mine and other and of(mine) and of(other) else None

    everything = results + [result for step in scaling for result in step]
    peaks = [result.peak for result in everything if result.tool == OURS and result.peak]
    listed = [
        Bar(what, of_ours(lambda result: result.speed, *place), limit, RATE) for what, *place, limit in SPEEDS
    ]
    for trace, title in (("multi", "multi-member"), ("run", "own run")):
        part = cpu_ratio((WINDOW, WARM, trace), (REPORT, WARM, trace))
        percent = None if part is None else 100 * part
        listed.append(Bar(f"posix report, warm: CPU of 1 % of the time ÷ whole, {title}", percent, 3, " %", at_least=False))
    for task, state in TEXT_TASKS:
        ratio = cpu_ratio((task, state, "plain"), (task, state, "multi"))
        listed.append(Bar(f"{task}, {state}: CPU of plain text ÷ multi-member gzip", ratio, 1, "×", at_least=False))
    listed += [
        Bar(f"posix report, cold: CPU of {DFANALYZER} ÷ weft", beside_dfanalyzer(lambda result: result.cpu), 16, "×"),
        Bar(f"posix report, cold: memory of {DFANALYZER} ÷ weft", beside_dfanalyzer(lambda result: result.peak), 8, "×"),
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


def windows(results: list[Result]) -> str:
    """What a part of the time costs beside the whole, and how much of that is the start of the process."""
    lines = []
    for part in results:
        whole, start = the(results, REPORT, WARM, part.trace), the(results, START, BARE, part.trace)
        if part.task != WINDOW or not (part.cpu and whole and whole.cpu and start and start.cpu):
            continue
        found = f"{part.found:,} of {whole.found:,}" if part.found and whole.found else ""
        shares = [figure(100 * cpu / whole.cpu, " %") for cpu in (part.cpu, max(0, part.cpu - start.cpu))]
        times = [figure(result.cpu * 1000, "") for result in (whole, part, start)]
        lines.append([part.trace, found, *times, *shares, shortened(part.problem)])
    heading = [
        "posix report of 1 % of the time, warm", "spans in it", "whole, CPU ms", "part, CPU ms", "start of the process, CPU ms",
        "part ÷ whole", "without the start", "",
    ]
    return padded(heading, lines, 1) if lines else ""


def scaling_table(scaling: list[list[Result]]) -> str:
    lines = []
    for step in scaling:
        for result in step:
            figures = [figure(result.speed, ""), figure(result.cpu, ""), figure(result.peak / MIB if result.peak else None, "")]
            share = figure(result.index_share, " %") if result.task == INDEX else ""
            lines.append([f"{result.events:,}", f"{result.task}, {result.state}", *figures, share, shortened(result.problem)])
    heading = ["events", "task", "M events per CPU-s", "CPU s", "peak MiB", "index size", ""]
    return padded(heading, lines, 2) if lines else ""


def report(results: list[Result], scaling: list[list[Result]], metadata: dict[str, str], notes: list[str]) -> str:
    judged = padded(["bar", "measured", "demanded", ""], [bar.cells() for bar in bars(results, scaling)], 1)
    heading = "".join(f"- {name}: {value}\n" for name, value in metadata.items())
    parts = [heading, judged, speeds(results), windows(results), sizes(results), scaling_table(scaling), "".join(f"- {note}\n" for note in notes)]
    return "\n".join(part for part in parts if part)


def as_json(results: list[Result], scaling: list[list[Result]], metadata: dict[str, str], notes: list[str]) -> str:
    def listed(some: list[Result]) -> list[dict]:
        return [{**asdict(result), "speed": result.speed, "index_share": result.index_share} for result in some]

    judged = [{**asdict(bar), "verdict": bar.verdict.strip("*")} for bar in bars(results, scaling)]
    steps = [listed(step) for step in scaling]
    document = {"machine": metadata, "bars": judged, "results": listed(results), "scaling": steps, "notes": notes}
    return json.dumps(document, indent=1) + "\n"
