"""Compares `weft report`, `weft query` and `weftline.open` with the reference analysis of oracle.py, cell by cell.

    make build sql test-package && target/venv-package/bin/python3 tools/oracle/compare.py [TRACE…]

Without a name: every trace of the tree, and with --golden every trace below a directory that is not part of it (../shared/golden by default).
It fails if that directory does not exist, unless --without-golden is given. --ask names the interfaces (report, query, python).

expected_failures.tsv holds the cells in which the product is known to be wrong: trace, interface, section, row, column, reason. The first five may
have the wildcards of a shell. A cell that such a line matches and that is right fails the comparison too: delete the line.
"""

import argparse
import csv
import fnmatch
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from functools import partial
from pathlib import Path

import oracle
import views

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
EXPECTED = HERE / "expected_failures.tsv"
GOLDEN = ROOT.parent / "shared/golden"
WEFT = os.environ.get("WEFT_BIN", str(ROOT / "target/release/weft"))
SUFFIXES = (".pfw", ".pfw.gz", ".json", ".json.gz")
# A file is a trace of its own, a directory is one run.
TREE = ("crates/*/tests/fixtures/**/*.pfw", "crates/*/tests/fixtures/**/*.json", "crates/**/golden/*/trace", "tools/oracle/traces/*")
# Seconds as floating point are right within the last nanosecond; means, deviations and shares, which are floating point in both, nearly so.
NANOSECOND = 1
RELATIVE = 1e-9
# Sections in which an interface has more columns than the loop, or fewer.
PLAIN = {"job", "operations", "files", "processes", "ranks"}


def tree():
    """The traces of the tree, by name."""
    found = {}
    for pattern in TREE:
        paths = [path for path in ROOT.glob(pattern) if path.is_dir() or path.name.endswith(SUFFIXES)]
        assert paths, f"no trace is {pattern}"
        found.update({str(path.relative_to(ROOT)): path for path in paths})
    return found


def golden(directory):
    """Directories below another one that hold pfw files, by name."""
    files = [path for suffix in (".pfw", ".pfw.gz") for path in directory.rglob("*" + suffix)]
    return {f"golden/{path.parent.relative_to(directory)}": path.parent for path in files}


def files_of(trace):
    return [path for path in sorted(trace.iterdir()) if path.name.endswith(SUFFIXES)] if trace.is_dir() else [trace]


# ---- what the product says: interface → section → row → column → number


def ns(seconds):
    return None if seconds is None else round(seconds * 1e9)


def of_report(report):
    """The cells of `weft report --json`. Its events are spans."""
    job, tables = report["job"], report["sections"]
    said = {name: job[name] for name in ("time_ns", "processes", "hosts", "read_bytes", "written_bytes")}
    traffic = lambda row: {"calls": row["calls"], "read_bytes": row["read_bytes"], "written_bytes": row["written_bytes"], "time_ns": ns(row["time_sum"])}
    operations = {
        f"{row['cat']} {row['name']}": {
            "count": row["count"], "time_ns": ns(row["time_sum"]), "min_ns": ns(row["time_min"]), "max_ns": ns(row["time_max"]), "bytes": row["size"],
        }
        for row in tables.get("operations", [])
    }  # fmt: skip
    cells = {
        "job": {"": {**said, "spans": job["events"], "damage": job["traces"]["flaws"]}},
        "operations": operations,
        "files": {row["file_name"]: traffic(row) for row in tables.get("top_files", [])},
    }
    # A job of one process has no such table.
    if "top_processes" in tables:
        cells["processes"] = {row["process"]: traffic(row) for row in tables["top_processes"] if row["calls"]}
    return cells


def of_table(rows, units, *keys):
    """The cells of a table: what is measured in seconds is `_ns` here. Samples of hosts stand beside a view by time and are no part of it."""
    wanted = {name: unit for name, unit in units.items() if name not in keys and not name.startswith("sys_")}
    columns = {name: (name + "_ns", 1e9) if unit == "s" else (name, 1) for name, unit in wanted.items()}
    cell = lambda value, factor: value if factor == 1 else value * factor
    return {
        "|".join(str(row[key]) for key in keys): {
            name: cell(row[column], factor) for column, (name, factor) in columns.items() if isinstance(row[column], (int, float))
        }
        for row in rows
    }  # fmt: skip


