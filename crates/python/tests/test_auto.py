"""Data loaders of programs that do not know of Weftline: recorded under ``weft run``, and the program does the same with and without.

With a stand-in for torch (standin_torch), or with torch itself where ``WEFT_TORCH_PYTHON`` names a Python that has it and the package.
"""

import os
from pathlib import Path

import pytest
import support
from support import Run

STANDIN = str(Path(__file__).parent / "standin_torch")
TORCH = os.environ.get("WEFT_TORCH_PYTHON")

PROGRAM = """
    import json, os, pickle, sys
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    class Files:
        def __init__(self, names): self.names = names
        def __len__(self): return len(self.names)
        def __getitem__(self, index):
            assert type(self) is Files
            with open(self.names[index]) as file:
                return file.read()

    class Whole(Files):
        def __getitems__(self, indices):
            assert type(indices) is list, type(indices)
            return [f"{index}" for index in indices]

    class Stream(IterableDataset):
        def __iter__(self): return iter(["a", "b", "c"])

    class Broken(Files):
        def __getitem__(self, index):
            raise KeyError("no such item") if index == 1 else ValueError(index)

    def kept(items):
        assert type(items) is list
        return items

    def main():
        names = [f"item{n}.txt" for n in range(7)]
        for name in names:
            with open(name, "w") as file:
                file.write(name)
        results = {}
        for workers in 0, 2, 8:
            for context in ([None] if workers == 0 else ["fork", "spawn"]):
                loader = DataLoader(Files(names), batch_size=2, num_workers=workers, multiprocessing_context=context, collate_fn=kept)
                epochs = [list(loader)]
                iterator = iter(loader)
                epochs.append([batch for batch in iterator])
                results[f"{workers} {context}"] = epochs
                results[f"types {workers} {context}"] = [type(iterator).__name__, type(loader.dataset).__name__, len(pickle.dumps(loader.dataset)) > 0]
        persistent = DataLoader(Files(names), batch_size=4, num_workers=1, persistent_workers=True, collate_fn=kept)
        results["persistent"] = [list(persistent), list(persistent)]
        results["whole"] = list(DataLoader(Whole(names), batch_size=3, collate_fn=kept))
        results["stream"] = [list(DataLoader(Stream(), batch_size=2, num_workers=n, collate_fn=kept)) for n in (0, 1)]
        results["one by one"] = list(DataLoader(Files(names), batch_size=None))
        for workers in 0, 1:
            try:
                list(DataLoader(Broken(names), batch_size=2, num_workers=workers))
            except Exception as error:
                results[f"error {workers}"] = type(error).__name__
        print(json.dumps(results))

    if __name__ == "__main__":
        main()
"""


def variables() -> dict[str, str]:
    return {} if TORCH else {"PYTHONPATH": STANDIN}


@pytest.fixture(autouse=True)
def its_python(monkeypatch: pytest.MonkeyPatch) -> None:
    if TORCH:
        monkeypatch.setattr(support.sys, "executable", TORCH)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[Run, str]:
    """The program recorded, and what it prints when nobody records."""
    with pytest.MonkeyPatch.context() as patch:
        if TORCH:
            patch.setattr(support.sys, "executable", TORCH)
        place = tmp_path_factory.mktemp("auto")
        return support.run(PROGRAM, place, **variables()), support.untraced(PROGRAM, place / "alone", **variables())


def test_the_program_does_not_notice(both: tuple[Run, str]) -> None:
    traced, untraced = both
    assert traced.output + traced.errors == untraced
    assert traced.said()["error 1"] == traced.said()["error 0"] == "ValueError"


def test_every_batch_is_fetched_once(both: tuple[Run, str]) -> None:
    """4 batches an epoch by 5 kinds of workers, 2 epochs; the others in the order of the program."""
    traced, _ = both
    fetches = [event for event in traced.all("fetch") if event.category == "dataloader"]
    several = [{"epoch": epoch, "batch": batch} for _ in range(5) for epoch in range(2) for batch in range(4)]
    persistent = [{"epoch": epoch, "batch": batch} for epoch in range(2) for batch in range(2)]
    whole, stream, single = range(3), range(2), range(7)
    others = [{"epoch": 0, "batch": batch} for numbers in (whole, stream, stream, single) for batch in numbers]
    numbers = [{name: event.args[name] for name in ("epoch", "batch")} for event in fetches]
    assert numbers == [*several, *persistent, *others]


