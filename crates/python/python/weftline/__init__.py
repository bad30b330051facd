"""Annotate Python programs: what they tell of themselves lands in the same trace as the I/O calls they make.

::

    from weftline import trace, span, counter

    @trace(args=["path"])
    def load(path):
        with span("decode", codec="png") as decode:
            decode.update(pixels=1024)
        counter("queue", length=3)

Run the program under ``weft run -- python program.py``, or call :func:`start`. When nothing is recorded, an annotation costs tens of
nanoseconds. Nothing here raises into the program because of tracing.
"""

import os as _os

from . import _native, ai
from ._native import Error, counter, instant, is_on, meta
from ._session import configure, join as _join, start, stop
from ._tracing import span, trace

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
