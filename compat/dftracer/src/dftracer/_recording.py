"""The one recorder of this process, as the rest of this package uses it: begin and end, clock, events.

Under ``weft run`` the recorder is on from the first instruction, and everything joins it without any variable.
Otherwise ``DFTRACER_ENABLE`` and its companions say whether and where to record; Weftline's native module reads them.
"""

import os
import sys
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

import weftline._native as _native

SPAN: int = _native.SPAN
ASYNC_SPAN: int = _native.ASYNC_SPAN
META: int = _native.META

# An explicit "no" applies under `weft run` too: then calls of the C library are recorded, annotations are not.
REFUSED = os.environ.get("DFTRACER_ENABLE", "").strip().lower() in ("0", "false", "no", "off")


def _never() -> int:
    return 0


def _nothing(*_args: Any, **_kwargs: Any) -> None:
    return None


# The recorder's clock, 0 when nothing is recorded: the cheapest way to ask.
now: Callable[[], int] = _never if REFUSED else _native.now
emit: Callable[..., None] = _nothing if REFUSED else _native.emit
id_of: Callable[[str], int] = _native.id_of
new_id: Callable[[], int] = _native.new_id

# Whether this process's recording was begun here and not by `weft run` or by Weftline's own interface.
_own = False
_warned = False
_lock = threading.Lock()
os.register_at_fork(after_in_child=lambda: globals().update(_lock=threading.Lock()))


def options() -> Dict[str, Any]:
    """The settings of ``DFTRACER_*``, parsed."""
    return dict(_native.dftracer_options())


def wanted() -> bool:
    """Whether events are recorded now, or would be after ``initialize_log``."""
    if REFUSED:
        return False
    return bool(_native.is_on()) or bool(options()["enable"])


def begin(log_file: Optional[str] = None, data_dir: Optional[str] = None, process_id: int = -1) -> None:
    """Starts recording, if it is enabled and not started yet. Prints one sentence if that fails."""
    global _own, _warned
    with _lock:
        if _native.is_on():
            return
        if not wanted():
            # What is recorded tells this itself; what is switched off by a slip of the pen would never be noticed.
            if not _warned:
                _warned = True
                for sentence in options()["warnings"]:
                    print(f"weftline: {sentence}", file=sys.stderr)
            return
        given: Dict[str, Any] = {}
        if log_file:
            given["log_file"] = os.fspath(log_file)
        if data_dir:
            given["data_dir"] = os.fspath(data_dir)
        if isinstance(process_id, int) and process_id != -1:
            given["process_id"] = process_id
        try:
            _own = _native.begin("dftracer", **given) == "started"
        except Exception as error:
            print(f"weftline: nothing is recorded: {error}", file=sys.stderr)
            return
    _WALL.mark()


def begin_at_start() -> None:
    """Starts recording if a preloaded library would have."""
    if str(options()["init"]).upper() in ("PRELOAD", "HYBRID"):
        begin()


def finish() -> None:
    """Stops the recording of :func:`begin` and writes its file. Optional: the end of the process does the same."""
    global _own
    with _lock:
        if _own:
            _own = False
            _native.finish()


Clock = Callable[[], int]


def _together(outer: Clock, inner: Clock) -> Tuple[int, int]:
    """Two clocks at the same instant; the closest of three tries, since a preemption in between would skew them."""
    readings: List[Tuple[int, int, int]] = []
    for _ in range(3):
        before = outer()
        value = inner()
        spread = outer() - before
        readings.append((spread, before + spread // 2, value))
    _, first, second = min(readings)
    return first, second


class _Wall:
    """Maps the wall clock, which programs hand to ``log_event``, to the recorder's clock.

    The wall clock is read once. What follows is counted by the monotonic clock, as the recorder's own times are, so that nothing moves when somebody
    sets the clock while the program runs.

    The recorder's ticks have no unit here, so the map is the line through two pairs of readings: the first one and one
    of now. What lies between them is placed within the error of a reading, which is below a microsecond. Of what lies
    outside, as the times of a simulation, the line says little and the clock may know nothing at all: it is told as it
    was given.
    """

    # How far behind the last reading a time may lie that was taken from the same clock.
    AHEAD_NS = 1_000_000

    def __init__(self) -> None:
        monotonic, wall = _together(time.monotonic_ns, time.time_ns)
        self._ahead = wall - monotonic
        self._first: Optional[Tuple[int, int]] = None

    def now_ns(self) -> int:
        return time.monotonic_ns() + self._ahead

    def mark(self) -> Optional[Tuple[int, int]]:
        """Ticks and wall clock at the same instant; nothing where nothing is recorded."""
        wall, ticks = _together(self.now_ns, now)
        if not ticks:
            return None
        if self._first is None:
            self._first = (ticks, wall)
        return ticks, wall

    def place(self, start_ns: int, end_ns: int) -> Tuple[int, int, Optional[Tuple[int, int]]]:
        """The recorder's clock at two wall times, and these times themselves if they are to be told instead."""
        limit = (1 << 63) - 1
        given = (min(max(-limit, start_ns), limit), min(max(-limit, end_ns), limit))
        last = self.mark()
        if last is None or self._first is None:
            return 0, 0, given
        (ticks0, wall0), (ticks1, wall1) = self._first, last
        if wall1 <= wall0:
            # The first reading is this one: there is no line yet, only a point.
            return ticks1, ticks1, given
        start, end = (ticks1 - (wall1 - wall) * (ticks1 - ticks0) // (wall1 - wall0) for wall in (start_ns, end_ns))
        inside = wall0 <= start_ns and end_ns <= wall1 + self.AHEAD_NS
        return min(max(1, start), limit), min(max(1, end), limit), None if inside else given


_WALL = _Wall()
_WALL.mark()


def wall_us() -> int:
    """The wall clock in microseconds, which is DFTracer's time; 0 when nothing is recorded."""
    return _WALL.now_ns() // 1000 if now() else 0


def emit_at(
    name: str, category: str, start_ns: int, duration_ns: int, args: Optional[Dict[str, Any]], kind: int = SPAN
) -> None:
    """A span whose times the program took from the wall clock."""
    if now():
        start, end, at = _WALL.place(int(start_ns), int(start_ns) + max(0, int(duration_ns)))
        emit(kind, name, category, start, end, new_id() if kind == ASYNC_SPAN else 0, args, at=at)


def emit_metadata(name: str, args: Dict[str, Any]) -> None:
    """Records metadata of the process, like DFTracer's metadata records."""
    at = now()
    if at:
        emit(META, name, "dftracer", at, at, 0, args)
