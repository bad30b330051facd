"""The tools that are compared: how each is asked, and what it must have found."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from traces import ONE_NAME, Trace

HERE = Path(__file__).resolve().parent
OURS = "weft"
COLD, WARM, BARE = "cold", "warm", "no index"
# Tasks: the first column of the table, in its order.
TASKS = (
    INFLATE := "inflate only",
    INDEX := "index",
    PAIRS := "group by cat, name",
    GROUPS := "group by 1 s, cat, name, pid, file",
    FILTER := f"calls of {ONE_NAME}",
    STATS := "statistics",
    REPORT := "posix report, 1 s",
    WINDOW := "posix report of 1 % of the time",
    START := "start of the process",
)
# Tasks that do not read all events: a rate would say nothing.
UNRATED = (WINDOW, START)


@dataclass
class Measurement:
    """One tool doing one task on one trace."""

    task: str
    state: str
    trace: Trace
    tool: str
    command: list[str]
    # Of what it printed: numbers to compare with `expected`, by what they are.
    found: Callable[[Path], dict[str, int]] = lambda path: {}
    # None: unknown; a range: what is plausible.
    expected: dict[str, int | range | None] = field(default_factory=dict)
    # Makes the index that a warm task starts from.
    index: list[str] | None = None
    # Where that index lies.
    index_at: Path | None = None
    # Runs in the first round only.
    slow: bool = False

    @property
    def name(self) -> str:
        return f"{self.task}, {self.state}, {self.trace.name}, {self.tool}"

    @property
    def events(self) -> int:
        """What a rate is computed from; 0 where none is."""
        return 0 if self.task in UNRATED else self.trace.events

    def wrong(self, answer: dict[str, int]) -> str:
        """What is wrong with an answer; nothing if it is as expected."""
        known = {what: right for what, right in self.expected.items() if right is not None}
        if not known.keys() <= answer.keys():
            return "its answer could not be read"
        words = []
        for what, right in known.items():
            plausible = right if isinstance(right, range) else range(right, right + 1)
            if answer[what] not in plausible:
                shown = f"{right.start:,} to {right.stop - 1:,}" if isinstance(right, range) else f"{right:,}"
                words.append(f"{what}: {answer[what]:,} instead of {shown}")
        return ", ".join(words)


def number_after(*words: str) -> Callable[[Path], dict[str, int]]:
    """Finds `WORDS: 1,234` in what was printed; the last number of such a line counts."""

    def found(path: Path) -> dict[str, int]:
        for line in path.read_text(errors="replace").splitlines():
            numbers = re.findall(r"\d[\d,]*", line)
            if all(word in line for word in words) and numbers:
                return {"events": int(numbers[-1].replace(",", ""))}
        return {}

    return found


def spans(path: Path) -> dict[str, int]:
    """`trace  1,234 spans in …` of our report."""
    match = re.search(r"^ *trace +([\d,]+) spans?\b", path.read_text(), re.MULTILINE)
    return {"events": int(match[1].replace(",", ""))} if match else {}


def json_rows(path: Path) -> dict[str, int]:
    """Rows printed as one object per line, with their `count` where they have one."""
    rows, events = 0, 0
    with path.open() as lines:
        for line in lines:
            rows += 1
            events += json.loads(line).get("count", 1)
    return {"rows": rows, "events": events}


def last_object(path: Path) -> dict[str, int]:
    """The object on the last line."""
    lines = path.read_text().strip().splitlines()
    return json.loads(lines[-1]) if lines else {}


def named_numbers(path: Path) -> dict[str, int]:
    """`groups` and `events` of our `group_by`, as `name number`, `name: number`, `"name":number` or `number name`."""
    text, found = path.read_text(errors="replace"), {}
    for name, key in (("groups", "rows"), ("events", "events")):
        match = re.search(rf'\b{name}"?[:=\s]+(\d[\d,]*)|(\d[\d,]*) {name}\b', text)
        if match:
            found[key] = int((match[1] or match[2]).replace(",", ""))
    return found


def ours(weft: Path, group_by: Path, trace: Trace) -> list[Measurement]:
    """Everything that weft is asked; of the plain text only what reads it, for comparison with the compressed one."""
    run = str(trace.directory)
    index = [str(weft), "index", run]
    report = [str(weft), "report", run, "--preset", "posix", "--time", "1s"]
    at = trace.directory / ".weft"
    by_pair, by_all = ["--by", "cat,name"], ["--by", "bucket,cat,name,pid,file", "--time", "1s"]
    pairs = {"rows": trace.pairs, "events": trace.events}

    def asked(task: str, state: str, command: list[str], **more) -> Measurement:
        started = {"index": index, "index_at": at} if state == WARM else {"index_at": at}
        return Measurement(task, state, trace, OURS, command, **started, **more)

    def grouped(task: str, state: str, words: list[str], expected: dict) -> Measurement:
        return asked(task, state, [str(group_by), run, *words], found=named_numbers, expected=expected)

    def reported(state: str) -> Measurement:
        return asked(REPORT, state, report, found=spans, expected={"events": trace.events})

    if trace.name == "plain":
        return [asked(INDEX, COLD, index), grouped(PAIRS, BARE, [*by_pair, "--no-index"], pairs), reported(COLD)]
    listed = [
        asked(INDEX, COLD, index),
        grouped(PAIRS, BARE, [*by_pair, "--no-index"], pairs),
        grouped(PAIRS, WARM, by_pair, pairs),
        grouped(GROUPS, BARE, [*by_all, "--no-index"], {"events": trace.events}),
        grouped(GROUPS, WARM, by_all, {"events": trace.events}),
        grouped(FILTER, WARM, [*by_pair, "--where-name", ONE_NAME], {"events": trace.matches}),
        reported(COLD),
        reported(WARM),
    ]
    if trace.seconds and trace.name != "single":
        # One hundredth in the middle; its events are spread evenly enough to tell a window from nothing and from everything.
        middle = [f"{trace.seconds * share}ms" for share in (495, 505)]
        window, few = ["--from", middle[0], "--to", middle[1]], range(1, max(2, trace.events // 20))
        listed.append(asked(WINDOW, WARM, [*report, *window], found=spans, expected={"events": few}))
        listed.append(asked(START, BARE, [str(weft), "--version"]))
    return listed


def dftracer_utils(bin_directory: Path, version: str, trace: Trace) -> list[Measurement]:
    """The command line tools of dftracer-utils 0.0.14. None is bare: with `--no-auto-index` they refuse to work."""
    quiet = ["-d", str(trace.directory), "--log-level", "off"]
    index = [str(bin_directory / "dftracer_index"), *quiet]
    view = [str(bin_directory / "dftracer_view"), *quiet]
    sums = ["--agg", "count,sum:dur,sum:size,min:dur,max:dur"]

    def asked(task: str, tool: str, command: list[str], **more) -> Measurement:
        state, before = (COLD, None) if task == INDEX else (WARM, index)
        at = trace.directory / ".dftindex"
        # Of a single-member file every one of them makes a second copy first.
        slow = task in (INDEX, STATS) or trace.name == "single"
        tool = f"{tool} {version}"
        return Measurement(task, state, trace, tool, command, index=before, index_at=at, slow=slow, **more)

    everything = {"events": trace.events}
    pairs = {"rows": trace.pairs, **everything}
    return [
        asked(INDEX, "dftracer_index", index, found=number_after("Events processed"), expected=everything),
        asked(PAIRS, "dftracer_view", [*view, "--group-by", "cat,name", *sums], found=json_rows, expected=pairs),
        asked(
            GROUPS, "dftracer_view", [*view, "--group-by", "cat,name,pid,fhash", "--time-bucket", "1s", *sums],
            found=json_rows, expected=everything,
        ),
        asked(
            FILTER, "dftracer_view", [*view, "--query", f'name == "{ONE_NAME}"'],
            found=json_rows, expected={"rows": trace.matches},
        ),
        asked(
            STATS, "dftracer_stats", [str(bin_directory / "dftracer_stats"), *quiet],
            found=number_after("Events Scanned"), expected=everything,
        ),
    ]


def old_index(bin_directory: Path, version: str, trace: Trace) -> Measurement:
    """`dftracer_index` of 0.0.12; its view cannot group."""
    command = [str(bin_directory / "dftracer_index"), "-d", str(trace.directory), "--log-level", "off"]
    found, expected = number_after("Events processed"), {"events": trace.events}
    at = trace.directory / ".dftindex"
    return Measurement(INDEX, COLD, trace, f"dftracer_index {version}", command, found, expected, index_at=at)


def dfanalyzer(bin_directory: Path, version: str, trace: Trace, work: Path) -> Measurement:
    settings = ["analyzer/preset=posix", "analyzer.time_granularity=1", f"hydra.run.dir={work / 'dfanalyzer'}"]
    command = [str(bin_directory / "dfanalyzer"), f"trace_path={trace.directory}", *settings]
    found, expected = number_after("Trace Count"), {"events": trace.events}
    return Measurement(REPORT, COLD, trace, f"dfanalyzer {version}", command, found, expected, slow=True)


def engines(python: Path, versions: dict[str, str], trace: Trace) -> list[Measurement]:
    files = [str(file) for file in trace.files]
    queries = {
        "pairs": (PAIRS, {"rows": trace.pairs, "events": trace.events}),
        "groups": (GROUPS, {"events": trace.events}),
        "filter": (FILTER, {"events": trace.matches}),
    }
    return [
        Measurement(
            task, BARE, trace, f"{title} {versions[engine]}",
            [str(python), str(HERE / "engine.py"), engine, query, *files], last_object, expected,
            slow=engine == "polars",
        )
        for query, (task, expected) in queries.items()
        for engine, title in (("duckdb", "DuckDB"), ("polars", "Polars"))
    ]


def inflaters(trace: Trace) -> list[Measurement]:
    """The floor: nothing but decompression."""
    tools = {"igzip": ["igzip", "-d", "-c"], "libdeflate": ["libdeflate-gunzip", "-c"]}
    return [
        Measurement(INFLATE, BARE, trace, tool, ["sh", "-c", 'exec "$@" >/dev/null', "sh", *command, *map(str, trace.files)])
        for tool, command in tools.items()
    ]
