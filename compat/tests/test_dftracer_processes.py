"""Processes: however they begin and end, their events are kept, each in a file of its own, without `finalize`."""

import textwrap

import pytest
from support import read

HEAD = """
import multiprocessing, os, signal, sys, time
from dftracer.python import dftracer, dft_fn
log = dftracer.initialize_log()
d = dft_fn("C")
@d.log
def work(step): return step
def worker(start):
    for step in range(start, start + 10): work(step)
    return os.getpid()
def with_status(start):
    worker(start)
    os._exit(0)
"""


def record(runner, body, head=HEAD, **given):
    program = textwrap.dedent(head) + 'if __name__ == "__main__":\n' + textwrap.indent(textwrap.dedent(body), "    ")
    return runner.dftracer(program, **given)


def steps(runner, files=None):
    """The steps that were told; each process has a file of its own, named after its process id."""
    found = []
    for path in runner.files() if files is None else files:
        events = [event for event in read(path) if event.get("cat") == "C"]
        assert {str(event["pid"]) for event in events} <= {path.name.split("-")[2].split(".")[0]}, path
        found += [event["args"]["step"] for event in events]
    return sorted(found)


# 7.2: how the process ends, and the status that it must still have.
ENDS = {
    "finalize": ("log.finalize()", 0),
    "the end": ("pass", 0),
    "sys.exit": ("sys.exit(3)", 3),
    "an exception": ("raise ValueError('x')", 1),
    "os._exit": ("os._exit(4)", 4),
    "finalize twice": ("log.finalize(); log.finalize()", 0),
}


@pytest.mark.parametrize("end", ENDS)
def test_every_end_keeps_the_events(end, runner):
    body, status = ENDS[end]
    record(runner, f"worker(0)\n{body}", status=status)
    assert steps(runner) == list(range(10))


@pytest.mark.parametrize(("name", "status"), [("SIGTERM", -15), ("SIGKILL", -9), ("SIGSEGV", -11)])
def test_what_a_killed_process_left_is_published_by_the_next(name, status, runner):
    record(runner, f"worker(0)\nos.kill(os.getpid(), signal.{name})", status=status)
    record(runner, "worker(10)")
    assert steps(runner) == list(range(20))


def test_recording_can_begin_again(runner):
    record(runner, "worker(0)\nlog.finalize()\nwork(99)\nlog = dftracer.initialize_log()\nworker(10)")
    assert steps(runner) == list(range(20)) and len(runner.files()) == 2


METHODS = ("fork", "spawn", "forkserver")


# How processes are made, and how many steps all of them tell. None calls `finalize`.
WAYS = {
    # Also those that end by `os._exit`.
    "processes": (
        30,
        """
        worker(0)
        targets = ((worker, 10), (with_status, 20))
        children = [context.Process(target=target, args=(start,)) for target, start in targets]
        for child in children: child.start()
        for child in children: child.join()
        assert [child.exitcode for child in children] == [0, 0]
        """,
    ),
    # 7.3: `with Pool` ends its workers by SIGTERM when the block is left.
    "pool": (
        90,
        """
        with context.Pool(2) as pool:
            pids = pool.map(worker, range(0, 80, 10), chunksize=1)
        assert os.getpid() not in pids
        worker(80)
        """,
    ),
    "executor": (
        40,
        """
        from concurrent.futures import ProcessPoolExecutor
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            list(pool.map(worker, range(0, 40, 10)))
        """,
    ),
}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", WAYS)
def test_processes_of_every_kind_are_complete(way, method, runner):
    total, program = WAYS[way]
    record(runner, f'context = multiprocessing.get_context("{method}")\n' + textwrap.dedent(program))
    assert steps(runner) == list(range(total))


def test_decorated_functions_can_be_sent_to_workers(runner):
    """Pickled by name, as any function; plain ones, methods and nodes of `ai`."""
    record(
        runner,
        """
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            assert pool.map(work, [5, 6]) == [5, 6]
            assert pool.map(plain, [7]) == [7] and pool.map(node, [8]) == [8]
        """,
        head=textwrap.dedent(HEAD)
        + textwrap.dedent(
            """
            from dftracer.python import ai
            @d.log
            def plain(x): return x
            @ai.compute.forward
            def node(x): return x
            """
        ),
    )
    assert [e["args"]["step"] for e in runner.events(cat="C", name="work")] == [5, 6]
    assert len(runner.events(name="plain")) == 1 and len(runner.events(cat="compute", name="forward")) == 1


def test_forked_children_go_on_recording(runner):
    record(
        runner,
        """
        worker(0)
        child = os.fork()
        worker(10 if child == 0 else 20)
        if child: os.waitpid(child, 0)
        """,
    )
    assert steps(runner) == list(range(30)) and len(runner.files()) == 2


def test_import_after_fork(runner):
    program = """
        import os
        child = os.fork()
        from dftracer.python import dftracer, dft_fn
        dftracer.initialize_log()
        @dft_fn("C").log
        def work(step): return step
        work(1 if child else 2)
        if child: os.waitpid(child, 0)
    """
    runner.dftracer(program)
    assert steps(runner) == [1, 2]
