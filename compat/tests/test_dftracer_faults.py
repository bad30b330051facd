"""The faults of the original that are not repeated here; the numbers are those of the reference's section 7."""

import textwrap

import pytest
from support import SLACK_US, annotations_of, durations, one_duration, read, select

HEAD = """
import asyncio, threading, time
from dftracer.python import dftracer, dft_fn, ai
log = dftracer.initialize_log()
d = dft_fn("C")
"""


def record(runner, body, **given):
    runner.dftracer(textwrap.dedent(HEAD) + textwrap.dedent(body), **given)
    return runner.events()


# 7.7: name of the fault, a program, the events that it must leave.
CASES = {
    "a method step and an epoch that is None": (
        """
        class Trainer:
            epoch = None
            def step(self): pass
            image_idx = 3
            @d.log
            def run(self): return "ran"
            @property
            def image_size(self): raise RuntimeError("not ready")
        assert Trainer().run() == "ran"
        """,
        [("C", "Trainer.run", {"image_idx": 3})],
    ),
    "arguments win over defaults": (
        """
        @d.log
        def read(n, step=0, epoch=None): return n
        read(5, step=9); read(5, 8); read(5, epoch=1)
        """,
        [
            ("C", "read", {"step": 9, "epoch": None}),
            ("C", "read", {"step": 8, "epoch": None}),
            ("C", "read", {"step": 0, "epoch": 1}),
        ],
    ),
    "the first argument of a plain function counts": (
        """
        @d.log
        def work(epoch, step=0): pass
        work(1, step=7)
        """,
        [("C", "work", {"epoch": 1, "step": 7})],
    ),
    "values stay with their function": (
        """
        @d.log
        def first(step): pass
        @d.log
        def second(): pass
        class K:
            @d.log_init
            def __init__(self): pass
        first(7); second(); K()
        """,
        [("C", "first", {"step": 7}), ("C", "second", {}), ("C", "K.__init__", {})],
    ),
    "what is updated during a call belongs to that call": (
        """
        @d.log
        def outer():
            d.update(step=1)
            inner()
            d.update(args={"late": True})
        @d.log
        def inner(): d.update(step=2)
        @d.log
        def after(): pass
        outer(); after()
        with d:
            d.update(epoch=5)
        after()
        d.update(epoch=6)
        after()
        """,
        [
            ("C", "outer", {"step": 1, "late": True}),
            ("C", "inner", {"step": 2}),
            ("C", "after", {}),
            ("C", "<module>", {"epoch": 5}),
            ("C", "after", {}),
            ("C", "after", {"epoch": 6}),
        ],
    ),
    "exceptions are told and go on": (
        """
        @d.log
        def fails(): raise KeyError("x")
        @d.log_static
        def fails_static(step): raise ValueError("x")
        class K:
            @d.log_init
            def __init__(self): raise OSError("x")
        @ai.compute.forward
        def fails_in_node(): raise RuntimeError("x")
        def block():
            with d: raise StopIteration
        def fetch():
            yield 1
            raise ArithmeticError("x")
        def loop(): list(d.iter(fetch()))
        for function, error in ((fails, KeyError), (lambda: fails_static(3), ValueError), (K, OSError),
                                (fails_in_node, RuntimeError), (block, StopIteration), (loop, ArithmeticError)):
            try: function()
            except error: pass
            else: raise AssertionError(function)
        """,
        [
            ("C", "fails", {"error": "KeyError"}),
            ("C", "fails_static", {"step": 3, "error": "ValueError"}),
            ("C", "K.__init__", {"error": "OSError"}),
            ("compute", "forward", {"error": "RuntimeError"}),
            ("C", "<module>", {"error": "StopIteration"}),
            ("C", "loop.iter", {"step": 1}),
            ("C", "loop.yield", {"step": 1}),
            ("C", "loop.iter", {"step": 2, "error": "ArithmeticError"}),
        ],
    ),
    "results come back": (
        """
        @d.log_init
        def setup(): return "value"
        assert setup() == "value"
        """,
        [("C", "setup", {})],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_fault_is_not_repeated(case, runner):
    body, expected = CASES[case]
    assert annotations_of(record(runner, body), "C", "compute") == expected


def test_threads_do_not_mix(runner):
    """Four threads tell different values through one `dft_fn`; every event has those of its own thread."""
    events = record(
        runner,
        """
        barrier = threading.Barrier(4)
        @d.log
        def work(step, epoch):
            barrier.wait()
            d.update(args={"again": step})
        def run(step):
            for epoch in range(50):
                work(step, epoch)
                with d:
                    barrier.wait()
                    d.update(step=step)
        threads = [threading.Thread(target=run, args=(step,)) for step in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        """,
    )
    work = [event for event in events if event["name"] == "work"]
    assert len(work) == 200 and all(event["args"]["again"] == event["args"]["step"] for event in work)
    step_of = {event["tid"]: event["args"]["step"] for event in work}
    assert sorted(step_of.values()) == [0, 1, 2, 3]
    blocks = [event for event in events if event["name"] == "<module>" or event["name"] == "dft_fn"]
    assert len(blocks) == 200 and all(event["args"]["step"] == step_of[event["tid"]] for event in blocks)


def test_tasks_do_not_mix(runner):
    """Coroutines that overlap on one thread: each has its own duration and values, in functions as in blocks."""
    events = record(
        runner,
        """
        @d.log
        async def work(step, delay):
            await asyncio.sleep(delay)
            d.update(args={"again": step})
        async def block(step, delay):
            with d:
                await asyncio.sleep(delay)
                d.update(step=step)
        async def main():
            await asyncio.gather(work(1, 0.3), work(2, 0.1), work(3, 0.2))
            await asyncio.gather(block(1, 0.3), block(2, 0.1), block(3, 0.2))
        asyncio.run(main())
        """,
    )
    lives = {event["args"]["step"]: event for event in events if event["name"] == "work" and event["ph"] == "b"}
    assert {step: life["args"].get("again") for step, life in lives.items()} == {1: 1, 2: 2, 3: 3}
    assert len({life["id"] for life in lives.values()}) == 3
    for duration, asked in zip(durations(events, "work"), (300_000, 100_000, 200_000)):
        assert asked <= duration <= asked + SLACK_US
    blocks = {event["args"]["step"]: event for event in events if event["name"] == "<module>" and event["ph"] in "Xb"}
    assert sorted(blocks) == [1, 2, 3]
    assert [life // 100_000 for life in sorted(durations(events, "<module>"))] == [1, 2, 3]


def test_everything_has_its_true_duration(runner):
    events = record(
        runner,
        """
        import inspect
        @d.log
        def call(): time.sleep(0.05)
        @d.log
        async def coroutine():
            await asyncio.sleep(0.05)
            return "result"
        @d.log
        def generator():
            got = yield 1
            assert got == "sent", got
            time.sleep(0.05)
            yield 2
            return "returned"
        @ai.dataloader.fetch
        def fetch():
            for item in range(2):
                time.sleep(0.025)
                yield item
        @d.log
        async def async_generator():
            for item in range(2):
                await asyncio.sleep(0.025)
                got = yield item
                assert got is None or got == "sent"
        call()
        assert inspect.iscoroutinefunction(coroutine) and asyncio.run(coroutine()) == "result"
        def delegate(): return (yield from generator())
        steps = delegate()
        assert next(steps) == 1 and steps.send("sent") == 2
        try: next(steps)
        except StopIteration as stop: assert stop.value == "returned"
        assert list(fetch()) == [0, 1]
        async def consume():
            steps = async_generator()
            assert [await steps.__anext__(), await steps.asend("sent")] == [0, 1]
            assert [item async for item in steps] == []
        asyncio.run(consume())
        """,
    )
    for name in ("call", "coroutine", "generator", "fetch", "async_generator"):
        one_duration(events, name, 50_000)


def test_generators_that_are_left_early_end(runner):
    events = record(
        runner,
        """
        closed = []
        @d.log
        def numbers():
            try:
                while True: yield 1
            finally: closed.append(1)
        for number in numbers(): break
        steps = numbers()
        next(steps)
        try: steps.throw(KeyError("x"))
        except KeyError: pass
        assert closed == [1, 1]
        never = numbers()
        del never
        """,
    )
    assert [args.get("error") for _, _, args in annotations_of(events, "C")] == [None, "KeyError"]


def test_any_value_can_be_told(runner):
    """7.4: quotes, newlines, NaN, big integers, long texts in names, keys and values; every line is valid JSON."""
    events = record(
        runner,
        r"""
        class Bad:
            def __repr__(self): raise RuntimeError("no")
            __str__ = __repr__
        values = {"big": 5_000_000_000, "negative": -(2 ** 62), "unsigned": 2 ** 64 - 1, "huge": 10 ** 30,
                  "float": 0.123456789012, "nan": float("nan"), "inf": float("inf"),
                  'quo"te': 'say "hi"', "new\nline": "a\nb\\", "long": "x" * 20_000,
                  "bad": Bad(), "list": list(range(1000)), "bytes": b"\xff\x00", "surrogate": "\udc80", "é": "日本"}
        with dft_fn('ca"t', name='na"me\n') as block: block.update(args=values)
        @d.log
        def after(epoch, step): pass
        after("not a number", Bad())
        log.log_metadata_event('ke"y', "x" * 20_000)
        """,
    )
    (args,) = [event["args"] for event in events if event["name"] == 'na"me\n' and event["cat"] == 'ca"t']
    exact = {"big": 5_000_000_000, "negative": -(2**62), "unsigned": 2**64 - 1, "float": 0.123456789012}
    exact |= {'quo"te': 'say "hi"', "new\nline": "a\nb\\", "é": "日本"}
    assert exact.items() <= args.items()
    assert str(10**30) in str(args["huge"]) and args["long"].startswith("x" * 500) and "20000" in args["long"]
    assert set(args) >= {"nan", "inf", "bad", "list", "bytes", "surrogate"}
    (after,) = [event["args"] for event in events if event["name"] == "after"]
    assert after["epoch"] == "not a number" and "Bad" in after["step"]


def test_nothing_is_left_beside_the_trace(runner):
    """The original writes `dft.log` into the working directory, even when it is off, and fails where it cannot."""
    program = """
        import os
        os.chdir("/proc")
        from dftracer.python import dftracer, dft_fn
        log = dftracer.initialize_log()
        @dft_fn("C").log
        def work(): return 1
        assert work() == 1
        log.finalize()
    """
    runner.run(program, DFTRACER_ENABLE=0)
    assert [path.name for path in runner.directory.iterdir()] == ["app.py"]
    runner.dftracer(program)
    (trace,) = [path.name for path in runner.directory.iterdir() if path.name != "app.py"]
    assert trace.startswith("out-app-") and trace.endswith(".pfw.gz")


@pytest.mark.parametrize(("signal", "status"), [("SIGINT", -2), ("SIGTERM", -15), ("SIGHUP", -1)])
@pytest.mark.parametrize("module", ["dftracer", "perfflowaspect"])
def test_the_file_is_there_when_an_interrupted_process_is_gone(module, signal, status, runner):
    """Ctrl-C that nobody catches, `kill`, a terminal that was closed."""
    begin = {
        "dftracer": "from dftracer.python import dftracer, dft_fn; dftracer.initialize_log(); decorated = dft_fn('C').log",
        "perfflowaspect": "from perfflowaspect.aspect import critical_path; decorated = critical_path()",
    }[module]
    program = f"""
        import os, signal
        {begin}
        @decorated
        def work(): return 1
        work()
        os.kill(os.getpid(), signal.{signal})
        signal.pause()
        """
    runner.dftracer(program, status=status, PERFFLOW_OPTIONS="log-event=compact")
    pattern = {"dftracer": "out-*.pfw.gz", "perfflowaspect": "perfflow.*.pfw"}[module]
    (path,) = runner.files(pattern)
    assert len(select(read(path), name="work")) == 1
    assert not [path for path in runner.directory.iterdir() if path.name.endswith(".weft")]


@pytest.mark.parametrize(("signal", "status"), [("SIGINT", 0), ("SIGTERM", -15), ("SIGABRT", -6)])
def test_signals_are_the_program_s_own(signal, status, runner):
    """Whatever the program knows of them: Ctrl-C raises KeyboardInterrupt, and others end the process as ever."""
    runner.dftracer(
        f"""
        import os, signal
        before = [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGABRT, signal.SIGUSR1)]
        from dftracer.python import dftracer, dft_fn
        log = dftracer.initialize_log()
        assert before == [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGABRT, signal.SIGUSR1)]
        @dft_fn("C").log
        def work(): return 1
        work()
        try: os.kill(os.getpid(), signal.{signal}); signal.pause()
        except KeyboardInterrupt: print("interrupted")
        """,
        status=status,
    )
