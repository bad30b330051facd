"""Generators, coroutines and async generators: true durations, and nothing about them changes."""

from support import Run, lasted

PROGRAM = """
    import asyncio, inspect, json, time, types, warnings
    from weftline import trace, span

    warnings.simplefilter("always")

    @trace
    def numbers(n):
        try:
            for i in range(n):
                time.sleep(0.005)
                got = yield i
                if got is not None:
                    yield got * 10
        finally:
            time.sleep(0.001)
        return "result"

    @trace(steps=True)
    def stepped():
        yield 1
        yield 2

    @trace
    def breaks():
        yield 1
        raise ValueError("broken")

    @trace
    async def sleeps(n):
        await asyncio.sleep(0.03)
        return n

    @trace(args=True, steps=False)
    async def quiet(x):
        await asyncio.sleep(0)
        return x

    @trace
    async def cancelled():
        await asyncio.sleep(10)

    @trace
    async def items(n):
        try:
            for i in range(n):
                await asyncio.sleep(0.005)
                got = yield i
                if got is not None:
                    yield got * 10
        except KeyError:
            yield "caught"

    @trace
    @types.coroutine
    def old_style():
        yield

    @trace
    async def uses_old_style():
        await old_style()
        return "old"

    class Things:
        @trace
        async def method(self): return self

    def main():
        results = {}
        results["kinds"] = [inspect.isgeneratorfunction(numbers), inspect.iscoroutinefunction(sleeps),
                            inspect.isasyncgenfunction(items), inspect.iscoroutinefunction(Things().method),
                            inspect.isgenerator(numbers(1)), inspect.isasyncgen(items(1)), numbers(1).__name__]

        def delegates():
            results["result"] = yield from numbers(2)
        results["values"] = list(delegates())
        sent = numbers(3)
        results["sent"] = [next(sent), sent.send(4), next(sent)]
        sent.close()
        thrown = numbers(3)
        next(thrown)
        try:
            thrown.throw(KeyError("in"))
        except KeyError as error:
            results["thrown"] = repr(error)
        results["stepped"] = list(stepped())
        try:
            list(breaks())
        except ValueError as error:
            results["broken"] = repr(error)
        try:
            numbers()
        except TypeError as error:
            results["binding"] = "missing 1 required positional argument" in str(error)

        results["slept"] = asyncio.run(sleeps(5))

        async def together():
            return await asyncio.gather(sleeps(1), sleeps(2), quiet(3))
        results["together"] = asyncio.run(together())

        async def cancels():
            task = asyncio.create_task(cancelled())
            await asyncio.sleep(0.01)
            task.cancel()
            try:
                await task
            except asyncio.CancelledError:
                return "cancelled"
        results["cancelled"] = asyncio.run(cancels())

        async def goes_through():
            seen = [item async for item in items(2)]
            sent = items(3)
            seen += [await sent.__anext__(), await sent.asend(4), await sent.athrow(KeyError())]
            await sent.aclose()
            closed = items(3)
            seen.append(await closed.__anext__())
            await closed.aclose()
            return seen
        results["items"] = asyncio.run(goes_through())
        results["old"] = asyncio.run(uses_old_style())

        async def blocks():
            async with span("block", k=1) as block:
                await asyncio.sleep(0.01)
                block.update(later=2)
            async for item in trace.iter(items(2), name="loop"):
                await asyncio.sleep(0.004)
        asyncio.run(blocks())

        with warnings.catch_warnings(record=True) as caught:
            sleeps(1)
            numbers(1)
        results["warned"] = [str(warning.message) for warning in caught]
        print(json.dumps(results))

    if __name__ == "__main__":
        main()
"""


def test_they_behave_as_if_untraced(traced: Run) -> None:
    assert traced.said() == {
        "kinds": [True, True, True, True, True, True, "numbers"],
        "result": "result",
        "values": [0, 1],
        "sent": [0, 40, 1],
        "thrown": "KeyError('in')",
        "stepped": [1, 2],
        "broken": "ValueError('broken')",
        "binding": True,
        "slept": 5,
        "together": [1, 2, 3],
        "cancelled": "cancelled",
        "items": [0, 1, 0, 40, "caught", 0],
        "old": "old",
        "warned": ["coroutine 'sleeps' was never awaited"],
    }


def test_generators(traced: Run) -> None:
    # The one that only `isgenerator` saw never began, nor did the one that was dropped.
    whole, sent, thrown = traced.all("numbers")
    assert [whole.phase, sent.phase, thrown.phase] == ["life"] * 3
    lasted(whole, 11)
    assert whole.args["steps"] == 3 and whole.args["busy_ns"] >= 11_000_000
    assert sent.args["closed"] is True and "error" not in sent.args
    assert thrown.args["error"] == "KeyError" and "closed" not in thrown.args


def test_steps_are_spans_if_wanted(traced: Run) -> None:
    life = traced.life("stepped")
    steps = [event for event in traced.all("stepped") if event.phase == "X"]
    assert len(steps) == life.args["steps"] == 3
    assert all(life.start <= step.start and step.end <= life.end + 1 for step in steps)


def test_errors_end_a_life(traced: Run) -> None:
    assert traced.life("breaks").args["error"] == "ValueError"
    assert traced.life("cancelled").args["error"] == "CancelledError"


def test_coroutines(traced: Run) -> None:
    lives = [event for event in traced.all("sleeps") if event.phase == "life"]
    steps = [event for event in traced.all("sleeps") if event.phase == "X"]
    assert len(lives) == 3
    for life in lives:
        lasted(life, 30)
        # The coroutine itself did next to nothing: it waited.
        assert life.args["steps"] == 2 and life.args["busy_ns"] < life.duration * 1000
    assert len(steps) == 6
    quiet = traced.life("quiet")
    assert quiet.args["x"] == 3 and [event.phase for event in traced.all("quiet")] == ["life"]
    assert len({life.id for life in lives}) == 3


def test_async_generators(traced: Run) -> None:
    lives = [event for event in traced.all("items") if event.phase == "life"]
    lasted(lives[0], 10)
    # The second and the third were left before their end.
    assert [life.args.get("closed", False) for life in lives] == [False, True, True, False]
    assert not any("error" in life.args for life in lives)


def test_async_blocks_and_loops(traced: Run) -> None:
    block = traced.life("block")
    lasted(block, 10)
    assert block.args == {"k": 1, "later": 2}
    assert [event.args for event in traced.all("loop")] == [{"index": 0}, {"index": 1}]
    bodies = traced.all("loop.body")
    assert [body.args for body in bodies] == [{"index": 0}, {"index": 1}]
    for body in bodies:
        lasted(body, 4)
