"""The native module: see crates/python/src."""

import os
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Final, Literal, Optional, Union, final

from typing_extensions import Self

__all__ = [
    "ASYNC_BEGIN",
    "ASYNC_END",
    "ASYNC_INSTANT",
    "ASYNC_SPAN",
    "BEGIN",
    "COUNTER",
    "END",
    "Error",
    "FLOW_END",
    "FLOW_START",
    "FLOW_STEP",
    "INSTANT",
    "Items",
    "Life",
    "META",
    "SPAN",
    "Span",
    "Steps",
    "TracedCallable",
    "TracedFunction",
    "Usage",
    "VERSION",
    "ask_gpu",
    "begin",
    "counter",
    "dftracer_options",
    "emit",
    "finish",
    "id_of",
    "instant",
    "is_on",
    "meta",
    "new_id",
    "now",
    "perfflow_options",
    "set_home",
    "set_usage",
    "traced",
    "usage",
]

VERSION: Final[str]

SPAN: Final[int]
BEGIN: Final[int]
END: Final[int]
ASYNC_SPAN: Final[int]
ASYNC_BEGIN: Final[int]
ASYNC_END: Final[int]
ASYNC_INSTANT: Final[int]
INSTANT: Final[int]
COUNTER: Final[int]
META: Final[int]
FLOW_START: Final[int]
FLOW_STEP: Final[int]
FLOW_END: Final[int]

class Error(Exception):
    """Recording cannot start; the message says why and what to do."""

@final
class Usage:
    """CPU time and memory of thread and process at the start of a span."""

@final
class TracedFunction:
    """A function whose calls are recorded; binds like a function."""

    __wrapped__: Any
    __name__: str
    __qualname__: str
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...
    def __getattribute__(self, name: str, /) -> Any: ...
    def __copy__(self, memo: Any = None) -> Self: ...
    def __deepcopy__(self, memo: Any = None) -> Self: ...

@final
class TracedCallable:
    """Another callable whose calls are recorded; binds like that one."""

    __wrapped__: Any
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...
    def __getattribute__(self, name: str, /) -> Any: ...
    def __copy__(self, memo: Any = None) -> Self: ...
    def __deepcopy__(self, memo: Any = None) -> Self: ...

class Span:
    """A block whose time is recorded."""

    def __new__(cls, name: str, /, category: Optional[str] = None, **args: Any) -> Self: ...
    @property
    def name(self) -> str: ...
    @property
    def category(self) -> str: ...
    @property
    def args(self) -> Optional[dict[str, Any]]: ...
    @property
    def is_recorded(self) -> bool:
        """Is a block open, and recorded?"""
    def update(self, **args: Any) -> None:
        """Adds arguments to the innermost open block."""
    def enter_async(self) -> None:
        """Enters a block that may overlap others, as `async with` does."""
    def __enter__(self) -> Self: ...
    def __exit__(
        self, error: Optional[type[BaseException]], value: Optional[BaseException], traceback: Optional[TracebackType], /
    ) -> None: ...

@final
class Items(Iterator[Any]):
    """An iterator whose items are recorded."""

    def __new__(
        cls,
        items: Iterable[Any],
        name: str,
        category: str,
        *,
        body: Optional[str] = None,
        count: str = "index",
        first: int = 0,
        extra: Optional[dict[str, Any]] = None,
    ) -> Items: ...
    def __iter__(self) -> Items: ...
    def __next__(self) -> Any: ...
    def __length_hint__(self) -> int: ...

@final
class Life:
    """The life of one generator, coroutine or async generator."""

    @property
    def made(self) -> Any:
        """What the function returned, until it is taken."""
    def take(self) -> Any:
        """What the function returned, to go through it; once."""
    def through(self, iterator: Any) -> Steps:
        """Goes through `iterator`, whose end is the end of this life."""
    def part(self, iterator: Any) -> Steps:
        """Goes through `iterator`, which is a part of this life."""
    def over(self, error: Optional[BaseException] = None, *, closed: bool = False) -> None:
        """The generator or coroutine has ended: by itself, by an exception, or closed early."""

@final
class Steps:
    """Passes on to a generator or to the iterator of an awaitable, and times each step."""

    def __iter__(self) -> Steps: ...
    def __await__(self) -> Steps: ...
    def __next__(self) -> Any: ...
    def send(self, value: Any) -> Any: ...
    def throw(self, *error: Any) -> Any: ...
    def close(self) -> Any: ...

def is_on() -> bool:
    """Whether anything is recorded now."""

def now() -> int:
    """The recorder's clock; 0 when nothing is recorded."""

def new_id() -> int:
    """An id for an async span, unique in this process."""

def id_of(text: str, /) -> int:
    """An id made from a string: any thread that knows the string can end the span."""

def usage(*, always: bool = False) -> Optional[Usage]:
    """CPU time and memory for a span that begins, if spans record their usage, or `always`."""

def set_usage(wanted: bool, /) -> None:
    """Turns the usage of CPU time and memory in spans of this process on or off."""

def ask_gpu() -> bool:
    """From now on spans of this process record the usage of NVIDIA GPUs; `False` if NVML finds none."""

def emit(
    kind: int,
    name: str,
    category: str,
    start: int,
    end: int,
    id: int = 0,
    args: Optional[dict[str, Any]] = None,
    usage: Optional[Usage] = None,
    at: Optional[tuple[int, int]] = None,
) -> None:
    """Stores an event. Does nothing when nothing is recorded.

    `at` has its times in nanoseconds since 1970 if the recorder's clock cannot express them.
    """

def instant(name: str, /, category: Optional[str] = None, **args: Any) -> None:
    """Records that something happened now: `instant("cache miss", key=path)`."""

def counter(name: str, /, category: Optional[str] = None, **values: Any) -> None:
    """Records values as they are now: `counter("queue", length=len(queue))`."""

def meta(name: str, /, category: Optional[str] = None, **metadata: Any) -> None:
    """Records metadata of the process: `meta("model", layers=23)`."""

def traced(
    function: Callable[..., Any],
    name: str,
    category: str,
    *,
    kind: int = 0,
    id: Optional[int] = None,
    usage: bool = False,
    parameters: Optional[list[tuple[str, int, bool]]] = None,
    rest: Optional[str] = None,
    others: bool = False,
    extra: Optional[dict[str, Any]] = None,
    driver: Optional[Callable[[Life], Any]] = None,
    steps: bool = False,
) -> Union[TracedFunction, TracedCallable]:
    """Wraps `function`, so that its calls are recorded."""

def set_home(directory: Union[str, os.PathLike[str]], /) -> None:
    """Sets the directory where the package is installed."""

def begin(
    plan: Literal["run", "dftracer", "perfflow"],
    *,
    directory: Union[str, os.PathLike[str], None] = None,
    io: bool = True,
    log_file: Union[str, os.PathLike[str], None] = None,
    data_dir: Union[str, os.PathLike[str], None] = None,
    process_id: Optional[int] = None,
) -> Literal["joined", "started"]:
    """Starts to record: "joined" if something records already, as under `weft run`, else "started"."""

def finish() -> None:
    """Ends the recording of `begin` and writes its files. Errors are printed on stderr."""

def dftracer_options() -> dict[str, Any]:
    """The settings of `DFTRACER_*`, parsed; `warnings` are for the user."""

def perfflow_options() -> dict[str, Any]:
    """The settings of `PERFFLOW_OPTIONS`, parsed; `warnings` are for the user."""
