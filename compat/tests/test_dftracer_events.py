"""What each piece of the interface records: names, categories and arguments, as DFTracer 2.2 with metadata has them."""

import pytest
import weftline
from support import annotations_of, select

HEAD = """
    from dftracer.python import *
    log = dftracer.initialize_log()
    d = dft_fn("COMPUTE")
"""

# Each row: a program, and the events that it must leave, as (category, name, arguments).
CASES = {
    "functions": (
        """
        @d.log
        def plain(a): return a
        @d.log(name="renamed")
        def other(a, step=3): return a
        def outer():
            @d.log()
            def inner(): return 1
            return inner()
        assert (plain(1), other(2), other(2, step=9), outer(), d.log(lambda: 5)()) == (1, 2, 2, 1, 5)
        """,
        [
            ("COMPUTE", "plain", {}),
            ("COMPUTE", "renamed", {"step": 3}),
            ("COMPUTE", "renamed", {"step": 9}),
            ("COMPUTE", "outer.<locals>.inner", {}),
            ("COMPUTE", "<lambda>", {}),
        ],
    ),
    "methods": (
        """
        class K:
            @d.log_init
            def __init__(self, a, epoch=1): self.a = a
            @d.log
            def run(self, x): return x
            @d.log_static
            def bare(x, step=4): return x
            @staticmethod
            @d.log_static
            def below(x): return x
            @d.log_static()
            @staticmethod
            def above(x): return x
            @classmethod
            @d.log
            def of_class(cls): return cls
        k = K(1)
        assert (k.run(5), K.bare(1), K.below(2), K.above(3), k.above(3), K.of_class()) == (5, 1, 2, 3, 3, K)
        """,
        [
            ("COMPUTE", "K.__init__", {"epoch": 1}),
            ("COMPUTE", "K.run", {}),
            ("COMPUTE", "K.bare", {"step": 4}),
            ("COMPUTE", "K.below", {}),
            ("COMPUTE", "K.above", {}),
            ("COMPUTE", "K.above", {}),
            ("COMPUTE", "K.of_class", {}),
        ],
    ),
    "values of training code": (
        """
        class Holder:
            def __init__(self): self.epoch, self.step, self.image_idx, self.image_size = 4, 5, 6, (2, 3)
            @d.log
            def run(self): pass
            @d.log
            def run_step(self, step): pass
            def bound(self): pass
        Holder().run(); Holder().run_step(9); d.log(Holder().bound)()
        @d.log
        def all_four(epoch, step, *, image_idx=5, image_size=12): pass
        all_four(1, 2); all_four(1, step=2, image_idx=7, image_size=8)
        """,
        [
            ("COMPUTE", "Holder.run", {"epoch": 4, "step": 5, "image_idx": 6, "image_size": "(2, 3)"}),
            ("COMPUTE", "Holder.run_step", {"epoch": 4, "step": 9, "image_idx": 6, "image_size": "(2, 3)"}),
            ("COMPUTE", "Holder.bound", {"epoch": 4, "step": 5, "image_idx": 6, "image_size": "(2, 3)"}),
            ("COMPUTE", "all_four", {"epoch": 1, "step": 2, "image_idx": 5, "image_size": 12}),
            ("COMPUTE", "all_four", {"epoch": 1, "step": 2, "image_idx": 7, "image_size": 8}),
        ],
    ),
    "blocks": (
        """
        def caller():
            with dft_fn("block") as b:
                assert b.update(epoch=1, args={"x": "y", "n": 3, "f": 1.5, "b": True, "none": None, "l": [1, "a"]}) is b
        caller()
        with dft_fn("block", name="given", epoch=1, step=2, image_idx=3, image_size=4): pass
        by_hand = dft_fn("hand", "manual")
        by_hand.update(step=4, args={"t": TagValue("3", TagDType.INT, TagType.VALUE), "u": TagValue(1, TagDType.FLOAT)})
        by_hand.flush().reset().flush()
        with dft_fn("off", enable=False): pass
        """,
        [
            ("block", "caller", {"epoch": 1, "x": "y", "n": 3, "f": 1.5, "b": True, "none": None, "l": "[1, 'a']"}),
            ("block", "given", {"epoch": 1, "step": 2, "image_idx": 3, "image_size": 4}),
            ("hand", "manual", {"step": 4, "t": 3, "u": 1.0}),
            ("hand", "manual", {"step": 4, "t": 3, "u": 1.0}),
        ],
    ),
    "loops": (
        """
        assert list(d.iter("ab")) == ["a", "b"]
        for item in d.iter(iter([1, 2, 3]), name="named", iter_name="index"):
            if item == 1: break
        assert list(d.iter([7], include_yield=False)) == [7]
        assert list(dft_fn("off", enable=False).iter([7])) == [7]
        """,
        [
            ("COMPUTE", "loop.iter", {"step": 1}),
            ("COMPUTE", "loop.yield", {"step": 1}),
            ("COMPUTE", "loop.iter", {"step": 2}),
            ("COMPUTE", "loop.yield", {"step": 2}),
            ("COMPUTE", "named.iter", {"index": 1}),
            ("COMPUTE", "named.yield", {"index": 1}),
            ("COMPUTE", "loop.iter", {"step": 1}),
        ],
    ),
    "nodes of ai": (
        """
        @ai.compute.forward
        def forward(x): return x
        @ai.compute.backward(epoch=1, step=2, args={"q": 1})
        def backward(x): return x
        @ai.compute.backward
        def backward_again(x, step=3): return x
        assert (forward(1), backward(2), backward_again(3)) == (1, 2, 3)
        with ai.data.item(step=5): pass
        with ai.data.item: pass
        with data.io.open: pass
        with ai.comm.all_reduce(enable=False): pass
        with comm.all_reduce(): pass
        with ai.other.log: pass
        with ai: pass
        with device: pass
        with compute.forward.derive("loss"): pass
        class M:
            @ai.data.item.init
            def __init__(self): pass
            @checkpoint.capture
            def get(self, image_idx): pass
        M().get(4)
        """,
        [
            ("compute", "forward", {}),
            ("compute", "backward", {"epoch": 1, "step": 2, "q": 1}),
            ("compute", "backward", {}),
            ("data", "item", {"step": 5}),
            ("data", "item", {}),
            ("data", "data.io.open", {}),
            ("comm", "all_reduce", {}),
            ("other", "other.log", {}),
            ("ai_root", "ai_root", {}),
            ("device", "device", {}),
            ("compute", "forward.loss", {}),
            ("data", "item.init", {}),
            ("checkpoint", "capture", {}),
        ],
    ),
    "loops of ai": (
        """
        assert list(dataloader.fetch.iter("ab")) == ["a", "b"]
        for _ in dataloader.fetch.iter([1], include_block=False): pass
        for _ in dataloader.fetch.iter([1], include_iter=False, block_name="used"): pass
        for _ in pipeline.epoch.iter([1], iter_name="got"): pass
        """,
        [
            ("dataloader", "fetch.iter", {"count": 1}),
            ("dataloader", "fetch.block", {"count": 1}),
            ("dataloader", "fetch.iter", {"count": 2}),
            ("dataloader", "fetch.block", {"count": 2}),
            ("dataloader", "fetch.iter", {"count": 1}),
            ("dataloader", "used", {"count": 1}),
            ("pipeline", "got", {"count": 1}),
            ("pipeline", "epoch.block", {"count": 1}),
        ],
    ),
    "updates of ai": (
        """
        ai.update(epoch=3)
        with compute.step: pass
        compute.update(step=1, args={"lr": 0.5})
        with compute.forward: pass
        with data.item: pass
        child = ai.compute.derive("late")
        assert child is ai.compute.derive("late")
        with child: pass
        @compute.forward
        def decorated(): pass
        @compute.forward(step=9)
        def decorated_with_step(): pass
        ai.update(step=2)
        decorated(); decorated_with_step()
        """,
        [
            ("compute", "step", {"epoch": 3}),
            ("compute", "forward", {"epoch": 3, "step": 1, "lr": 0.5}),
            ("data", "item", {"epoch": 3}),
            ("compute", "compute.late", {"epoch": 3, "step": 1, "lr": 0.5}),
            ("compute", "forward", {"epoch": 3, "step": 2, "lr": 0.5}),
            ("compute", "forward", {"epoch": 3, "step": 9, "lr": 0.5}),
        ],
    ),
    "switches of ai": (
        """
        @compute.forward
        def forward(): return 1
        ai.compute.disable()
        assert forward() == 1
        with data.item: pass
        ai.disable()
        with data.item: pass
        assert list(data.item.iter([1])) == [1]
        ai.enable()
        assert forward() == 1
        """,
        [("data", "item", {}), ("compute", "forward", {})],
    ),
    "start and stop": (
        """
        import threading
        pipeline.train.start()
        pipeline.test.start(); pipeline.test.start(); pipeline.test.stop(); pipeline.test.stop()
        pipeline.test.stop()
        pipeline.train.stop()
        pipeline.evaluate.start()
        thread = threading.Thread(target=pipeline.evaluate.stop); thread.start(); thread.join()
        pipeline.epoch.start(); pipeline.epoch.reset(); pipeline.epoch.stop()
        """,
        [("pipeline", "train", {}), ("pipeline", "test", {}), ("pipeline", "test", {}), ("pipeline", "evaluate", {})],
    ),
    "events by hand": (
        """
        import dftracer.dftracer as native, dftracer.dftracer_dbg as dbg
        start = log.get_time()
        three = TagValue(3, TagDType.INT).value()
        log.log_event("first", "hand", start, 5, int_args={"a": three}, float_args={"f": (0, 1.5)})
        log.log_event("second", "hand", start + 10, 5, {"old": "style"})
        native.log_event("third", "hand", start + 20, 5, {"i": (0, 1)}, {"s": (1, "x")}, {"f": (2, 0.5)})
        dbg.log_event("fourth", "hand", start + 30, 5, string_args={"s": (1, "x")})
        assert native.enter_event() == 0 and native.exit_event() is None and native.get_config("nothing") == ""
        assert native.get_config("DFTRACER_ENABLE") == "1" and native.get_config("time_metric") == "US"
        """,
        [
            ("hand", "first", {"a": 3, "f": 1.5}),
            ("hand", "second", {"old": "style"}),
            ("hand", "third", {"i": 1, "s": "x", "f": 0.5}),
            ("hand", "fourth", {"s": "x"}),
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_events_are_told(case, runner):
    import textwrap

    body, expected = CASES[case]
    runner.dftracer(textwrap.dedent(HEAD) + textwrap.dedent(body))
    events = runner.events()
    assert annotations_of(events, *{row[0] for row in expected}, "off") == expected


def test_metadata_is_told(runner):
    runner.dftracer(
        """
        from dftracer.python import *
        log = dftracer.initialize_log()
        dft_fn("C").log_metadata("of function", "1")
        log.log_metadata_event('ke"y', "va\\nlue")
        log.set_app_metadata_int("batch", 5_000_000_000)
        log.set_app_metadata_string("model", "unet3d")
        log.mark_used("feature")
        pipeline.epoch.start(metadata=True); pipeline.epoch.stop(metadata=True)
        one = log.declare_entity("file", "a.npz", EntityStore.PARALLEL_FS, "/p/a.npz")
        assert one == log.declare_entity("file", "a.npz") != log.declare_entity("file", "b.npz")
        log.declare_entity_type("file", EntityRole.INPUT, "samples")
        log.relate_entities(EntityRelation.DERIVED_FROM, one, 7)
        with dft_fn("C", "reads") as block:
            assert block.uses("file", "a.npz") == one
            block.generates("tensor", 1)
        """
    )
    events = runner.events()
    metadata = {
        event["args"]["name"]: event["args"]["value"]
        for event in events
        if event["ph"] == "M" and event["name"] == "CM"
    }
    times = [metadata.pop(key) for key in ("epoch.start", "epoch.end")]
    assert int(times[0]) <= int(times[1])
    assert metadata == {
        "of function": "1",
        'ke"y': "va\nlue",
        "batch": 5_000_000_000,
        "model": "unet3d",
        "used": "feature",
    }
    first = next(event["args"] for event in events if event["name"] == "EH")
    assert {"type": "file", "key": "a.npz", "store": "PARALLEL_FS", "uri": "/p/a.npz"}.items() <= first.items()
    assert [event["args"] for event in events if event["name"] == "ET"] == [
        {"type": "file", "role": "INPUT", "description": "samples"}
    ]
    assert [event["args"]["relation"] for event in events if event["name"] == "ER"] == ["DERIVED_FROM"]
    (block,) = [event["args"] for event in events if event["name"] == "reads"]
    assert f'"USED": [{first["id"]}]' in block["relations"] and "GENERATED" in block["relations"]


def test_names_of_iterations(runner):
    """A name that says already what is told stays as it is."""
    from dftracer.python.ai_common import get_iter_block_name, get_iter_handle_name

    assert [get_iter_block_name(name) for name in ("test", "test.block", "a.block.b")] == [
        "test.block",
        "test.block",
        "a.block.b.block",
    ]
    assert [get_iter_handle_name(name) for name in ("test", "test.iter", "iter")] == [
        "test.iter",
        "test.iter",
        "iter.iter",
    ]


def test_times_of_elsewhere_are_kept(runner):
    """A program may tell what happened at other times, as a simulation does: before this machine was up, tomorrow."""
    done = runner.dftracer(
        """
        from dftracer.python import dftracer
        log = dftracer.initialize_log()
        now = log.get_time()
        times = [(1000, 500), (0, 7), (now - 3_600_000_000, 12), (now + 86_400_000_000, 9)]
        for number, (start, duration) in enumerate(times):
            log.log_event("e", "sim", start, duration, int_args={"n": number})
        print(now)
        """
    )
    now = int(done.stdout)
    found = {event["args"]["n"]: (event["ts"], event["dur"]) for event in runner.events(cat="sim")}
    assert found == {0: (1000, 500), 1: (0, 7), 2: (now - 3_600_000_000, 12), 3: (now + 86_400_000_000, 9)}


def test_a_process_has_one_name(runner):
    """However long its trace is: every stretch of it says whose it is, by a line of another name."""
    runner.dftracer(
        """
        from dftracer.python import dftracer, dft_fn
        log = dftracer.initialize_log()
        @dft_fn("C").log
        def work(): pass
        for _ in range(40_000): work()
        """
    )
    events = runner.events()
    assert len(select(events, name="process_name")) == 1 and len(select(events, name="process_identity")) > 2
    assert len(select(events, name="work")) == 40_000
    job = weftline.open(*runner.files()).report().job
    assert job["processes"] == 1 and job["events"] >= 40_000, job


@pytest.mark.parametrize("set_back_ns", [0, 60_000_000, -3_600_000_000_000])
def test_times_by_hand_are_kept(runner, set_back_ns):
    """Start and duration come from the program, and lie among the events that the recorder times itself, also when somebody sets the clock."""
    runner.dftracer(
        f"""
        import time
        from dftracer.python import dftracer, dft_fn, get_time_scale
        log = dftracer.initialize_log()
        assert get_time_scale() == 1e6
        wall = time.time_ns
        time.time_ns = lambda: wall() - {set_back_ns}
        with dft_fn("C", "around"):
            # get_time is floored to a microsecond, so a time that is taken at once may lie before the span around it.
            begun = start = log.get_time()
            while start < begun + 2:
                start = log.get_time()
            time.sleep(0.05)
            log.log_event("inside", "C", start, log.get_time() - start)
            log.log_event("given", "C", start + 1000, 12345)
        """
    )
    by_name = {event["name"]: event for event in runner.events(cat="C")}
    around, inside, given = by_name["around"], by_name["inside"], by_name["given"]
    assert around["ts"] <= inside["ts"] + 5 and inside["ts"] + inside["dur"] <= around["ts"] + around["dur"] + 5
    assert inside["dur"] >= 50_000
    assert abs(given["dur"] - 12345) <= 2 and abs(given["ts"] - inside["ts"] - 1000) <= 5
