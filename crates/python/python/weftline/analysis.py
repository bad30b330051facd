"""Analyse runs: ``weftline.open(path)`` gives views, reports and events to notebooks and scripts.

::

    run = weftline.open("weft-runs/20261115T183012Z-train.py-7f3a")
    run.report()                                                    # as a page in a notebook; .text, .findings, .sections
    run.view("file_name", preset="posix").to_pandas()
    polars.DataFrame(run.events(columns=["name", "dur_ns"], where="cat = 'posix'"))
    run.sql("SELECT op, count(*) FROM io GROUP BY op").to_arrow()

A run is a directory of ``weft run``, or trace files of DFTracer, PerfFlowAspect or Chrome. The first query builds an index beside it; later
ones use it. Tables and streams have Arrow's ``__arrow_c_stream__``: pyarrow, pandas, Polars and DuckDB read them without copies.

Only this module loads ``weftline._analysis``, so traced programs do not load it.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import warnings
import time as _time
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any, Optional, TextIO, Union

from ._command import BINARY

try:
    from . import _analysis
except ImportError as error:
    raise ImportError(
        f"weftline is installed without its analysis module ({error}); install a wheel of weftline, or build one with `pip install .`"
    ) from error
from ._analysis import Error, Report, Stream, Table, event_columns, presets, views

__all__ = ["Error", "Report", "Run", "Stream", "Table", "event_columns", "open", "presets", "views"]

Path = Union[str, "os.PathLike[str]"]
# Seconds, or a text such as "250ms".
Time = Union[int, float, str, timedelta]
Progress = Callable[[str, int, int], object]


def open(
    path: Union[Path, Iterable[Path]],
    *,
    groups: Optional[Sequence[str]] = None,
    index: bool = True,
    threads: Optional[int] = None,
    progress: Union[Progress, bool, None] = None,
) -> Run:
    """Opens a run: a directory, a trace file, a glob, or several of them. Builds or updates its index.

    ``groups``: only these groups of a directory with a ``manifest.json``. ``index=False``: read the traces for every query and write
    nothing. ``threads``: by default one per processor. ``progress``: a function called with the task, the bytes done and the total bytes; by
    default a bar on stderr in a terminal or a notebook; ``False`` for none.
    """
    paths = [os.fspath(path)] if isinstance(path, (str, os.PathLike)) else [os.fspath(one) for one in path]
    for one in paths:
        _recover(one)
    return Run(_analysis.Run(paths, groups=list(groups or ()), index=index, threads=threads, progress=_listener(progress)))


class Run:
    """An opened run. Times are seconds since the start of its first span, or texts such as ``"250ms"``."""

    def __init__(self, opened: _analysis.Run) -> None:
        self._opened = opened

    def report(
        self,
        preset: Optional[str] = None,
        time: Optional[Time] = None,
        where: Optional[str] = None,
        from_: Optional[Time] = None,
        to: Optional[Time] = None,
        views: Sequence[str] = (),
    ) -> Report:
        """The report of ``weft report``: the job, its tables (``sections``), what to fix (``findings``). A notebook shows it as a page."""
        return self._opened.report(preset=preset, views=list(views), time=time, where=where, from_=from_, to=to)

    def view(
        self,
        view: str,
        preset: Optional[str] = None,
        time: Optional[Time] = None,
        layer: Optional[str] = None,
        where: Optional[str] = None,
        from_: Optional[Time] = None,
        to: Optional[Time] = None,
    ) -> Table:
        """One row per time bucket, process, file, host … (:func:`views` lists them), of one ``layer`` or of all layers side by side.

        ``time`` is the width of time buckets, one second by default; ``where`` a condition such as ``"path LIKE '/data/%'"``.
        """
        return self._opened.view(view, preset=preset, layer=layer, time=time, where=where, from_=from_, to=to)

    def metrics(self, views: Sequence[str] = ("time_range",), time: Optional[Time] = None, where: Optional[str] = None) -> Table:
        """Events grouped by process, by ``views``, and by category, operation and name, with sums; views are made from these."""
        keys = list(dict.fromkeys([*views, "proc_name"]))
        return self._opened.metrics(keys, time=time, where=where)

    def profiles(self, time: Optional[Time] = None, period: Optional[Time] = None) -> Table:
        """Totals of DFTracer's aggregation: many calls in one record. ``period``: the aggregation period, if the trace does not state it."""
        return self._opened.profiles(time=time, period=period)

    def system(self, time: Optional[Time] = None) -> Table:
        """Samples of hosts (processors, memory), one row per host and time bucket."""
        return self._opened.system(time=time)

    def events(
        self,
        columns: Optional[Sequence[str]] = None,
        where: Optional[str] = None,
        from_: Optional[Time] = None,
        to: Optional[Time] = None,
    ) -> Stream:
        """The events themselves, as a stream of Arrow batches. :func:`event_columns` lists the columns."""
        return self._opened.events(columns=None if columns is None else list(columns), where=where, from_=from_, to=to)

    def samples(
        self,
        where: Optional[str] = None,
        from_: Optional[Time] = None,
        to: Optional[Time] = None,
    ) -> Stream:
        """Samples of hosts and processes, one row per value, as a stream of Arrow batches.

        Columns: ``time_ns`` (when it was read), ``dur_ns`` (the interval that it covers), ``host``, ``process``, ``pid`` (0: the host), ``program``,
        ``category``, ``name`` (the counter: ``cpu``, ``vda`` …), ``metric``, ``value``, ``unit``, and ``type``: ``gauge`` (at that time), ``mean``
        (of the interval), ``delta`` (growth in the interval) or ``total``.
        """
        return self._opened.samples(where=where, from_=from_, to=to)

    def sql(self, query: str) -> Stream:
        """Runs a query in the program ``weft-sql``; ``docs/schema.md`` has the tables."""
        return self._opened.sql(_sql_program(), query)

    def info(self) -> dict[str, Any]:
        """Trace files and their damage, processes, times, categories, the index."""
        return self._opened.info()

    def __repr__(self) -> str:
        return repr(self._opened)


