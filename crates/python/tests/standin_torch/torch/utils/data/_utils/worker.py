"""What a worker does."""

from types import SimpleNamespace
from typing import Any, Optional

from . import fetch

_info: Optional[SimpleNamespace] = None


def get_worker_info() -> Optional[SimpleNamespace]:
    return _info


def make_fetcher(dataset: Any, auto_collation: bool, collate_fn: Any) -> Any:
    kind = fetch._MapDatasetFetcher if hasattr(dataset, "__getitem__") else fetch._IterableDatasetFetcher
    return kind(dataset, auto_collation, collate_fn)


def _worker_loop(dataset: Any, indices: Any, results: Any, auto_collation: bool, collate_fn: Any, number: int) -> None:
    global _info
    _info = SimpleNamespace(id=number, dataset=dataset)
    fetcher = make_fetcher(dataset, auto_collation, collate_fn)
    while (task := indices.get()) is not None:
        place, index = task
        try:
            results.put((place, number, fetcher.fetch(index)))
        except StopIteration:
            results.put((place, number, StopIteration()))
        except Exception as error:
            results.put((place, number, error))
