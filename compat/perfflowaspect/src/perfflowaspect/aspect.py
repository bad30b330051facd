"""``critical_path``, ``sync_event`` and ``async_event``.

=============  =======================================================================================
pointcut       what is recorded
=============  =======================================================================================
before, after  the beginning alone, the end alone
around         both; generators, coroutines and async generators from their first step to their last, as async events
..._async      the same as async events: beginnings and ends of one scope belong together, also across threads
=============  =======================================================================================

An exception ends what it leaves, and goes on. Options come from ``PERFFLOW_OPTIONS`` when this module is imported.
"""

import functools
import sys
from typing import Any, Callable, Dict, Optional, Set, Tuple, TypeVar, Union, cast, overload

import weftline._native as _native

from perfflowaspect import _pairing, _recording
from perfflowaspect._recording import emit, now
from perfflowaspect._weaving import kind_of, weave

__all__ = ["async_event", "critical_path", "sync_event"]

F = TypeVar("F", bound=Callable[..., Any])

_recording.begin()


@overload
def critical_path(pointcut: F) -> F: ...


@overload
def critical_path(pointcut: str = "around", scope: str = "", category: str = "") -> Callable[[F], F]: ...


def critical_path(
    pointcut: Union[str, F] = "around", scope: str = "", category: str = ""
) -> Union[F, Callable[[F], F]]:
    """Decorator for functions on the critical path; also without parentheses.

    The events' category is the name of the function's module, unless one is given.
    """
    if callable(pointcut):
        return cast(F, _decorated(pointcut, "around", "", ""))
    return lambda function: cast(F, _decorated(function, pointcut, str(scope or ""), str(category or "")))


def _decorated(function: Any, pointcut: str, scope: str, category: str) -> Any:
    if isinstance(function, (staticmethod, classmethod)):
        return type(function)(_decorated(function.__func__, pointcut, scope, category))
    name = str(getattr(function, "__qualname__", None) or type(function).__name__)
    category = category or str(getattr(function, "__module__", None) or "")
    make = _POINTCUTS.get(pointcut)
    if make is None:
        known = ", ".join(_POINTCUTS)
        print(
            f"weftline: unknown pointcut {pointcut!r} at {name}, which runs undecorated; known are {known}",
            file=sys.stderr,
        )
        return function
    if not _recording.ENABLED:
        return function
    return make(function, name, category, {"scope": scope} if scope else None, scope or name)


def _native_wrapper(called: Any, function: Any, name: str, category: str, kind: int) -> Any:
    """Calls `called` and looks like `function`."""
    usage = _recording.USAGE and kind == _native.SPAN
    return functools.update_wrapper(_native.traced(called, name, category, kind=kind, usage=usage), function)


def _before(function: Any, name: str, category: str, args: Optional[Dict[str, Any]], key: str) -> Any:
    def before() -> None:
        _tell(_native.BEGIN, name, category)

    if kind_of(function) is not None:
        return weave(function, before, _nothing)
    return _native_wrapper(function, function, name, category, _native.BEGIN)


def _after(function: Any, name: str, category: str, args: Optional[Dict[str, Any]], key: str) -> Any:
    def after(token: Any, error: Optional[BaseException]) -> None:
        _tell(_native.END, name, category, 0, _with_error(None, error))

    if kind_of(function) is not None:
        return weave(function, _nothing, after)
    return _native_wrapper(function, function, name, category, _native.END)


def _around(function: Any, name: str, category: str, args: Optional[Dict[str, Any]], key: str) -> Any:
    if kind_of(function) is not None:
        return _around_async(function, name, category, None, key)
    if not _recording.VERBOSE:
        return _native_wrapper(function, function, name, category, _native.SPAN)
    ending = _native.traced(function, name, category, kind=_native.END, usage=_recording.USAGE)
    return _native_wrapper(ending, function, name, category, _native.BEGIN)


def _before_async(function: Any, name: str, category: str, args: Optional[Dict[str, Any]], key: str) -> Any:
    def before() -> None:
        if now():
            _tell(_native.ASYNC_BEGIN, name, category, _pairing.begins(key), args)

    return weave(function, before, _nothing)


def _after_async(function: Any, name: str, category: str, args: Optional[Dict[str, Any]], key: str) -> Any:
    def after(token: Any, error: Optional[BaseException]) -> None:
        if now():
            _tell(_native.ASYNC_END, name, category, _pairing.ends(key), _with_error(args, error))

    return weave(function, _nothing, after)


def _around_async(function: Any, name: str, category: str, args: Optional[Dict[str, Any]], key: str) -> Any:
    def before() -> Any:
        return now(), _recording.usage()

    def after(token: Any, error: Optional[BaseException]) -> None:
        start, usage = token
        end = now()
        if start and end:
            all_args = _with_error(args, error)
            emit(_native.ASYNC_SPAN, name, category, start, end, _native.new_id(), all_args, usage=usage)

    return weave(function, before, after)


_POINTCUTS: Dict[str, Callable[[Any, str, str, Optional[Dict[str, Any]], str], Any]] = {
    "before": _before,
    "after": _after,
    "around": _around,
    "before_async": _before_async,
    "after_async": _after_async,
    "around_async": _around_async,
}


