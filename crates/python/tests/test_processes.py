"""Processes of every kind, and every way to end: nothing is lost, and nothing has to be called for that."""

from pathlib import Path

import pytest
import support

PREAMBLE = """
    import concurrent.futures, multiprocessing, os, signal, sys, threading, time
    import weftline
    from weftline import trace, instant

    @trace(args=True)
    def work(n):
        return n * n

    @trace
    def child(ends):
        work(1)
        if ends == "_exit":
            os._exit(5)
        if ends == "exit":
            sys.exit(5)
        if ends == "raises":
            raise RuntimeError("ends")

    def start(method, target, *args):
        process = multiprocessing.get_context(method).Process(target=target, args=args)
        process.start()
        process.join()
        return process.exitcode
"""

# The body of `main`, the status of the program, and how many `work` events there must be by how many processes.
CASES = {
    "returns": ("work(1)", 0, (1, 1)),
    "sys.exit": ("work(1); sys.exit(3)", 3, (1, 1)),
    "os._exit": ("work(1); os._exit(3)", 3, (1, 1)),
    "exception": ("work(1); raise RuntimeError('end')", 1, (1, 1)),
    "fork": ("work(0); assert start('fork', child, 'returns') == 0", 0, (2, 2)),
    "fork _exit": ("work(0); assert start('fork', child, '_exit') == 5", 0, (2, 2)),
    "fork raises": ("work(0); assert start('fork', child, 'raises') == 1", 0, (2, 2)),
    "spawn": ("work(0); assert start('spawn', child, 'exit') == 5", 0, (2, 2)),
    "spawn _exit": ("work(0); assert start('spawn', child, '_exit') == 5", 0, (2, 2)),
    "forkserver": ("work(0); assert start('forkserver', child, 'returns') == 0", 0, (2, 2)),
    "os.fork": (
        """
        work(0)
        pid = os.fork()
        if pid == 0:
            work(1)
            os._exit(0)
        os.waitpid(pid, 0)
        work(2)
        """,
        0,
        (3, 2),
    ),
    "fork of fork": (
        """
        pid = os.fork()
        if pid == 0:
            inner = os.fork()
            work(1)
            os.waitpid(inner, 0) if inner else None
            os._exit(0)
        os.waitpid(pid, 0)
        work(2)
        """,
        0,
        (3, 3),
    ),
    "pool fork": (
        """
        with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("fork")) as pool:
            assert list(pool.map(work, range(20))) == [n * n for n in range(20)]
        """,
        0,
        (20, None),
    ),
    "pool spawn": (
        """
        with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
            assert list(pool.map(work, range(20))) == [n * n for n in range(20)]
        """,
        0,
        (20, None),
    ),
    "terminated pool": (
        """
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(work, range(10)) == [n * n for n in range(10)]
        """,
        0,
        (10, None),
    ),
    "killed child": (
        """
        pid = os.fork()
        if pid == 0:
            work(1)
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
        """,
        0,
        (1, 1),
    ),
    "threads and fork": (
        """
        threads = [threading.Thread(target=lambda: [work(n) for n in range(50)]) for _ in range(4)]
        [thread.start() for thread in threads]
        assert start("fork", child, "returns") == 0
        [thread.join() for thread in threads]
        """,
        0,
        (201, 2),
    ),
    "daemon thread": (
        """
        ready = threading.Event()
        def forever():
            work(1)
            ready.set()
            time.sleep(60)
        threading.Thread(target=forever, daemon=True).start()
        ready.wait()
        """,
        0,
        (1, 1),
    ),
}


@pytest.mark.parametrize("mode", support.MODES)
@pytest.mark.parametrize("case", CASES)
def test_nothing_is_lost(case: str, mode: str, tmp_path: Path) -> None:
    body, status, (events, processes) = CASES[case]
    lines = "\n".join("        " + line for line in support.textwrap.dedent(body).strip().splitlines())
    program = support.textwrap.dedent(PREAMBLE) + "\ndef main():\n" + lines + "\n\nif __name__ == '__main__':\n    main()\n"
    run = support.run(program, tmp_path, mode, status)
    found = run.all("work")
    assert len(found) == events, sorted(event.args["n"] for event in found)
    if processes is not None:
        assert len({event.pid for event in found}) == processes


@pytest.mark.parametrize("mode", support.MODES)
def test_what_is_open_at_the_end(mode: str, tmp_path: Path) -> None:
    """Objects that only the interpreter's own end takes apart; what they would tell comes too late, but nothing breaks."""
    program = """
        import asyncio, sys, weftline
        from weftline import trace

        @trace
        def numbers():
            yield 1
            yield 2

        @trace
        async def waits(): await asyncio.sleep(1)

        kept = numbers()
        next(kept)
        loop = iter(trace.iter([1, 2], name="loop"))
        next(loop)
        block = weftline.span("block")
        block.__enter__()
        sys.kept = [kept, loop, block]
        step = waits()
        step.close()
        weftline.instant("last")
    """
    run = support.run(program, tmp_path, mode)
    assert run.errors == "" and run.one("last", "i") and run.one("loop").args == {"index": 0}


def test_import_after_fork(tmp_path: Path) -> None:
    """A child that imports the package for the first time joins the recorder that is there."""
    program = """
        import os
        pid = os.fork()
        import weftline

        @weftline.trace
        def work(): pass

        work()
        if pid:
            os.waitpid(pid, 0)
    """
    run = support.run(program, tmp_path)
    assert len({event.pid for event in run.all("work")}) == 2
