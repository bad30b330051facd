"""Records the data loaders of programs without annotations.

Every Python process under ``weft run`` imports ``weftline_auto``, which calls this module when the program has imported torch. It wraps a few
methods of torch's own classes:

| event | category | where | arguments |
|---|---|---|---|
| ``fetch`` | ``dataloader`` | main process: waiting for a batch | ``epoch``, ``batch``, ``worker`` |
| ``step`` | ``pipeline`` | main process: what the loop did with the batch before it asked for the next | ``epoch``, ``step`` |
| ``batch`` | ``dataloader`` | worker, or main process without workers: making a batch | ``epoch``, ``batch``, ``worker``, ``items`` |
| ``item`` | ``data`` | there: one item of the dataset | ``epoch``, ``batch``, ``worker``, ``item`` |

The names are those of :mod:`weftline.torch`, whose loaders are not wrapped again here. The program must not notice: it sees objects of
torch's types, errors propagate, and what cannot be wrapped (another version of torch, a foreign loader) stays unchanged.
"""

from __future__ import annotations

import functools
import threading
from typing import Any, Callable, Optional, Union

from . import _native
from .torch import Batch, TracedDataset, _known, _worker_number

# ---- what is wrapped


class _Epoch:
    """One pass over a loader."""

    __slots__ = ("number", "asked", "given", "worker", "ended_at")

    def __init__(self, number: int) -> None:
        self.number = number
        # Batches that were asked for and given so far.
        self.asked = 0
        self.given = 0
        self.worker: Optional[int] = None
        # When the last batch was given.
        self.ended_at = 0


# The pass whose iterator is being made: it asks for its first batches before anybody has the iterator.
_starting = threading.local()
# Where iterators keep their pass, and loaders the number of their last one.
_OWN = "_weftline_epoch"


def _epoch_of(iterator: Any) -> Optional[_Epoch]:
    starting: Optional[_Epoch] = getattr(_starting, "epoch", None)
    if starting is not None:
        iterator.__dict__[_OWN] = starting
        return starting
    own: Optional[_Epoch] = iterator.__dict__.get(_OWN)
    return own


def _patch_loader(module: Any) -> None:
    loader, iterator, workers = module.DataLoader, module._BaseDataLoaderIter, module._MultiProcessingDataLoaderIter
    iterate, next_item, next_index, process_data = loader.__iter__, iterator.__next__, iterator._next_index, workers._process_data

    @functools.wraps(iterate)
    def __iter__(self: Any) -> Any:
        # A loader of weftline.torch records itself.
        if not _native.is_on() or is_traced(self.dataset):
            return iterate(self)
        number = self.__dict__.get(_OWN, -1) + 1
        self.__dict__[_OWN] = number
        before = getattr(_starting, "epoch", None)
        _starting.epoch = epoch = _Epoch(number)
        try:
            made = iterate(self)
        finally:
            _starting.epoch = before
        if isinstance(made, iterator):
            made.__dict__[_OWN] = epoch
        return made

    @functools.wraps(next_index)
    def _next_index(self: Any) -> Any:
        index = next_index(self)
        epoch = _epoch_of(self)
        if epoch is None or type(index) is not list:
            return index
        number = getattr(self, "_send_idx", epoch.asked)
        epoch.asked += 1
        return Batch.of(index, epoch.number, number)

    @functools.wraps(process_data)
    def _process_data(self: Any, data: Any, worker: Any = None, *rest: Any) -> Any:
        epoch = _epoch_of(self)
        if epoch is not None:
            epoch.worker = worker
        return process_data(self, data, worker, *rest) if worker is not None else process_data(self, data)

    @functools.wraps(next_item)
    def __next__(self: Any) -> Any:
        epoch = _epoch_of(self)
        if epoch is None or not _native.is_on():
            return next_item(self)
        start = _native.now()
        if epoch.ended_at:
            _native.emit(_native.SPAN, "step", "pipeline", epoch.ended_at, start, args={"epoch": epoch.number, "step": epoch.given - 1})
            epoch.ended_at = 0
        epoch.worker = None
        # The end of the loader is no batch that somebody waited for.
        item = next_item(self)
        end = _native.now()
        # Batches that may come in any order are told by when they came, not by which they are.
        in_order = getattr(self, "_in_order", True)
        batch = {"batch": getattr(self, "_rcvd_idx", epoch.given + 1) - 1} if in_order else {"index": epoch.given}
        _native.emit(_native.SPAN, "fetch", "dataloader", start, end, args={"epoch": epoch.number, **batch, **_known(worker=epoch.worker)})
        epoch.given += 1
        epoch.ended_at = end
        return item

    loader.__iter__ = __iter__
    iterator.__next__, iterator._next_index = __next__, _next_index
    workers._process_data = _process_data


def is_traced(dataset: Any) -> bool:
    """Whether a dataset is recorded by :mod:`weftline.torch`. By its real type: it says that it is what it wraps."""
    return issubclass(type(dataset), TracedDataset)


class _Items:
    """Stands for the dataset inside of a fetcher, where only torch sees it."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset
        self._numbers: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)

    def __getitem__(self, index: Any) -> Any:
        start = _native.now()
        item = self._dataset[index]
        _native.emit(_native.SPAN, "item", "data", start, _native.now(), args={**self._numbers, "item": index})
        return item


class _Stream:
    """The same for the iterator over an iterable dataset."""

    def __init__(self, items: Any) -> None:
        self._items = items
        self._numbers: dict[str, Any] = {}
        self._count = 0

    def __iter__(self) -> _Stream:
        return self

    def __next__(self) -> Any:
        start = _native.now()
        item = next(self._items)
        _native.emit(_native.SPAN, "item", "data", start, _native.now(), args={**self._numbers, "item": self._count})
        self._count += 1
        return item


def _patch_fetchers(module: Any) -> None:
    for kind in (module._MapDatasetFetcher, module._IterableDatasetFetcher):
        kind.fetch = _recorded_fetch(kind.fetch)


def _recorded_fetch(fetch: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(fetch)
    def recorded(self: Any, index: Any) -> Any:
        if is_traced(self.dataset):
            return fetch(self, index)
        numbers: dict[str, Any] = {}
        if type(index) is Batch:
            numbers, index = _known(epoch=index.epoch, batch=index.batch), list(index)
        if not _native.is_on():
            return fetch(self, index)
        numbers.update(_known(worker=_worker_number()))
        inner = self.__dict__.get("dataset_iter")
        items: Union[_Items, _Stream]
        if inner is None:
            self.dataset = items = self.dataset if type(self.dataset) is _Items else _Items(self.dataset)
        else:
            self.dataset_iter = items = inner if type(inner) is _Stream else _Stream(inner)
        items._numbers = numbers
        start = _native.now()
        batch = fetch(self, index)
        many = {"items": len(index)} if self.auto_collation else {}
        _native.emit(_native.SPAN, "batch", "dataloader", start, _native.now(), args={**numbers, **many})
        return batch

    return recorded


PATCHES: dict[str, Callable[[Any], None]] = {
    "torch.utils.data.dataloader": _patch_loader,
    "torch.utils.data._utils.fetch": _patch_fetchers,
}
