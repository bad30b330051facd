"""Profiles an analysis: instructions per event, counted by callgrind and grouped by function. `bench.py --profile`.

A function that no group names, such as a sort or a growing vector, counts where it is called from, in proportion to what each caller spent in it. Code that
the compiler put into its caller counts as the caller's. One thread, so that two counts of the same run agree.
"""

import json
import re
import shlex
import shutil
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import measure
from table import padded

MARKER = "bench-analysis-profile"
EVENTS = 150_000
OTHER = "other"
# The first group whose pattern is found in a function's name has it. What they hold is the table's last column.
GROUPS = {
    "memory": (r"^_*(mem(cpy|move|set|cmp)|bcmp|(int_)?(malloc|free|realloc|calloc|memalign)\b|malloc_|unlink_chunk)", "memcpy, memset, malloc"),
    "zstd": (r"^(ZSTD|HUF|HUFv\d+|FSE|HIST|XXH\d*|POOL)_|\bzstd(_safe|_sys)?::", "compressing and decompressing pages"),
    "inflate": (
        r"^(libdeflate_|deflate_|build_decode_table|crc32_)|\b(libdeflater|zlib_rs|flate2|crc32fast)::"
        r"|\bweftline_(index::inflate|format::(gunzip|members?|source))\b",
        "gzip members to text, with their checksum",
    ),
    "scan": (r"\bweftline_format::|\bweftline_index::(pipeline::work|lines|source)\b|\bmemchr::", "text to the fields of events"),
    "rows": (r"\bweftline_index::(rows|dictionary|pipeline::tables)\b", "fields to columns, strings to ids"),
    "read pages": (r"\bweftline_index::(part::(read|page::(Decoder|join|decode))|scan|filter)\b", "pages of the index to columns"),
    "encode and pack": (r"\bweftline_index::(part|column)\b|\bparquet::", "columns in the order of time, as pages of bytes"),
    "findings": (r"\bweftline_analysis::findings\b", "evidence and rules"),
    "sums": (r"\bweftline_analysis::", "sums, groups and intervals of a report"),
}
FIELD = re.compile(r"(c?fn)=\((\d+)\)(?: (.*))?")


@dataclass
class Profile:
    """What callgrind counted: instructions in each function itself, and with all that it called for each caller."""

    own: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    # By function, then by caller.
    within: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(int)))

    @property
    def total(self) -> int:
        return sum(self.own.values())

    def grouped(self) -> dict[str, float]:
        """Instructions by group; those that nobody who has a group asked for are `OTHER`."""
        found: dict[str, float] = defaultdict(float)
        shares = {name: {group: 1.0} for name in self.functions() if (group := group_of(name))}
        open_ones = {name for name in self.functions() if name not in shares}
        # What has no group takes that of its callers. A round goes one call further up; 50 are more than any chain of unnamed functions has.
        for _ in range(50):
            before = dict(shares)
            for name in open_ones:
                shares[name] = self.inherited(name, before)
            if shares == before:
                break
        for name, cost in self.own.items():
            for group, share in shares.get(name, {}).items():
                found[group] += cost * share
        found[OTHER] = self.total - sum(found.values())
        return found

    def functions(self) -> set[str]:
        return self.own.keys() | self.within.keys()

    def inherited(self, name: str, shares: dict[str, dict[str, float]]) -> dict[str, float]:
        callers = {caller: cost for caller, cost in self.within[name].items() if caller != name}
        whole, mixed = sum(callers.values()), defaultdict(float)
        for caller, cost in callers.items():
            for group, share in shares.get(caller, {}).items():
                mixed[group] += share * cost / whole if whole else 0
        return dict(mixed)

    def largest(self, count: int) -> list[tuple[str, float]]:
        """The functions with most instructions of their own, and their share."""
        ordered = sorted(self.own.items(), key=lambda item: -item[1])[:count]
        return [(name, cost / self.total) for name, cost in ordered]


def group_of(name: str) -> str | None:
    return next((group for group, (pattern, _) in GROUPS.items() if re.search(pattern, name)), None)


def read(path: Path) -> Profile:
    """Reads callgrind's file. A line of a position and a cost is the function's own, except after `calls=`, where it is the called one's."""
    names: dict[str, str] = {}
    profile, function, called, next_is_call = Profile(), "", "", False
    with path.open(errors="replace") as lines:
        for line in lines:
            if match := FIELD.match(line):
                which, number, name = match.groups()
                # Recursive calls are functions of their own there (`sort'2`).
                if name is not None:
                    names[number] = re.sub(r"'\d+$", "", name.strip())
                if which == "fn":
                    function = names[number]
                else:
                    called = names[number]
            elif line.startswith("calls="):
                next_is_call = True
            elif line[:1] in "+-*0123456789" and len(words := line.split()) == 2:
                if next_is_call:
                    profile.within[called][function] += int(words[1])
                else:
                    profile.own[function] += int(words[1])
                next_is_call = False
    return profile