def ask_report(run, width):
    asked = [word for view in views.VIEWS for word in ("--view", view)]
    command = [WEFT, "report", "--json", "--no-findings", "--top", "1000000", "--time", f"{width // 1000}us", *asked, str(run)]
    report = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    said = of_report(report)
    units = {key: {column["name"]: column["unit"] for column in columns} for key, columns in report["columns"].items()}
    for view in views.VIEWS:
        key = f"flat_{view}"
        said[f"flat {view}"] = of_table(report["sections"][key], units[key], view)
    said["layers"] = of_table(report["sections"]["layers"], units["layers"], "layer")
    return said


QUERIES = {
    "job": """SELECT '' AS row, (SELECT count(*) FROM events) AS events, (SELECT count(*) FROM spans) AS spans,
        (SELECT max(end_ns) - min(start_ns) FROM spans) AS time_ns, (SELECT coalesce(sum(count), 0) FROM damage) AS damage,
        (SELECT count(*) FROM processes WHERE events > 0) AS processes,
        (SELECT count(*) FROM hosts WHERE processes > 0) AS hosts,
        (SELECT coalesce(sum(read_bytes), 0) FROM processes) AS read_bytes, (SELECT coalesce(sum(write_bytes), 0) FROM processes) AS written_bytes""",
    "operations": """SELECT lower(cat) || ' ' || name AS row, count(*) AS count, sum(dur_ns) AS time_ns, min(dur_ns) AS min_ns, max(dur_ns) AS max_ns
        FROM spans GROUP BY row""",
    "files": "SELECT path AS row, io_calls AS calls, read_bytes, write_bytes AS written_bytes, io_ns AS time_ns FROM files WHERE io_calls > 0",
    "processes": "SELECT label AS row, io_calls AS calls, read_bytes, write_bytes AS written_bytes, io_ns AS time_ns FROM processes WHERE io_calls > 0",
    "ranks": "SELECT label AS row, rank FROM processes WHERE events > 0",
}


def ask_query(run, width):
    said = {}
    for section, query in QUERIES.items():
        command = [WEFT, "query", "--format", "json", str(run), query]
        rows = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout or "[]")
        said[section] = {row.pop("row"): row for row in rows}
    return said


def ask_python(run, width):
    """Job and operations as the report of `weftline.open` has them, what its events add up to, views of single layers and of all categories."""
    import pyarrow
    import weftline

    opened = weftline.open(str(run), progress=False)
    said = {section: rows for section, rows in of_report(json.loads(opened.report().to_json())).items() if section in ("job", "operations")}
    events = pyarrow.table(opened.events(columns=["ph", "ts_ns", "dur_ns", "path", "ret"]))
    said["job"][""]["events"] = events.num_rows
    table = lambda found, *keys: of_table(found.rows(), found.units, *keys) if len(found) else {}
    for view in ("time_range", "file_pattern", "rank", "step"):
        said[f"layer {view}"] = table(opened.view(view, preset="posix", layer="posix", time=f"{width}ns"), view)
    for view in ("time_range", "proc_name"):
        said[f"auto {view}"] = table(opened.view(view, preset="auto", time=f"{width}ns"), view)
    for keys in (["time_range"], ["epoch", "file_name"]):
        kinds = ("cat", "io_cat", "func_name")
        said["metrics " + " ".join(keys)] = table(opened.metrics(keys, time=f"{width}ns"), *sorted([*keys, "proc_name"]), *kinds)
    said["profiles"] = table(opened.profiles(time=f"{width}ns"), *views.PROFILE_KEYS)
    return said


ASK = {"report": ask_report, "query": ask_query, "python": ask_python}


class Truth:
    """What the loop says, by section. SQL has all spans and no totals; reports and views leave some out."""

    def __init__(self, trace):
        self.trace = trace
        self.width = views.width_of(trace)
        self.known = {}

    def of(self, what, make):
        if what not in self.known:
            self.known[what] = make()
        return self.known[what]

    def section(self, interface, name):
        kept = interface != "query"
        plain = self.of(kept, lambda: oracle.sections(self.trace, kept, kept))
        if name in plain:
            return plain[name]
        kind, *keys = name.split()
        preset = {"layer": "posix", "auto": "auto"}.get(kind)
        of = self.of(preset, lambda: views.Views(self.trace, self.width, preset))
        return {
            "flat": lambda: of.flat(*keys),
            "auto": lambda: of.flat(*keys),
            "layer": lambda: of.of_layer(*keys, "posix"),
            "metrics": lambda: of.metrics(keys),
            "profiles": of.profiles,
            "layers": of.summary,
        }[kind]()


