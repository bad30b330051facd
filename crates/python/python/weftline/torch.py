"""Records data loaders: which batch waited for which worker, which items the worker loaded, and from which files.

::

    from weftline.torch import traced

    for batch in traced(loader):
        ...

| event | category | where | arguments |
|---|---|---|---|
| ``fetch`` | ``dataloader`` | main process: waiting for a batch | ``epoch``, ``batch`` |
| ``fetch.body`` | ``dataloader`` | main process: what the loop does with it | ``epoch``, ``batch`` |
| ``batch`` | ``dataloader`` | worker: making a batch | ``epoch``, ``batch``, ``worker``, ``items`` |
| ``item`` | ``data`` | worker: ``dataset[index]`` | ``epoch``, ``batch``, ``worker``, ``item`` |

Files are read inside ``item``, on the same thread. So batch → worker → item → file is a join on ``(epoch, batch)`` and on nesting.

torch is not needed: any object with the attributes of a ``DataLoader`` works, and missing ones are skipped. The given loader is
not changed; its traced copy shares its dataset and samplers.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Callable, Optional

from . import _native
from ._tracing import span

__all__ = ["TracedDataset", "TracedLoader", "traced", "traced_dataset"]

# The number of this process among a loader's workers.
_worker: Optional[int] = None


def traced(loader: Any) -> TracedLoader:
    """The same loader, recorded: iterate over it as over the original."""
    return TracedLoader(loader)


def traced_dataset(dataset: Any) -> TracedDataset:
    """The same dataset, recorded, for programs with a loader of their own. ``traced`` does this too."""
    return TracedDataset(dataset)


class Batch(list):  # type: ignore[type-arg]
    """The indices of one batch, and which one it is: samplers' lists reach the worker as they are."""

    epoch: Optional[int] = None
    batch: Optional[int] = None

    @classmethod
    def of(cls, indices: Iterable[Any], epoch: int, batch: int) -> Batch:
        made = cls(indices)
        made.epoch = epoch
        made.batch = batch
        return made

    def __reduce__(self) -> Any:
        return Batch.of, (list(self), self.epoch, self.batch)


class _Numbers:
    """Which epoch a loader is in."""

    epoch = -1


class _Sampler:
    """Numbers the batches of a batch sampler."""

    def __init__(self, sampler: Any, numbers: _Numbers) -> None:
        self._sampler = sampler
        self._numbers = numbers

    def __iter__(self) -> Iterator[Any]:
        epoch = self._numbers.epoch
        for number, indices in enumerate(self._sampler):
            yield Batch.of(indices, epoch, number) if isinstance(indices, (list, tuple)) else indices

    def __len__(self) -> int:
        return len(self._sampler)

    def __getattr__(self, name: str) -> Any:
        return getattr(_inner(self, "_sampler"), name)


class _WorkerInit:
    """Remembers the worker's number before the user's own function runs."""

    def __init__(self, then: Optional[Callable[[int], Any]]) -> None:
        self._then = then

    def __call__(self, worker: int) -> Any:
        global _worker
        _worker = worker
        return self._then(worker) if self._then is not None else None


def _inner(proxy: Any, name: str) -> Any:
    """What a proxy stands for. While it is being unpickled it stands for nothing yet."""
    try:
        return object.__getattribute__(proxy, name)
    except AttributeError:
        raise AttributeError(name) from None


def _worker_number() -> Optional[int]:
    if _worker is not None:
        return _worker
    data = sys.modules.get("torch.utils.data")
    information = data.get_worker_info() if data is not None else None
    return None if information is None else information.id


def _known(**numbers: Optional[int]) -> dict[str, Any]:
    return {name: number for name, number in numbers.items() if number is not None}


class TracedDataset:
    """A dataset whose items are recorded. It passes for the dataset that it wraps."""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        return type(_inner(self, "_dataset"))

    def __reduce__(self) -> Any:
        return TracedDataset, (self._dataset,)

    def __getattr__(self, name: str) -> Any:
        return getattr(_inner(self, "_dataset"), name)

    def __len__(self) -> int:
        return len(self._dataset)

    def __getitem__(self, index: Any) -> Any:
        return self._item(index, None)

    def __getitems__(self, indices: Any) -> Any:
        """A whole batch, as torch asks for it."""
        batch = indices if isinstance(indices, Batch) else None
        numbers = _known(epoch=batch.epoch, batch=batch.batch) if batch is not None else {}
        with span("batch", "dataloader", **numbers, **_known(worker=_worker_number()), items=len(indices)):
            whole = getattr(self._dataset, "__getitems__", None)
            if whole:
                return whole(list(indices))
            return [self._item(index, batch) for index in indices]

    def _item(self, index: Any, batch: Optional[Batch]) -> Any:
        if not _native.is_on():
            return self._dataset[index]
        numbers = _known(epoch=batch.epoch, batch=batch.batch) if batch is not None else {}
        with span("item", "data", **numbers, **_known(worker=_worker_number()), item=index):
            return self._dataset[index]

    def __iter__(self) -> Iterator[Any]:
        """The items of an iterable dataset. Other datasets are gone through by index, as Python does."""
        if not hasattr(self._dataset, "__iter__"):
            return (self._item(index, None) for index in range(len(self._dataset)))
        return _native.Items(self._dataset, "item", "data", count="item", extra=_known(worker=_worker_number()))


class TracedLoader:
    """A data loader whose batches are recorded."""

    def __init__(self, loader: Any) -> None:
        self._numbers = _Numbers()
        self._loader = self._twin(loader)

    def _twin(self, loader: Any) -> Any:
        """A copy of the loader with a traced dataset. A loader that cannot be copied is recorded in the main process only."""
        try:
            twin = copy.copy(loader)
            attributes = vars(twin)
        except Exception:
            return loader
        # By the dictionary: a DataLoader refuses to have these set.
        if attributes.get("dataset") is not None:
            attributes["dataset"] = TracedDataset(attributes["dataset"])
        if attributes.get("batch_sampler") is not None:
            attributes["batch_sampler"] = _Sampler(attributes["batch_sampler"], self._numbers)
        if "worker_init_fn" in attributes:
            attributes["worker_init_fn"] = _WorkerInit(attributes["worker_init_fn"])
        return twin

    def __getattr__(self, name: str) -> Any:
        return getattr(_inner(self, "_loader"), name)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        self._numbers.epoch += 1
        # Batches that may come out of order are told by when they came, not by which they are.
        count = "batch" if getattr(self._loader, "in_order", True) else "index"
        return _native.Items(self._loader, "fetch", "dataloader", count=count, extra={"epoch": self._numbers.epoch})