def _nothing(*_: Any) -> None:
    return None


def _with_error(args: Optional[Dict[str, Any]], error: Optional[BaseException]) -> Optional[Dict[str, Any]]:
    return args if error is None else {**(args or {}), "error": type(error).__name__}


def _tell(kind: int, name: str, category: str, id: int = 0, args: Optional[Dict[str, Any]] = None) -> None:
    at = now()
    if at:
        emit(kind, name, category, at, at, id, args)


class Region:
    """What ``"around"`` gives where there is no function: a region of code.

    As a context manager it is the block, as a decorator the function. Where it is used as neither, it lasts from the
    call that made it until nobody holds it any more, which is at once if the result of that call is not kept.
    """

    def __init__(self, kind: int, name: str, category: str, args: Optional[Dict[str, Any]] = None, id: int = 0) -> None:
        self._kind = kind
        self._name = name
        self._category = category
        self._args = args
        self._id = id
        self._usage: Any = None
        self._start = 0
        self._entered = False
        self._begin()

    def _begin(self) -> None:
        if _recording.ENABLED:
            self._usage = _recording.usage()
            self._start = now()

    def _in_two(self) -> bool:
        return self._kind == _native.SPAN and _recording.VERBOSE

    def _end(self, error: Optional[BaseException] = None) -> None:
        start, self._start = self._start, 0
        end = now()
        if not start or not end:
            return
        args = _with_error(self._args, error)
        if not self._in_two():
            emit(self._kind, self._name, self._category, start, end, self._id, args, usage=self._usage)
            return
        if not self._entered:
            emit(_native.BEGIN, self._name, self._category, start, start)
        emit(_native.END, self._name, self._category, end, end, 0, args, usage=self._usage)

    def __enter__(self) -> "Region":
        self._begin()
        self._entered = True
        if self._start and self._in_two():
            # Told now, so that it is known even if the block never ends.
            emit(_native.BEGIN, self._name, self._category, self._start, self._start)
        return self

    def __exit__(self, kind: Any, error: Optional[BaseException], traceback: Any) -> None:
        self._end(error)
        self._entered = False

    def __call__(self, function: F) -> F:
        self._start = 0
        if not _recording.ENABLED:
            return function

        def before() -> "Region":
            return Region(self._kind, self._name, self._category, self._args, self._id)

        def after(region: "Region", error: Optional[BaseException]) -> None:
            region._end(error)

        return cast(F, weave(function, before, after))

    def __del__(self) -> None:
        # Nothing is left to call when the interpreter goes down.
        if self._start and now is not None:
            self._end()


_reported_unknown: Set[Tuple[str, Any]] = set()


def _unknown(what: str, pointcut: Any, known: str) -> None:
    if (what, pointcut) not in _reported_unknown:
        _reported_unknown.add((what, pointcut))
        print(
            f"weftline: {what} does not know the pointcut {pointcut!r} and ignores it; known are {known}",
            file=sys.stderr,
        )


def sync_event(pointcut: str, name: str, category: str) -> Optional[Region]:
    """Tells the beginning (``"before"``) or the end (``"after"``) of a region; ``"around"`` gives a :class:`Region`."""
    if pointcut == "around":
        return Region(_native.SPAN, str(name), str(category))
    kind = {"before": _native.BEGIN, "after": _native.END}.get(pointcut)
    if kind is None:
        _unknown("sync_event", pointcut, "before, after, around")
    elif _recording.ENABLED:
        _tell(kind, str(name), str(category))
    return None


def async_event(
    pointcut: str, name: str, category: str, scope: Optional[str] = None, id: Any = None
) -> Optional[Region]:
    """Tells the beginning, the end or an instant (``"instant"``) of what may overlap others; ``"around"`` as above.

    Beginnings and ends with the same id belong together; without one, those of the same scope, or of the same name.
    """
    if pointcut not in ("before", "instant", "after", "around"):
        _unknown("async_event", pointcut, "before, instant, after, around")
        return None
    if not now() or not _recording.ENABLED:
        return Region(_native.ASYNC_SPAN, str(name), str(category)) if pointcut == "around" else None
    key = str(scope or name)
    kind = _native.ASYNC_SPAN
    number = _number(id) if id else 0
    if pointcut == "before":
        kind, number = _native.ASYNC_BEGIN, number or _pairing.begins(key)
    elif pointcut == "after":
        kind, number = _native.ASYNC_END, number or _pairing.ends(key)
    elif pointcut == "instant":
        kind, number = _native.ASYNC_INSTANT, number or _pairing.goes_on(key)
    else:
        number = number or int(_native.new_id())
    args: Dict[str, Any] = {"id": id if id else number}
    if scope:
        args["scope"] = str(scope)
    if pointcut == "around":
        return Region(kind, str(name), str(category), args, number)
    _tell(kind, str(name), str(category), number, args)
    return None


def _number(id: Any) -> int:
    """The recorder's id for one that the program gave, which may be anything."""
    if isinstance(id, int) and 0 < id < 1 << 64:
        return int(id)
    return int(_native.id_of(str(id)))