# ---- the comparison


def cells(said, truth):
    """Pairs of numbers of all sections that both have: (section, row, column) → (product, loop). A row that only one has is missing in the other. Of views
    every column counts that either has, unless the loop says that it does not know."""
    found = {}
    for section in said:
        right_rows = truth(section)
        is_view = section not in PLAIN
        for row in said[section].keys() | right_rows.keys():
            ours, right = said[section].get(row), right_rows.get(row)
            one_sided = is_view or ours is None or right is None
            columns = (ours or {}).keys() | (right or {}).keys() if one_sided else ours.keys() & right.keys()
            for column in columns:
                pair = (ours and ours.get(column), right and right.get(column))
                if pair != (None, None) and pair[1] is not views.UNKNOWN:
                    found[section, row, column] = pair
    return found


def same(ours, right, column):
    if ours is None or right is None:
        return ours is right
    if isinstance(right, float):
        return abs(ours - right) <= RELATIVE * abs(right)
    return abs(ours - right) <= (NANOSECOND if column.endswith("_ns") else 0)


class Expected:
    """The lines of expected_failures.tsv, and which of them were met."""

    def __init__(self, path=EXPECTED):
        with open(path, encoding="utf-8", newline="") as file:
            rows = csv.DictReader((line for line in file if not line.startswith("#")), delimiter="\t", quoting=csv.QUOTE_NONE)
            self.lines = [tuple(row[name] for name in ("trace", "interface", "section", "row", "column")) for row in rows]
        self.met = set()

    def matches(self, cell):
        """Whether a cell is expected to be wrong."""
        lines = [line for line in self.lines if all(fnmatch.fnmatchcase(have, want) for have, want in zip(cell, line))]
        self.met.update(lines)
        return bool(lines)

    def unmet(self, traces, interfaces):
        """Lines about what was compared that no cell matched."""
        about = lambda line: any(fnmatch.fnmatchcase(name, line[0]) for name in traces) and any(fnmatch.fnmatchcase(one, line[1]) for one in interfaces)
        return [line for line in self.lines if line not in self.met and about(line)]


def compare(name, trace, interfaces, expected, ask=ASK):
    """The complaints about one trace, and how many cells were compared."""
    truth, complaints, count = Truth(oracle.Trace(files_of(trace))), [], 0
    with tempfile.TemporaryDirectory() as directory:
        # An index must not be written into the tree.
        run = Path(directory) / trace.name
        shutil.copytree(trace, run) if trace.is_dir() else shutil.copy(trace, run)
        for interface in interfaces:
            said = ask[interface](run, truth.width)
            for (section, row, column), (ours, right) in sorted(cells(said, partial(truth.section, interface)).items()):
                cell = (name, interface, section, row, column)
                count += 1
                wrong, known = not same(ours, right, column), expected.matches(cell)
                if wrong and not known:
                    complaints.append("\t".join(cell) + f"\tis {ours}, the loop says {right}")
                elif known and not wrong:
                    complaints.append("\t".join(cell) + f"\tis right ({ours}): delete its line from {EXPECTED.name}")
    return complaints, count


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--golden", nargs="?", type=Path, const=GOLDEN, help="traces below this directory instead of those of the tree")
    parser.add_argument("--without-golden", action="store_true", help="a directory of golden traces that does not exist is no failure")
    parser.add_argument("--ask", nargs="+", choices=sorted(ASK), default=sorted(ASK), help="the interfaces to compare")
    options = parser.parse_args(arguments)
    if options.golden and not options.golden.is_dir():
        print(f"oracle: the golden traces are not there: {options.golden}", file=sys.stderr)
        return 0 if options.without_golden else 1
    traces = {str(path): path for path in options.traces} or (golden(options.golden) if options.golden else tree())
    expected, failures, count = Expected(), [], 0
    wrong = defaultdict(int)
    for name, trace in sorted(traces.items()):
        complaints, compared = compare(name, trace, options.ask, expected)
        failures += complaints
        count += compared
        wrong[name] += len(complaints)
    failures += ["\t".join(line) + f"\tmatches no cell: delete its line from {EXPECTED.name}" for line in expected.unmet(traces, options.ask)]
    print("\n".join(failures) or f"oracle: {count:,} cells of {len(traces)} traces are as the loop says, or known to be wrong")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
