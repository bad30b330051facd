"""Annotate Python programs: their spans, instants and counters go into the same trace as their I/O calls.

::

    from weftline import trace, span, counter

    @trace(args=["path"])
    def load(path):
        with span("decode", codec="png") as decode:
            decode.update(pixels=1024)
        counter("queue", length=3)

Run the program under ``weft run -- python program.py``, or call :func:`start`. When nothing is recorded, an annotation costs tens of
nanoseconds. Tracing never raises an exception in the program.

:func:`open` reads a run; only then :mod:`weftline.analysis` is loaded.
"""

from __future__ import annotations

import os as _os
from typing import TYPE_CHECKING

from . import _native, ai
from ._native import Error, counter, instant, is_on, meta
from ._session import configure, join as _join, start, stop
from ._tracing import span, trace

if TYPE_CHECKING:
    from collections.abc import Iterable as _Iterable, Sequence as _Sequence
    from typing import Optional as _Optional, Union as _Union

    from .analysis import Path as _Path, Progress as _Progress, Run as _Run

# Without `open`: `from weftline import *` must not hide Python's own.
__all__ = [
    "Error",
    "__version__",
    "ai",
    "configure",
    "counter",
    "instant",
    "is_on",
    "meta",
    "span",
    "start",
    "stop",
    "trace",
]

__version__: str = _native.VERSION

_native.set_home(_os.path.dirname(_os.path.abspath(__file__)))
_join()


def open(
    path: _Union[_Path, _Iterable[_Path]],
    *,
    groups: _Optional[_Sequence[str]] = None,
    index: bool = True,
    threads: _Optional[int] = None,
    progress: _Union[_Progress, bool, None] = None,
) -> _Run:
    """Opens a run to analyse it: a directory, a trace file, a glob, or several of them. See :func:`weftline.analysis.open`."""
    from . import analysis

    return analysis.open(path, groups=groups, index=index, threads=threads, progress=progress)
