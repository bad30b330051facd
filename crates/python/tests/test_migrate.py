"""``docs/migrate-dfanalyzer.md``: commands of its tables succeed on DFTracer's traces, expressions have values, columns are in our tables."""

import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import golden
import pytest
import support
from test_analysis_sql import real

import weftline
from weftline import analysis

DOCUMENT = golden.GOLDEN.parents[2] / "docs/migrate-dfanalyzer.md"
# Tables whose second column names columns of ours, and where those are.
COLUMNS = {"High-level metrics", "Columns of flat views", "Profiles", "System metrics"}
# In the preset `dlio`: what the placeholders of the document may stand for. The reader works in the background and has a parent.
PREFIXES = ("posix", "posix_read", "reader_posix", "reader")
LAYER, BOUNDARY = "reader", "app"
RULES = """
rules:
  - id: many-calls
    when: count > 1
"""


@dataclass
class Row:
    heading: str
    theirs: str
    ours: str
    remark: str

    def codes(self) -> list[str]:
        return re.findall(r"`([^`]+)`", self.ours)


def rows() -> list[Row]:
    found: list[Row] = []
    heading, in_table = "", False
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("## "):
            heading = line[3:]
        if line.startswith("|---"):
            in_table = True
        elif not line.startswith("| "):
            in_table = False
        elif in_table:
            cells = [cell.strip(" |") for cell in line[1:].split(" | ")]
            found.append(Row(heading, cells[0], cells[1], cells[2] if len(cells) > 2 else ""))
    return found


ROWS = rows()
ACTIONS = [(row, code) for row in ROWS if row.heading not in COLUMNS | {"Presets and their layers"} for code in row.codes()]
COMMANDS = [code for _, code in ACTIONS if code.startswith("weft ")]
EXPRESSIONS = [code for _, code in ACTIONS if code.startswith(("run.", "weftline."))]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """RUN, GROUPED and RULES of the document."""
    directory = tmp_path_factory.mktemp("migrate")
    golden.trace("posix_small", directory).rename(directory / "RUN")
    grouped = directory / "GROUPED"
    golden.trace("posix_small", grouped).rename(grouped / "part")
    (grouped / "manifest.json").write_text('{"groups": {"a": "part"}}')
    (directory / "RULES").write_text(RULES)
    return directory


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, analysis.Run]:
    directory = tmp_path_factory.mktemp("columns")
    return {name: weftline.open(golden.trace(name, directory)) for name in ("posix_small", "dlio", "hybrid")}


def test_every_row_says_what_to_do_or_why_not() -> None:
    assert len(ROWS) > 100
    for row in ROWS:
        assert row.codes() or (row.ours == "—" and row.remark), row
    unknown = [code for _, code in ACTIONS if code not in COMMANDS + EXPRESSIONS]
    assert not unknown, "neither a command nor an expression"


@pytest.mark.parametrize("command", sorted(set(COMMANDS)))
def test_commands(command: str, place: Path, tmp_path: Path) -> None:
    words = [str(place / word) if word in ("RUN", "GROUPED", "RULES") else word for word in shlex.split(command)]
    environment = support.environment()
    if words[1] == "query":
        program = real()
        if program is None:
            pytest.skip("weft-sql is not built; `make sql` does that, and WEFT_SQL names another")
        words = [program, *words[2:]]
    else:
        words[0] = support.weft()
    done = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout or list(tmp_path.iterdir())


@pytest.mark.parametrize("expression", sorted(set(EXPRESSIONS)))
def test_expressions(expression: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    value = eval(expression, {"weftline": weftline, "run": weftline.open("RUN")})
    assert value is not None
    if isinstance(value, analysis.Stream):
        assert value.to_arrow().num_rows > 0


def columns(heading: str, runs: dict[str, analysis.Run]) -> set[str]:
    table: Any = {
        "High-level metrics": lambda: runs["dlio"].metrics(views=["time_range", "file_name"]),
        "Columns of flat views": lambda: runs["dlio"].view("time_range", preset="dlio"),
        "Profiles": lambda: runs["hybrid"].profiles(),
        "System metrics": lambda: runs["hybrid"].system(),
    }[heading]
    return set(table().columns)


def meant(name: str) -> list[str]:
    """A name of the document with its placeholders filled in."""
    name = name.replace("<layer>", LAYER).replace("<boundary>", BOUNDARY)
    return [name.replace("<p>", prefix) for prefix in PREFIXES] if "<p>" in name else [name]


@pytest.mark.parametrize("heading", sorted(COLUMNS))
def test_columns_are_in_our_tables(heading: str, runs: dict[str, analysis.Run]) -> None:
    ours = columns(heading, runs)
    named = {name for row in ROWS if row.heading == heading for code in row.codes() for name in meant(code)}
    assert named and named <= ours, sorted(named - ours)


@pytest.mark.parametrize(("heading", "table"), [("Profiles", "profiles"), ("System metrics", "system_metrics")])
def test_all_columns_of_theirs_are_named(heading: str, table: str) -> None:
    theirs = {row["column"] for row in golden.table(f"hybrid_v1/current/{table}.dtypes")}
    named = {name for row in ROWS if row.heading == heading for name in re.findall(r"`([^`]+)`", row.theirs)}
    assert theirs <= named, sorted(theirs - named)


def test_all_our_flat_columns_are_named(runs: dict[str, analysis.Run]) -> None:
    """What the document does not tell of, a user cannot know to be new."""
    named = {name for row in ROWS if row.heading == "Columns of flat views" for code in row.codes() for name in meant(code)}
    reader = {name for name in columns("Columns of flat views", runs) if re.fullmatch(rf"([ou]_)?{LAYER}_(?!posix|open|close|preprocess|sample).*", name)}
    sizes = {name for name in reader if "_size_bin_" in name}
    assert reader - sizes <= named, sorted(reader - sizes - named)


def test_all_views_and_presets_are_named(runs: dict[str, analysis.Run]) -> None:
    text = DOCUMENT.read_text()
    assert all(f'run.view("{view}")' in text for view in analysis.views())
    layers = {row.theirs.strip("`"): row.codes() for row in ROWS if row.heading == "Presets and their layers"}
    assert sorted(layers) == sorted(analysis.presets())
    for preset, named in layers.items():
        report = runs["dlio"].report(preset=preset)
        made = report.sections["layers"]["layer"]
        assert set(named) <= set(made), preset
        assert preset == "auto" or named == made
