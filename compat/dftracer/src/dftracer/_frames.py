"""The current events: the event that ``update`` adds to, and the values that all events of one source have.

In DFTracer one dictionary per ``dft_fn`` holds everything, so that values of one function show up in another, or in
another thread. Here a value that is added while a call or a ``with`` block of the source runs belongs to that event
alone, found through a context variable; a value that is added outside of any applies to all later events of the source.
"""

import threading
from contextvars import ContextVar
from typing import Any, Dict, List, Optional

from dftracer._recording import ASYNC_SPAN, SPAN, emit, new_id, now


class Frame:
    """A current event; `thread` is that of a block, and 0 for a call."""

    __slots__ = ("source", "own", "start", "outer", "thread", "over")

    def __init__(self, source: "Source", own: Optional[Dict[str, Any]] = None) -> None:
        self.source = source
        self.own = own
        self.start = 0
        self.outer = running()
        self.thread = 0
        self.over = False


current_frame: "ContextVar[Optional[Frame]]" = ContextVar("dftracer_frame", default=None)


def running() -> Optional[Frame]:
    """The innermost current event in this context; events that were ended from another context are skipped."""
    frame = current_frame.get()
    while frame is not None and frame.over:
        frame = frame.outer
    return frame


class Source:
    """The source of events of one category: a ``dft_fn``, or a node of ``ai``."""

    # Whether values can be added to the event under way.
    adds_to_running = True
    # Whether it can be switched on and off at any time.
    switches = False

    def __init__(self, category: str, enable: bool = True) -> None:
        self.category = str(category)
        self.given: Dict[str, Any] = {}
        self.switch = bool(enable)
        # Blocks that were entered and not left, of all threads.
        self.open: List[Frame] = []

    def enabled(self) -> bool:
        return self.switch

    def values(self) -> Dict[str, Any]:
        """What all events of this source have."""
        return self.given

    def extra(self) -> Dict[str, Any]:
        """A dictionary that always has what all events of this source have."""
        return self.given

    def frame(self) -> Optional[Frame]:
        """The innermost current event of this source."""
        frame = current_frame.get()
        while frame is not None and (frame.over or frame.source is not self):
            frame = frame.outer
        return frame

    def added(self) -> Dict[str, Any]:
        """The values of the current event; outside of any, of all later events."""
        frame = self.frame()
        return self.given if frame is None else frame.own or {}

    def add(self, values: Dict[str, Any]) -> None:
        """Tells that."""
        frame = self.frame()
        if frame is None:
            self.given.update(values)
        else:
            frame.own = {**(frame.own or {}), **values}

    def tell(
        self,
        kind: int,
        name: str,
        start: int,
        end: int,
        own: Optional[Dict[str, Any]] = None,
        error: Optional[BaseException] = None,
        id: int = 0,
    ) -> None:
        """Records an event; none if its start or end is 0, which happens if the recorder was switched on or off in between."""
        if not start or not end or not self.enabled():
            return
        args = self.values()
        if own or error is not None:
            args = dict(args)
            if own:
                args.update(own)
            if error is not None:
                args["error"] = type(error).__name__
        emit(kind, name, self.category, start, end, id, args or None)

    def enter(self, context: bool = True) -> None:
        """Begins a block; `context` makes it the one that values are added to."""
        frame = Frame(self)
        frame.thread = threading.get_ident()
        self.open.append(frame)
        if context:
            current_frame.set(frame)
        frame.start = now()

    def leave(self, name: str, error: Optional[BaseException] = None) -> None:
        """Ends the newest block of this context, else of this thread, else of any, so that every block can be ended."""
        end = now()
        thread = threading.get_ident()
        frame = current_frame.get()
        if frame is not None and frame.source is self and frame.thread and not frame.over:
            current_frame.set(frame.outer)
        else:
            frame = self._newest(thread)
            if frame is None:
                return
        frame.over = True
        try:
            self.open.remove(frame)
        except ValueError:
            # Another thread has ended or forgotten it in between.
            return
        if frame.thread == thread:
            self.tell(SPAN, name, frame.start, end, frame.own, error)
        else:
            self.tell(ASYNC_SPAN, name, frame.start, end, frame.own, error, new_id())

    def _newest(self, thread: int) -> Optional[Frame]:
        frame = self.frame()
        if frame is not None and frame.thread:
            return frame
        mine = (frame for frame in reversed(self.open) if frame.thread == thread)
        return next(mine, self.open[-1] if self.open else None)

    def forget(self) -> None:
        """Drops blocks that were begun and never ended."""
        for frame in self.open:
            frame.over = True
        self.open = []