def _sql_program() -> str:
    """Where ``weft-sql`` is: named by $WEFT_SQL, beside this package's ``weft``, in the package ``weftline-sql``, beside a ``weft`` on PATH, on PATH."""
    given = os.environ.get("WEFT_SQL")
    if given:
        return given
    package = importlib.util.find_spec("weftline_sql")
    installed = shutil.which("weft")
    directories = [
        os.path.dirname(BINARY),
        *(os.path.join(place, "bin") for place in (package and package.submodule_search_locations or ())),
        *([os.path.dirname(os.path.realpath(installed))] if installed else []),
    ]
    for directory in directories:
        beside = os.path.join(directory, "weft-sql")
        if os.access(beside, os.X_OK):
            return beside
    found = shutil.which("weft-sql")
    if found is None:
        raise Error("weft-sql is not installed; `pip install weftline-sql` adds it, or set WEFT_SQL to its path")
    return found


def _recover(path: str) -> None:
    """Completes a run or collector that was killed, as every reading verb of ``weft`` does first."""
    if not os.path.isfile(os.path.join(path, "run.json")):
        return
    weft = BINARY if os.access(BINARY, os.X_OK) else shutil.which("weft")
    if weft:
        subprocess.run([weft, "recover", "--quiet", path], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=False)
    elif any(name.endswith(".samples.tail") for name in os.listdir(path)):
        warnings.warn(f"{path}: the last samples of a collector are not in its file yet; install weft, which adds them", stacklevel=3)


def _listener(progress: Union[Progress, bool, None]) -> Optional[Progress]:
    if callable(progress):
        return progress
    if progress is None:
        # The kernel of a notebook shows stderr, though it is no terminal.
        progress = sys.stderr is not None and (sys.stderr.isatty() or "ipykernel" in sys.modules)
    return _Bar(sys.stderr) if progress else None


class _Bar:
    """A progress line that is redrawn, and erased at the end. Short work shows none."""

    WIDTH = 30
    PATIENCE = 0.5

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._begun = _time.monotonic()
        self._drawn = 0

    def __call__(self, what: str, done: int, total: int) -> None:
        if done >= total:
            if self._drawn:
                self._write("")
            self._begun = _time.monotonic()
            return
        if _time.monotonic() - self._begun < self.PATIENCE:
            return
        filled = self.WIDTH * done // total
        self._write(f"{what} {'█' * filled}{'░' * (self.WIDTH - filled)} {done / 1e6:.0f} of {total / 1e6:.0f} MB")

    def _write(self, line: str) -> None:
        self._out.write("\r" + line.ljust(self._drawn) + ("" if line else "\r"))
        self._out.flush()
        self._drawn = len(line)
