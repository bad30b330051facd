"""Recording without ``weft run``."""

from __future__ import annotations

import os
import sys
import time
from typing import Optional, Union

from . import _native

# Set while this process records itself, for those that it starts: whoever imports this package there records into the same run.
# `1` or `0` for calls of the C library, a colon, the run.
VARIABLE = "WEFT_SESSION"


def start(directory: Union[str, os.PathLike[str], None] = None, *, io: bool = True) -> bool:
    """Records this process and its children from now on: annotations and, with ``io``, calls of the C library.

    ``directory`` becomes the run; by default it is a new one below ``weft-runs``, named as by ``weft run``. Under ``weft run``
    everything is recorded anyway, and this does nothing. Returns whether something is recorded now; if not, the reason is
    printed on stderr, and the program continues.
    """
    place = os.path.abspath(directory if directory is not None else _new_run())
    try:
        begun = _native.begin("run", directory=place, io=io)
    except _native.Error as error:
        print(f"weftline: nothing is recorded: {error}", file=sys.stderr)
        return False
    if begun == "started":
        os.environ[VARIABLE] = f"{int(io)}:{place}"
    return _native.is_on()


def join() -> None:
    """Records into the run of the parent process, if that still records. Forked children do so anyway."""
    io, _, place = os.environ.get(VARIABLE, "").partition(":")
    if place and not _native.is_on() and _is_open(place):
        start(place, io=io == "1")


def _is_open(run: str) -> bool:
    try:
        return any(name.endswith(".live") for name in os.listdir(os.path.join(run, "run.d")))
    except OSError:
        return False


def _new_run() -> str:
    program = os.path.basename(sys.argv[0]) if sys.argv and sys.argv[0] not in ("", "-c", "-m") else "python"
    return os.path.join("weft-runs", f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{program}-{os.urandom(2).hex()}")


def stop() -> None:
    """Stops the recording of :func:`start` and writes the run. The end of the process does the same."""
    os.environ.pop(VARIABLE, None)
    _native.finish()


def configure(*, cpu_mem: Optional[bool] = None) -> None:
    """``cpu_mem``: all spans of this process also record their CPU time, and the memory at both ends."""
    if cpu_mem is not None:
        _native.set_usage(bool(cpu_mem))
