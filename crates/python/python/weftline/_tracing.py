"""``trace``, ``span`` and the events without a duration."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Optional, TypedDict, TypeVar, Union, overload

from . import _native
from ._wrapping import Options, default_name, names, wrap

if TYPE_CHECKING:
    from typing_extensions import Unpack

Function = TypeVar("Function")
Item = TypeVar("Item")


class Chosen(TypedDict, total=False):
    """The options of a decorator besides a name; see :meth:`Trace.__call__`."""

    category: str
    args: Union[bool, Iterable[str]]
    skip: Iterable[str]
    cpu_mem: bool
    steps: Optional[bool]


class Trace:
    """The type of :data:`weftline.trace`."""

    @overload
    def __call__(self, name: str, /, **chosen: Unpack[Chosen]) -> Callable[[Function], Function]: ...

    @overload
    def __call__(self, function: Function, /) -> Function: ...

    @overload
    def __call__(
        self, function: None = None, /, *, name: Optional[str] = None, **chosen: Unpack[Chosen]
    ) -> Callable[[Function], Function]: ...

    def __call__(
        self,
        function: Any = None,
        /,
        *,
        name: Optional[str] = None,
        category: str = "app",
        args: Union[bool, Iterable[str]] = False,
        skip: Iterable[str] = (),
        cpu_mem: bool = False,
        steps: Optional[bool] = None,
    ) -> Any:
        """Records every call: ``@trace``, ``@trace(args=True)``, ``@trace("name", category="io", args=["path"])``.

        Works on functions, methods, static and class methods and properties (above or below their decorator), on classes (all public
        methods), generators, coroutines, async generators and other callables. An exception is recorded by its type and propagates.

        ``args`` records arguments: all, or the named ones; ``skip`` leaves some out. ``cpu_mem`` also records CPU time and
        memory. A generator or coroutine is recorded as one async span from its first step to its end, with the number of its steps
        and the time spent in them; ``steps``: whether each step is a span as well (default: only for coroutines).
        """
        if isinstance(function, str):
            function, name = None, function
        chosen = bool(args) if isinstance(args, bool) else names(args, "args")
        options = Options(name, category, chosen, names(skip, "skip"), bool(cpu_mem), steps)
        if function is None:
            return lambda function: wrap(function, options)
        return wrap(function, options)

    @overload
    def iter(self, items: Iterable[Item], /, name: Optional[str] = None, category: str = "app", **args: Any) -> Iterator[Item]: ...

    @overload
    def iter(
        self, items: AsyncIterable[Item], /, name: Optional[str] = None, category: str = "app", **args: Any
    ) -> AsyncIterator[Item]: ...

    def iter(self, items: Any, /, name: Optional[str] = None, category: str = "app", **args: Any) -> Any:
        """Goes through ``items``: getting each one is the span ``name``, what the loop does with it the span ``name.body``.

        Both record the item's number (``index``) and ``args``. Without a name, the type's name is used.
        """
        called = default_name(type(items)) if name is None else name
        if hasattr(type(items), "__aiter__") and not hasattr(type(items), "__iter__"):
            return _async_items(items, called, category, args)
        return _native.Items(items, called, category, extra=args or None)


async def _async_items(items: AsyncIterable[Item], name: str, category: str, args: dict[str, Any]) -> AsyncIterator[Item]:
    """Others may run while an item is awaited, so both are async spans."""
    iterator = items.__aiter__()
    index = 0
    while True:
        with_index = {"index": index, **args}
        fetch, body = span(name, category, **with_index), span(f"{name}.body", category, **with_index)
        fetch.enter_async()
        try:
            item = await iterator.__anext__()
        except StopAsyncIteration:
            return
        except BaseException as error:
            fetch.__exit__(type(error), error, None)
            raise
        fetch.__exit__(None, None, None)
        async with body:
            yield item
        index += 1


class span(_native.Span):
    """A block whose time is recorded: ``with span("load", path=path) as s: s.update(bytes=n)``.

    In coroutines use ``async with`` if the block awaits: other tasks run meanwhile, so the span is recorded as one that may overlap.
    Also a decorator. Its arguments are recorded with every block; ``update`` adds to the open one.
    """

    __slots__ = ()

    async def __aenter__(self) -> span:
        self.enter_async()
        return self

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self.__exit__(kind, error, traceback)

    def __call__(self, function: Function, /) -> Function:
        """Records every call of ``function`` under this span's name and with its arguments."""
        traced: Function = wrap(function, Options(self.name, self.category, extra=self.args))
        return traced


trace = Trace()
