"""Data loaders: batch → worker → item → file can be joined. With a stand-in for torch's loader: see standin.py."""

from pathlib import Path

import pytest
import support
from support import Run

PROGRAM = f"""
    import json, sys
    sys.path.insert(0, {str(Path(__file__).parent)!r})
    from standin import DataLoader
    from weftline.torch import traced, traced_dataset

    class Files:
        def __init__(self, names): self.names = names
        def __len__(self): return len(self.names)
        def __getitem__(self, index):
            with open(self.names[index]) as file:
                return file.read()

    class Stream:
        def __iter__(self): return iter("abc")

    class Whole(Files):
        def __getitems__(self, indices): return [self[index] for index in indices]

    def init(worker): pass

    def main():
        names = [f"item{{n}}.txt" for n in range(7)]
        for name in names:
            with open(name, "w") as file:
                file.write(name)
        loader = DataLoader(Files(names), batch_size=2, num_workers=2, worker_init_fn=init)
        recorded = traced(loader)
        results = {{"length": len(recorded), "size": recorded.batch_size}}
        results["epochs"] = [[batch for batch in recorded] for _ in range(2)]
        results["untouched"] = type(loader.dataset) is Files and type(loader.batch_sampler).__name__ == "BatchSampler"
        results["spawned"] = list(traced(DataLoader(Files(names[:2]), 2, 1, context="spawn")))
        results["alone"] = list(traced(DataLoader(Whole(names[:3]), 2)))
        results["stream"] = list(traced(DataLoader(Stream())))
        results["any order"] = list(traced(DataLoader(Files(names[:1]), in_order=False)))
        dataset = traced_dataset(Files(names))
        results["dataset"] = [isinstance(dataset, Files), dataset[3], len(dataset), len(list(dataset))]
        results["list"] = list(traced([1, 2]))
        print(json.dumps(results))

    if __name__ == "__main__":
        main()
"""


def test_batches_are_those_of_the_loader(traced: Run) -> None:
    names = [f"item{n}.txt" for n in range(7)]
    batches = [names[0:2], names[2:4], names[4:6], names[6:7]]
    assert traced.said() == {
        "length": 4,
        "size": 2,
        "epochs": [batches, batches],
        "untouched": True,
        "spawned": [names[:2]],
        "alone": [names[:2], names[2:3]],
        "stream": [["a"], ["b"], ["c"]],
        "any order": [names[:1]],
        "dataset": [True, "item3.txt", 7, 7],
        "list": [1, 2],
    }
    assert traced.errors == ""


@pytest.mark.parametrize("epoch", [0, 1])
@pytest.mark.parametrize("batch", range(4))
def test_batch_to_file(traced: Run, epoch: int, batch: int) -> None:
    """Follows one batch from the loop that waited for it to the files that its items came from."""
    numbers = {"epoch": epoch, "batch": batch}
    by_loop = [event for event in traced.all("fetch") if numbers.items() <= event.args.items()]
    made = [event for event in traced.all("batch") if numbers.items() <= event.args.items() and event.args.get("worker") is not None]
    fetch, made_by = by_loop[0], [event for event in made if event.pid != by_loop[0].pid][0]
    assert made_by.args["worker"] == batch % 2 and made_by.args["items"] == (1 if batch == 3 else 2)
    body = [event for event in traced.all("fetch.body") if event.args == fetch.args and event.pid == fetch.pid][0]
    assert fetch.end <= body.start + 1 and made_by.start <= fetch.end
    items = [event for event in traced.all("item") if made_by.holds(event) and event.tid == made_by.tid]
    assert [event.args for event in items] == [
        {**numbers, "worker": batch % 2, "item": item} for item in range(batch * 2, min(batch * 2 + 2, 7))
    ]
    for item in items:
        opened = [e for e in traced.everything if e.category == "POSIX" and e.name.startswith("open") and item.holds(e)]
        assert [event.tid for event in opened] == [item.tid]


def test_other_loaders(traced: Run) -> None:
    assert [event.args["item"] for event in traced.all("item") if set(event.args) == {"item"}] == [0, 1, 2, 3, *range(7)]
    whole = [event for event in traced.all("batch") if "worker" not in event.args]
    assert [event.args for event in whole][:2] == [{"epoch": 0, "batch": 0, "items": 2}, {"epoch": 0, "batch": 1, "items": 1}]
    assert [event.args for event in traced.all("fetch") if "index" in event.args] == [{"index": 0, "epoch": 0}]


def test_spawned_workers(traced: Run) -> None:
    spawned = [event for event in traced.all("batch") if event.args == {"epoch": 0, "batch": 0, "worker": 0, "items": 2}]
    assert len({event.pid for event in spawned}) == 2


def test_without_recording(tmp_path: Path) -> None:
    said = support.untraced(PROGRAM, tmp_path)
    assert '"untouched": true' in said
