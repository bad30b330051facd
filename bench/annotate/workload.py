"""One front-end's cost per annotation, measured by the annotated program itself: workload.py FRONT-END CALLS.

Prints one JSON object: nanoseconds of the thread's CPU time per call that the annotation adds, by kind of annotation. Bare and annotated
loops alternate, and each annotated loop is compared with the bare loop before it, so that a slow moment hits both.
"""

import itertools
import json
import os
import statistics
import sys
import time

ROUNDS = 7


def none():
    pass


def three(a, b, c):
    pass


class Methods:
    """The annotated forms of one front-end; what it has no form for stays None."""

    none = None
    three = None
    block = None
    items = None


def weft() -> Methods:
    import weftline

    forms = Methods()
    forms.none = weftline.trace(none)
    forms.three = weftline.trace(three)
    forms.block = lambda: weftline.span("block")
    forms.items = lambda items: weftline.trace.iter(items, name="loop")
    return forms


def dftracer() -> Methods:
    from dftracer.python import dft_fn, dftracer as logger

    logger.initialize_log(None, None, -1)
    function = dft_fn("bench")
    forms = Methods()
    forms.none = function.log(none)
    forms.three = function.log(three)
    forms.block = lambda: dft_fn("bench", name="block")
    forms.items = lambda items: function.iter(items, name="loop")
    return forms


def perfflow() -> Methods:
    from perfflowaspect import aspect

    forms = Methods()
    forms.none = aspect.critical_path()(none)
    forms.three = aspect.critical_path()(three)
    return forms


def viztracer() -> Methods:
    from viztracer import VizTracer

    tracer = VizTracer(tracer_entries=3_000_000, verbose=0, log_gc=False, ignore_c_function=True)
    if os.environ.get("BENCH_ON"):
        tracer.start()
    forms = Methods()
    # It needs no decorator: every function that is called while it runs is traced.
    forms.none, forms.three = none, three
    forms.block = lambda: tracer.log_event("block")
    return forms


def call_none(function, calls):
    start = time.thread_time_ns()
    for _ in itertools.repeat(None, calls):
        function()
    return time.thread_time_ns() - start


def call_three(function, calls):
    start = time.thread_time_ns()
    for _ in itertools.repeat(None, calls):
        function(1, 2, 3)
    return time.thread_time_ns() - start


def enter_blocks(block, calls):
    start = time.thread_time_ns()
    if block is None:
        for _ in itertools.repeat(None, calls):
            pass
    else:
        for _ in itertools.repeat(None, calls):
            with block():
                pass
    return time.thread_time_ns() - start


def go_through(wrap, calls):
    items = range(calls)
    start = time.thread_time_ns()
    for _ in items if wrap is None else wrap(items):
        pass
    return time.thread_time_ns() - start


def bare_times(calls):
    """The bare loops; of VizTracer's they must be measured before it starts, since it traces all functions."""
    return {
        "function, no arguments": call_none(none, calls),
        "function, 3 arguments": call_three(three, calls),
        "context manager": enter_blocks(None, calls),
        "iterator item": go_through(None, calls),
    }


def annotated_times(forms, calls):
    times = {}
    for kind, form, loop in (
        ("function, no arguments", forms.none, call_none),
        ("function, 3 arguments", forms.three, call_three),
        ("context manager", forms.block, enter_blocks),
        ("iterator item", forms.items, go_through),
    ):
        if form is not None:
            times[kind] = loop(form, calls)
    return times


def main():
    name, calls = sys.argv[1], int(sys.argv[2])
    first_bare = bare_times(calls)
    forms = {"weft": weft, "dftracer": dftracer, "perfflow": perfflow, "viztracer": viztracer}[name]()
    annotated_times(forms, min(calls, 1000))
    added = {}
    for _ in range(ROUNDS):
        bare = first_bare if name == "viztracer" else bare_times(calls)
        for kind, spent in annotated_times(forms, calls).items():
            added.setdefault(kind, []).append((spent - bare[kind]) / calls)
    print(json.dumps({kind: statistics.median(samples) for kind, samples in added.items()}), flush=True)
    # What follows is not measured, and a front-end may take seconds to write its files.
    os._exit(0) if name == "viztracer" else None


if __name__ == "__main__":
    main()
