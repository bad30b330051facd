"""The parts of a training program: every one as decorator, context manager and iterator."""

import pytest
from support import Run, lasted

GROUPS = {
    "pipeline": ["epoch", "train", "evaluate", "test"],
    "compute": ["forward", "backward", "step"],
    "data": ["preprocess", "item"],
    "dataloader": ["fetch"],
    "comm": [
        "send", "receive", "barrier", "bcast", "reduce", "all_reduce", "gather", "all_gather", "scatter", "reduce_scatter",
        "all_to_all",
    ],
    "device": ["transfer"],
    "checkpoint": ["capture", "restart"],
}  # fmt: skip

PROGRAM = f"""
    import asyncio, threading, time
    from weftline import ai

    for group, parts in {GROUPS!r}.items():
        for name in parts:
            part = getattr(getattr(ai, group), name)

            @part
            def bare(): pass

            @part()
            def called(): pass

            @part(how="given")
            def given(): pass

            bare(), called(), given()
            with part:
                pass
            with part(how="with") as block:
                block.update(more=1)
            for _ in part.iter(range(1), how="iter"):
                pass

    def nested(depth):
        with ai.compute.step as block:
            block.update(depth=depth)
            time.sleep(0.002)
            if depth:
                nested(depth - 1)

    threads = [threading.Thread(target=nested, args=(2,), name=str(n)) for n in range(3)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]

    async def task(number):
        async with ai.device.transfer as block:
            block.update(number=number)
            await asyncio.sleep(0.01 * number)

    async def tasks():
        await asyncio.gather(*(task(number) for number in (3, 1, 2)))
    asyncio.run(tasks())

    try:
        with ai.checkpoint.capture:
            raise OSError("full")
    except OSError:
        pass
"""


@pytest.mark.parametrize(("group", "name"), [(group, name) for group, names in GROUPS.items() for name in names])
def test_every_part(traced: Run, group: str, name: str) -> None:
    spans = [event for event in traced.all(name) if event.category == group and event.phase == "X"]
    recorded = [event.args for event in spans][:6]
    assert recorded == [{}, {}, {"how": "given"}, {}, {"how": "with", "more": 1}, {"index": 0, "how": "iter"}]
    assert [event.args for event in traced.all(f"{name}.body") if event.category == group] == [{"index": 0, "how": "iter"}]


def test_nested_in_itself_by_many_threads(traced: Run) -> None:
    nested = [event for event in traced.all("step") if "depth" in event.args]
    assert len(nested) == 9
    for tid in {event.tid for event in nested}:
        outermost, middle, innermost = sorted((e for e in nested if e.tid == tid), key=lambda event: -event.args["depth"])
        assert outermost.holds(middle) and middle.holds(innermost)
        lasted(innermost, 2)


def test_tasks_do_not_mix(traced: Run) -> None:
    lives = [event for event in traced.all("transfer") if event.phase == "life"]
    assert len(lives) == 3
    for life in lives:
        lasted(life, 10 * life.args["number"])


def test_errors(traced: Run) -> None:
    assert [event.args for event in traced.all("capture")][-1] == {"error": "OSError"}
