"""``run.sql``: a stand-in for ``weft-sql`` shows what is asked and how answers and failures come back; the real one is asked where it is built."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Optional

import golden
import pytest
import support

import weftline
from weftline import analysis

STAND_IN = f"""#!{sys.executable}
import json, os, sys
import pyarrow
query = sys.argv[-1]
if query == "bad":
    sys.exit("weft-sql: there is no table bad; there are events, spans")
batch = pyarrow.record_batch({{"word": sys.argv[1:], "n": list(range(len(sys.argv) - 1))}})
with open(os.path.dirname(__file__) + "/asked", "a") as asked:
    asked.write(json.dumps(sys.argv[1:]) + "\\n")
out = pyarrow.ipc.new_stream(sys.stdout.buffer, batch.schema)
for _ in range(1000 if query == "long" else 2):
    out.write_batch(batch)
if query == "breaks":
    sys.stdout.buffer.flush()
    print("weft-sql: memory is exhausted", file=sys.stderr)
    os._exit(1)
out.close()
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "weft-sql"
    program.write_text(STAND_IN)
    program.chmod(0o755)
    monkeypatch.setenv("WEFT_SQL", str(program))
    return tmp_path / "asked"


def test_queries_are_asked_and_answered(stand_in: Path, tmp_path: Path) -> None:
    place = golden.trace("posix_small", tmp_path)
    answer = weftline.open(place, threads=3).sql("SELECT 1")
    assert answer.columns == ["word", "n"]
    expected = ["--format", "arrow", "--threads", "3", "--", str(place), "SELECT 1"]
    assert answer.to_arrow()["word"].to_pylist() == 2 * expected
    assert len(stand_in.read_text().splitlines()) == 1, "what was started is what is read"
    assert answer.to_polars().height == 14 and len(stand_in.read_text().splitlines()) == 2
    weftline.open(place, index=False).sql("SELECT 2").to_arrow()
    assert json.loads(stand_in.read_text().splitlines()[-1]) == ["--format", "arrow", "--no-index", "--", str(place), "SELECT 2"]


def test_failures_are_told(stand_in: Path, tmp_path: Path) -> None:
    run = weftline.open(golden.trace("posix_small", tmp_path))
    with pytest.raises(analysis.Error, match="^there is no table bad; there are events, spans$"):
        run.sql("bad")
    with pytest.raises(Exception, match="memory is exhausted"):
        run.sql("breaks").to_arrow()


def test_an_answer_that_nobody_reads_is_given_up(stand_in: Path, tmp_path: Path) -> None:
    run = weftline.open(golden.trace("posix_small", tmp_path))
    answer = run.sql("long")
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
    assert children
    del answer
    left = [child for child in children if Path(f"/proc/{child}").exists() and "weft-sql" in Path(f"/proc/{child}/cmdline").read_text()]
    assert not left


def test_without_weft_sql_one_sentence_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = weftline.open(golden.trace("posix_small", tmp_path))
    monkeypatch.delenv("WEFT_SQL", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(analysis, "BINARY", str(tmp_path / "weft"))
    with pytest.raises(analysis.Error, match="`pip install weftline-sql` adds it"):
        run.sql("SELECT 1")
    monkeypatch.setenv("WEFT_SQL", str(tmp_path / "nowhere"))
    with pytest.raises(analysis.Error, match="cannot start .*nowhere"):
        run.sql("SELECT 1")


# No memory is left for another thread, which std answers with a panic: room is bounded, and what the C library kept of ended threads is taken.
PANIC = """
import resource, sys, threading
import weftline
run = weftline.open(sys.argv[1])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (1 << 20), resource.RLIM_INFINITY))
threading.stack_size(1 << 20)
end = threading.Event()
try:
    while True:
        threading.Thread(target=end.wait, daemon=True).start()
except (RuntimeError, MemoryError):
    pass
try:
    run.sql("SELECT 1")
except BaseException as error:
    print(type(error).__name__, error)
end.set()
"""


def test_a_panic_is_an_exception(tmp_path: Path) -> None:
    place = golden.trace("posix_small", tmp_path)
    environment = {**os.environ, "WEFT_SQL": "/bin/true", "RUST_BACKTRACE": "0"}
    done = subprocess.run([sys.executable, "-c", PANIC, str(place)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0 and done.stdout.startswith("PanicException failed to spawn thread"), done


@pytest.mark.parametrize("place", ["package", "weftline_sql/bin", "beside weft", "PATH"])
def test_where_it_is_looked_for(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEFT_SQL", raising=False)
    monkeypatch.setattr(analysis, "BINARY", str(tmp_path / "package/weft"))
    directory = tmp_path / place.replace(" ", "-")
    directory.mkdir(parents=True)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("weft-sql", *(("weft",) if place in ("package", "beside weft") else ())):
        (directory / name).write_text("#!/bin/sh\n")
        (directory / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(directory if place in ("beside weft", "PATH") else tmp_path))
    assert analysis._sql_program() == str(directory / "weft-sql")


def real() -> Optional[str]:
    """The real one: named, on PATH, or built in this tree."""
    tree = [golden.GOLDEN.parents[2] / "target" / profile / "weft-sql" for profile in ("release", "sql")]
    beside = [Path(support.weft()).with_name("weft-sql"), *tree]
    found = [os.environ.get("WEFT_SQL"), shutil.which("weft-sql"), *(str(path) for path in beside if path.exists())]
    return next((path for path in found if path), None)


def test_kernels_and_sql_agree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = real()
    if program is None:
        pytest.skip("weft-sql is not built; `make sql` does that, and WEFT_SQL names another")
    monkeypatch.setenv("WEFT_SQL", program)
    run = weftline.open(golden.trace("posix_small", tmp_path))
    columns = ", ".join(f'"{name}"' for name in analysis.event_columns())
    ours = run.events().to_arrow().to_pylist()
    theirs = run.sql(f"SELECT {columns} FROM events").to_arrow().to_pylist()

    def key(row: dict[str, object]) -> str:
        return json.dumps(row, sort_keys=True)

    assert sorted(ours, key=key) == sorted(theirs, key=key)
    with pytest.raises(analysis.Error, match="nothing"):
        run.sql("SELECT x FROM nothing")