def count(command: list[str], scratch: Path, limit_s: float) -> Profile:
    """One thread's work of a command under callgrind."""
    into = scratch / "callgrind.out"
    callgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={into}"]
    if shutil.which(callgrind[0]) is None:
        raise measure.Failed("valgrind is not there")
    measure.run_apart([*callgrind, *command], scratch / "printed", scratch, limit_s)
    return read(into)


def copied(run: Path, into: Path) -> Path:
    """A run without its index, so that the one that is profiled is made here."""
    shutil.rmtree(into, ignore_errors=True)
    shutil.copytree(run, into, ignore=shutil.ignore_patterns(".weft"))
    return into


def known_of(weft: Path, run: Path) -> tuple[int, str]:
    """How many events a run has, and the command that it recorded."""
    info = json.loads(measure.run([str(weft), "info", "--json", str(run)]).output)
    # Of traces that are no run there is a list of files.
    if not isinstance(info, dict) or not info.get("events"):
        raise measure.Failed(f"{run}: no run of our own with events")
    return info["events"], shlex.join((info.get("manifest") or {}).get("command") or [])


def profiles(weft: Path, run: Path, scratch: Path, limit_s: float) -> dict[str, Profile]:
    """Of what is asked, in the order of the table; the index that the first one makes is the second one's."""
    one = ["--threads", "1", str(run)]
    asked = {
        "index, cold": ["index", *one],
        "posix report, warm": ["report", "--preset", "posix", "--time", "1s", *one],
    }
    return {what: count([str(weft), *words], scratch, limit_s) for what, words in asked.items()}


def table_of(found: dict[str, Profile], events: int) -> str:
    """Instructions per event and their share, by group; groups in which nothing happens in any profile are left out."""
    sums = {what: profile.grouped() for what, profile in found.items()}
    lines = []
    for group in (*GROUPS, OTHER):
        costs = [(sums[what].get(group, 0.0), profile.total) for what, profile in found.items()]
        if any(round(cost / events) for cost, _ in costs):
            cells = [cell for cost, total in costs for cell in (f"{cost / events:,.0f}", f"{100 * cost / total:.1f} %")]
            lines.append((costs[0][0], [group, *cells, GROUPS[group][1] if group in GROUPS else "start of the process, printing, the rest"]))
    # The most of the first profile first; what is left over stays the last.
    ordered = [line for _, line in sorted(lines, key=lambda item: (item[1][0] == OTHER, -item[0]))]
    whole = [cell for profile in found.values() for cell in (f"{profile.total / events:,.0f}", "100 %")]
    heading = ["instructions per event", *(cell for what in found for cell in (what, "share")), "what it is"]
    return padded(heading, [*ordered, ["all", *whole, ""]], 1)


def notes_on(found: dict[str, Profile]) -> list[str]:
    notes = []
    for what, profile in found.items():
        listed = ", ".join(f"`{shortened(name)}` {100 * share:.1f} %" for name, share in profile.largest(6))
        notes.append(f"{what}, the largest functions: {listed}")
    return notes


def shortened(name: str) -> str:
    """The last two parts of a path, without generic arguments; of `<Type as Trait>::function` the type and the function."""
    name = re.sub(r"^<(&?(?:mut )?)([\w:]+).*>::", r"\2::", name)
    previous = None
    while previous != name:
        previous, name = name, re.sub(r"<[^<>]*>", "", name)
    return "::".join(name.split("::")[-2:])


def report(found: dict[str, Profile], events: int, metadata: dict[str, str]) -> str:
    heading = "".join(f"- {name}: {value}\n" for name, value in metadata.items())
    return "\n".join([heading, table_of(found, events), "".join(f"- {note}\n" for note in notes_on(found))])


def as_json(found: dict[str, Profile], events: int, metadata: dict[str, str]) -> str:
    """All functions, with their own instructions and their group."""
    listed = {
        what: {
            "instructions": profile.total,
            "groups": profile.grouped(),
            "functions": [
                {"name": name, "own": cost, "group": group_of(name)} for name, cost in sorted(profile.own.items(), key=lambda item: -item[1])
            ],
        }
        for what, profile in found.items()
    }
    return json.dumps({"machine": metadata, "events": events, "profiles": listed}, indent=1) + "\n"
