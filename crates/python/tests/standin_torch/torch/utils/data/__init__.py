from .dataloader import DataLoader, IterableDataset, get_worker_info  # noqa: F401
