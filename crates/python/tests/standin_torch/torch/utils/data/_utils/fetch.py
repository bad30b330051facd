"""How a batch is made of a dataset."""

from typing import Any


class _BaseDatasetFetcher:
    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Any) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    def __init__(self, dataset: Any, auto_collation: bool, collate_fn: Any) -> None:
        super().__init__(dataset, auto_collation, collate_fn)
        self.dataset_iter = iter(dataset)

    def fetch(self, index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        items = [item for _, item in zip(index, self.dataset_iter)]
        if not items:
            raise StopIteration
        return self.collate_fn(items)


class _MapDatasetFetcher(_BaseDatasetFetcher):
    def fetch(self, index: Any) -> Any:
        if not self.auto_collation:
            return self.collate_fn(self.dataset[index])
        whole = getattr(self.dataset, "__getitems__", None)
        return self.collate_fn(whole(index) if whole else [self.dataset[one] for one in index])
