"""A data loader with the attributes and the protocol of torch's: index queues, workers, batches in order, numbers of workers.

Written after torch.utils.data's documented behaviour, because torch itself is too big for a test: ``dataset``, ``batch_sampler``,
``worker_init_fn``, ``collate_fn`` and the rest are attributes; once made, some of them cannot be set; workers get ``(number,
indices)`` and ask the dataset for ``__getitems__`` first; each iteration makes its samplers' iterators twice, as torch's does.
"""

import multiprocessing
import queue
from typing import Any, Callable, Iterator, Optional


class BatchSampler:
    def __init__(self, length: int, batch_size: int) -> None:
        self.length = length
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[list[int]]:
        for first in range(0, self.length, self.batch_size):
            yield list(range(first, min(first + self.batch_size, self.length)))

    def __len__(self) -> int:
        return -(-self.length // self.batch_size)


def fetch(dataset: Any, indices: Any) -> list[Any]:
    if hasattr(dataset, "__getitems__") and dataset.__getitems__:
        return list(dataset.__getitems__(indices))
    return [dataset[index] for index in indices]


def work(dataset: Any, indices: Any, results: Any, number: int, init: Optional[Callable[[int], None]]) -> None:
    if init is not None:
        init(number)
    while True:
        task = indices.get()
        if task is None:
            return
        batch, wanted = task
        results.put((batch, fetch(dataset, wanted)))


class DataLoader:
    def __init__(
        self,
        dataset: Any,
        batch_size: int = 1,
        num_workers: int = 0,
        worker_init_fn: Optional[Callable[[int], None]] = None,
        context: str = "fork",
        in_order: bool = True,
    ) -> None:
        self.dataset = dataset
        self.batch_size = batch_size
        self.num_workers = num_workers
        self.worker_init_fn = worker_init_fn
        self.context = context
        self.in_order = in_order
        self.iterable = hasattr(dataset, "__iter__") and not hasattr(dataset, "__getitem__")
        self.batch_sampler = None if self.iterable else BatchSampler(len(dataset), batch_size)
        self.initialized = True

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("dataset", "batch_sampler", "batch_size") and "initialized" in self.__dict__:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    def __len__(self) -> int:
        return len(self.batch_sampler)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        if self.iterable:
            return iter([item] for item in self.dataset)
        iter(self.batch_sampler)  # type: ignore[call-overload]
        if self.num_workers == 0:
            return (fetch(self.dataset, indices) for indices in self.batch_sampler)  # type: ignore[union-attr]
        return self.with_workers()

    def with_workers(self) -> Iterator[Any]:
        context = multiprocessing.get_context(self.context)
        results = context.Queue()
        queues = [context.Queue() for _ in range(self.num_workers)]
        workers = [
            context.Process(target=work, args=(self.dataset, queues[n], results, n, self.worker_init_fn)) for n in range(self.num_workers)
        ]
        for worker in workers:
            worker.start()
        batches = list(enumerate(self.batch_sampler))  # type: ignore[arg-type]
        for number, indices in batches:
            queues[number % self.num_workers].put((number, indices))
        waiting: dict[int, Any] = {}
        for number, _ in batches:
            while number not in waiting:
                try:
                    came, data = results.get(timeout=60)
                except queue.Empty:
                    raise RuntimeError("the workers are gone") from None
                waiting[came] = data
            yield waiting.pop(number)
        for one in queues:
            one.put(None)
        for worker in workers:
            worker.join()
