"""Ids of async events with a separate beginning and end, perhaps in different functions on different threads.

What belongs together is known by its scope, or by its name where it has none. The first beginning gets the id that
follows from that text, so that another process, or a program in another language, can end it. While it is open, further
ones of the same scope get ids of their own. An end closes the newest beginning of its own thread; where that has none,
the oldest of any.
"""

import os
import threading
from collections import deque
from typing import Deque, Dict, Tuple

import weftline._native as _native

# Beginnings that are remembered for each scope. One that never ends must not cost memory for ever.
REMEMBERED = 4096

_open: Dict[str, Deque[Tuple[int, int]]] = {}
_lock = threading.Lock()


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def begins(key: str) -> int:
    with _lock:
        opened = _open.setdefault(key, deque(maxlen=REMEMBERED))
        id = _native.new_id() if opened else _native.id_of(key)
        opened.append((threading.get_ident(), id))
        return int(id)


def ends(key: str) -> int:
    with _lock:
        opened = _open.get(key)
        if not opened:
            return int(_native.id_of(key))
        thread = threading.get_ident()
        pair = next((pair for pair in reversed(opened) if pair[0] == thread), opened[0])
        opened.remove(pair)
        if not opened:
            del _open[key]
        return pair[1]


def goes_on(key: str) -> int:
    """The id of an instant in between."""
    with _lock:
        opened = _open.get(key)
        if not opened:
            return int(_native.id_of(key))
        thread = threading.get_ident()
        return next((pair for pair in reversed(opened) if pair[0] == thread), opened[0])[1]
