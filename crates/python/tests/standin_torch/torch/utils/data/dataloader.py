"""The loader and its iterators."""

import itertools
import multiprocessing
from typing import Any, Iterator, Optional

from . import _utils

get_worker_info = _utils.worker.get_worker_info


class IterableDataset:
    pass


def as_it_is(items: Any) -> Any:
    return items


class DataLoader:
    def __init__(
        self,
        dataset: Any,
        batch_size: Optional[int] = 1,
        num_workers: int = 0,
        multiprocessing_context: Optional[str] = None,
        collate_fn: Any = None,
        persistent_workers: bool = False,
    ) -> None:
        self.dataset = dataset
        self.batch_size = batch_size
        self.num_workers = num_workers
        self.multiprocessing_context = multiprocessing_context
        self.collate_fn = collate_fn or as_it_is
        self.persistent_workers = persistent_workers
        self._iterator: Any = None

    def _indices(self) -> Iterator[Any]:
        endless = isinstance(self.dataset, IterableDataset)
        one_by_one = itertools.repeat(None) if endless else iter(range(len(self.dataset)))
        if self.batch_size is None:
            return one_by_one
        return iter(lambda: list(itertools.islice(one_by_one, self.batch_size)), [])

    def __iter__(self) -> Any:
        if self.persistent_workers and self.num_workers:
            if self._iterator is None:
                self._iterator = _MultiProcessingDataLoaderIter(self)
            else:
                self._iterator._reset(self)
            return self._iterator
        return _MultiProcessingDataLoaderIter(self) if self.num_workers else _SingleProcessDataLoaderIter(self)


class _BaseDataLoaderIter:
    def __init__(self, loader: DataLoader) -> None:
        self._sampler_iter = loader._indices()

    def __iter__(self) -> Any:
        return self

    def _next_index(self) -> Any:
        return next(self._sampler_iter)

    def __next__(self) -> Any:
        return self._next_data()  # type: ignore[attr-defined]


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self._dataset_fetcher = _utils.worker.make_fetcher(loader.dataset, loader.batch_size is not None, loader.collate_fn)

    def _next_data(self) -> Any:
        return self._dataset_fetcher.fetch(self._next_index())


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        self._in_order = True
        self._persistent_workers = loader.persistent_workers
        self._workers: list[Any] = []
        context = multiprocessing.get_context(loader.multiprocessing_context)
        self._results = context.Queue()
        self._index_queues = [context.Queue() for _ in range(loader.num_workers)]
        for number, queue in enumerate(self._index_queues):
            given = (loader.dataset, queue, self._results, loader.batch_size is not None, loader.collate_fn, number)
            self._workers.append(context.Process(target=_utils.worker._worker_loop, args=given, daemon=True))
            self._workers[-1].start()
        self._reset(loader)

    def _reset(self, loader: DataLoader) -> None:
        self._sampler_iter = loader._indices()
        self._send_idx = 0
        self._rcvd_idx = 0
        self._arrived: dict[int, Any] = {}
        for _ in range(2 * len(self._index_queues)):
            self._try_put_index()

    def _try_put_index(self) -> None:
        try:
            index = self._next_index()
        except StopIteration:
            return
        self._index_queues[self._send_idx % len(self._index_queues)].put((self._send_idx, index))
        self._send_idx += 1

    def _next_data(self) -> Any:
        while self._rcvd_idx < self._send_idx:
            while self._rcvd_idx not in self._arrived:
                place, worker, data = self._results.get()
                self._arrived[place] = (worker, data)
            worker, data = self._arrived.pop(self._rcvd_idx)
            self._rcvd_idx += 1
            if not isinstance(data, StopIteration):
                return self._process_data(data, worker)
        if not self._persistent_workers:
            for queue in self._index_queues:
                queue.put(None)
            for worker in self._workers:
                worker.join()
        raise StopIteration

    def _process_data(self, data: Any, worker: int) -> Any:
        self._try_put_index()
        if isinstance(data, Exception):
            raise data
        return data
