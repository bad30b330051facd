"""Names for the parts of a training program, which reports understand.

Each is a decorator (with or without parentheses), a context manager and an iterator::

    from weftline import ai

    @ai.compute.forward
    def forward(model, batch): ...

    for batch in ai.dataloader.fetch.iter(loader, epoch=epoch):
        with ai.compute.step(epoch=epoch) as step:
            step.update(loss=loss)

They may be nested, and used by many threads and tasks at once. The category of an event is the group's name
(``compute``), its name that of the part (``step``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from types import TracebackType
from typing import Any, Optional, TypeVar, overload

from ._tracing import span, trace

__all__ = ["checkpoint", "comm", "compute", "data", "dataloader", "device", "pipeline", "Part"]

Function = TypeVar("Function")
Item = TypeVar("Item")


class Part:
    """One part of a training program."""

    def __init__(self, name: str, category: str) -> None:
        self.name = name
        self.category = category
        # The open blocks of this thread or task, newest first: (span, the ones before).
        self._open: ContextVar[Any] = ContextVar(f"weftline.ai.{category}.{name}", default=None)

    def __repr__(self) -> str:
        return f"<weftline.ai.{self.category}.{self.name}>"

    @overload
    def __call__(self, function: Function, /) -> Function: ...

    @overload
    def __call__(self, /, **args: Any) -> span: ...

    def __call__(self, function: Any = None, /, **args: Any) -> Any:
        """Decorates a function; or, with arguments for the event, gives a span for ``with`` or ``@``."""
        block = span(self.name, self.category, **args)
        return block if function is None else block(function)

    def __enter__(self) -> span:
        return self._push().__enter__()

    def __exit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        self._pop().__exit__(kind, error, traceback)

    async def __aenter__(self) -> span:
        return await self._push().__aenter__()

    async def __aexit__(
        self, kind: Optional[type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]
    ) -> None:
        await self._pop().__aexit__(kind, error, traceback)

    def _push(self) -> span:
        block = span(self.name, self.category)
        self._open.set((block, self._open.get()))
        return block

    def _pop(self) -> span:
        block: span
        block, before = self._open.get()
        self._open.set(before)
        return block

    def iter(self, items: Iterable[Item], /, **args: Any) -> Iterator[Item]:
        """Goes through ``items``: getting each one is an event of this part, what the loop does with it ``<name>.body``."""
        return trace.iter(items, self.name, self.category, **args)


class _Group:
    """Parts that belong together."""

    def __init__(self, category: str, *parts: str) -> None:
        self._category = category
        for name in parts:
            setattr(self, name, Part(name, category))

    def __repr__(self) -> str:
        return f"<weftline.ai.{self._category}>"


class Pipeline(_Group):
    """The outermost loop."""

    epoch: Part
    train: Part
    evaluate: Part
    test: Part


class Compute(_Group):
    """What the model does."""

    forward: Part
    backward: Part
    step: Part


class Data(_Group):
    """What is done with one sample."""

    preprocess: Part
    item: Part


class DataLoader(_Group):
    """Waiting for data."""

    fetch: Part


class Comm(_Group):
    """Messages between ranks."""

    send: Part
    receive: Part
    barrier: Part
    bcast: Part
    reduce: Part
    all_reduce: Part
    gather: Part
    all_gather: Part
    scatter: Part
    reduce_scatter: Part
    all_to_all: Part


class Device(_Group):
    """Copies between host and device."""

    transfer: Part


class Checkpoint(_Group):
    """Saving and restoring."""

    capture: Part
    restart: Part


def _group(kind: Any, category: str) -> Any:
    return kind(category, *kind.__annotations__)


pipeline: Pipeline = _group(Pipeline, "pipeline")
compute: Compute = _group(Compute, "compute")
data: Data = _group(Data, "data")
dataloader: DataLoader = _group(DataLoader, "dataloader")
comm: Comm = _group(Comm, "comm")
device: Device = _group(Device, "device")
checkpoint: Checkpoint = _group(Checkpoint, "checkpoint")