@pytest.mark.parametrize("workers", [2, 8])
def test_batch_to_file(both: tuple[Run, str], workers: int) -> None:
    """From the loop that waited to the worker, its items and the files that they came from."""
    traced, _ = both
    fetches = [event for event in traced.all("fetch") if "worker" in event.args]
    # Forked workers first: two epochs of four batches, then spawned ones.
    first = 0 if workers == 2 else 16
    for spawned in (False, True):
        for fetch in fetches[first + 8 * spawned :][:8]:
            numbers = {name: fetch.args[name] for name in ("epoch", "batch", "worker")}
            assert numbers["worker"] == numbers["batch"] % workers
            made = [event for event in traced.all("batch") if event.args.items() >= numbers.items() and event.end <= fetch.end + 1]
            batch = made[-1]
            assert batch.pid != fetch.pid and batch.args["items"] == (1 if numbers["batch"] == 3 else 2)
            items = [event for event in traced.all("item") if batch.holds(event) and event.tid == batch.tid]
            assert [event.args for event in items] == [
                {**numbers, "item": item} for item in range(numbers["batch"] * 2, min(numbers["batch"] * 2 + 2, 7))
            ]
            for item in items:
                opened = [e for e in traced.everything if e.category == "POSIX" and e.name.startswith("open") and item.holds(e)]
                assert len(opened) == 1


def test_steps_lie_between_fetches(both: tuple[Run, str]) -> None:
    traced, _ = both
    fetches, steps = traced.all("fetch"), traced.all("step")
    assert len(steps) == len(fetches)
    for fetch, step in zip(fetches, steps):
        assert fetch.end <= step.start + 1 and step.args == {"epoch": fetch.args["epoch"], "step": fetch.args["batch"]}


def test_explicit_loaders_are_recorded_once(tmp_path: Path) -> None:
    program = """
        from torch.utils.data import DataLoader
        from weftline.torch import traced

        assert [list(batch) for batch in traced(DataLoader([1, 2, 3], batch_size=2))] == [[1, 2], [3]]
    """
    run = support.run(program, tmp_path, **variables())
    assert [len(run.all(name)) for name in ("fetch", "batch", "item", "step")] == [2, 2, 3, 0]


@pytest.mark.parametrize("how", ["WEFT_AUTO=0", "--no-auto"])
def test_nobody_is_forced(tmp_path: Path, how: str) -> None:
    program = """
        import sys
        from torch.utils.data import DataLoader

        assert list(DataLoader([1, 2, 3], batch_size=None)) == [1, 2, 3]
        assert "weftline" not in sys.modules and "weftline_auto" not in sys.modules
    """
    options = ("--no-auto",) if how == "--no-auto" else ()
    run = support.run(program, tmp_path, options=options, **variables(), **({} if options else {"WEFT_AUTO": "0"}))
    assert run.all("fetch") == []


def test_programs_without_a_loader_import_nothing(tmp_path: Path) -> None:
    support.run("import sys; assert 'weftline_auto' in sys.modules and 'weftline' not in sys.modules", tmp_path)


def test_another_torch_is_left_alone(tmp_path: Path) -> None:
    """Modules of the same names with nothing known in them."""
    for name, text in [
        ("torch/__init__.py", ""),
        ("torch/utils/__init__.py", ""),
        ("torch/utils/data/__init__.py", "from .dataloader import DataLoader"),
        ("torch/utils/data/dataloader.py", "class DataLoader(list): pass"),
    ]:
        path = tmp_path / "other" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    program = """
        import inspect
        import torch.utils.data.dataloader as module

        assert list(module.DataLoader([1, 2])) == [1, 2]
        assert type(module.__loader__).__name__ == type(module.__spec__.loader).__name__ == "SourceFileLoader"
        assert "class DataLoader" in inspect.getsource(module)
    """
    support.run(program, tmp_path, PYTHONPATH=str(tmp_path / "other"))
