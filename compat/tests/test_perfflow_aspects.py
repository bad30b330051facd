"""Pointcuts, kinds of functions, options and processes; the faults of the original are not repeated."""

import hashlib
import socket
import subprocess
import textwrap

import pytest
from support import HERE, SLACK_US, durations, perfflow

HOST = socket.gethostname()
HEAD = """
import asyncio, os, sys, threading, time
import perfflowaspect.aspect as aspect
from perfflowaspect.aspect import critical_path
"""


def record(runner, body, options=None, **given):
    if options is not None:
        given["PERFFLOW_OPTIONS"] = options
    return runner.run(HEAD + textwrap.dedent(body), **given)


def events(runner):
    (path,) = runner.files("perfflow.*")
    return perfflow(path)


def sequence(runner):
    return [(event["ph"], event["name"]) for event in events(runner)]


# Pointcut, what Verbose records, what Compact records.
POINTCUTS = [
    ("before", "B", "B"),
    ("after", "E", "E"),
    ("around", "BE", "X"),
    ("before_async", "b", "b"),
    ("after_async", "e", "e"),
    ("around_async", "be", "be"),
]
KINDS = {
    "function": ("def f(): time.sleep(0.05); return 5", "assert f() == 5"),
    "coroutine": ("async def f(): await asyncio.sleep(0.05); return 5", "assert asyncio.run(f()) == 5"),
    "generator": ("def f():\n    yield 1\n    time.sleep(0.05)\n    yield 2", "assert list(f()) == [1, 2]"),
    "async generator": (
        "async def f():\n    yield 1\n    await asyncio.sleep(0.05)\n    yield 2",
        "async def all(): return [x async for x in f()]\nassert asyncio.run(all()) == [1, 2]",
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("pointcut", "verbose", "compact"), POINTCUTS)
def test_pointcuts(pointcut, verbose, compact, kind, runner):
    definition, use = KINDS[kind]
    program = f'@critical_path(pointcut="{pointcut}", scope="s")\n{definition}\n{use}\n'
    # What runs in steps may cross other things of its thread: around it is an async event.
    in_steps = kind != "function" and pointcut == "around"
    for options, expected in (("", verbose), ("log-event=compact", compact)):
        record(runner, program, f"{options}:log-dir={expected}{options[-7:]}")
        (path,) = runner.files(f"{expected}{options[-7:]}/perfflow.*")
        found = perfflow(path)
        assert "".join(event["ph"] for event in found) == ("be" if in_steps else expected)
        assert {(event["name"], event["cat"]) for event in found} == {("f", "__main__")}
        if pointcut.endswith("_async"):
            assert {event["scope"] for event in found} == {"s"}
        if pointcut.startswith("around"):
            times = [event["ts"] for event in found]
            duration = found[0].get("dur", times[-1] - times[0])
            assert 50_000 <= duration <= 50_000 + SLACK_US


def test_names_and_forms(runner):
    record(
        runner,
        """
        class C:
            @critical_path()
            def method(self): return 1
            @classmethod
            @critical_path()
            def of_class(cls): return 2
            @critical_path()
            @staticmethod
            def static(): return 3
        @critical_path
        def bare(): return 4
        @critical_path("around")
        def by_position(): return 5
        assert [C().method(), C.of_class(), C.static(), bare(), by_position()] == [1, 2, 3, 4, 5]
        assert bare.__name__ == "bare" and C.method.__qualname__ == "C.method"
        """,
        "log-event=Compact",
    )
    assert sequence(runner) == [("X", name) for name in ("C.method", "C.of_class", "C.static", "bare", "by_position")]


def test_categories(runner):
    """`category` says what the module's name says otherwise; every pointcut takes it."""
    record(
        runner,
        """
        @critical_path(category="io")
        def load(): pass
        @critical_path("before_async", "s", "net")
        def send(): pass
        @critical_path(pointcut="after_async", scope="s", category="net")
        def sent(): pass
        @critical_path(category="")
        def plain(): pass
        load(); send(); sent(); plain()
        """,
        "log-event=Compact",
    )
    found = [(event["ph"], event["cat"]) for event in events(runner)]
    assert found == [("X", "io"), ("b", "net"), ("e", "net"), ("X", "__main__")]


def test_exceptions_end_what_they_leave(runner):
    for mode, expected in (("Verbose", "BEBBEEbeE"), ("Compact", "XXXbeE")):
        record(
            runner,
            """
            @critical_path()
            def boom(): raise ValueError("x")
            @critical_path()
            def outer(): boom()
            @critical_path("around_async")
            def boom_async(): raise KeyError("x")
            @critical_path("after")
            def boom_after(): raise OSError("x")
            for function, error in (
                (boom, ValueError), (outer, ValueError), (boom_async, KeyError), (boom_after, OSError)
            ):
                try: function()
                except error: pass
                else: raise AssertionError(function)
            """,
            f"log-event={mode}:log-dir={mode}",
        )
        (path,) = runner.files(f"{mode}/perfflow.*")
        assert "".join(event["ph"] for event in perfflow(path)) == expected


def test_unknown_pointcut_is_told_once_and_the_function_runs(runner):
    """Golden `future_incorrect`, where each call tells it."""
    done = record(
        runner,
        """
        @critical_path(pointcut="around_async_typo")
        def bar(): return 1
        @critical_path()
        def foo(): return bar() + bar()
        assert foo() == 2
        """,
    )
    (line,) = done.stderr.splitlines()
    assert "around_async_typo" in line and "bar" in line
    assert sequence(runner) == [("B", "foo"), ("E", "foo")]


def test_disabled_still_runs_everything(runner):
    done = record(
        runner,
        """
        @critical_path()
        def f(): return "result"
        @critical_path("before_async", scope="s")
        def g(): return "other"
        assert aspect.sync_event("before", "n", "c") is None and aspect.async_event("after", "n", "c") is None
        with aspect.sync_event("around", "n", "c"): pass
        print(f(), g())
        """,
        "log-enable=False",
    )
    assert done.stdout == "result other\n" and runner.files("perfflow.*") == []


def test_recursion_and_threads_in_compact_mode(runner):
    record(
        runner,
        """
        @critical_path()
        def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
        threads = [threading.Thread(target=fib, args=(10,)) for _ in range(4)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        """,
        "log-event=Compact",
    )
    found = events(runner)
    assert len(found) == 4 * 177 and len({event["tid"] for event in found}) == 4
    assert all(0 <= event["dur"] < 60e6 for event in found)


def test_fast_functions_with_usage(runner):
    """The original divides by the time that passed, which is 0 for a fast function."""
    record(
        runner,
        """
        @critical_path()
        def nothing(): pass
        for _ in range(1000): nothing()
        """,
        "cpu-mem-usage=True:log-event=Compact",
    )
    assert "".join(event["ph"] for event in events(runner)) == "CCX" * 1000


def test_usage_is_measured(runner):
    record(
        runner,
        """
        @critical_path()
        def busy():
            end = time.monotonic() + 0.3
            while time.monotonic() < end: pass
        @critical_path()
        def idle(): time.sleep(0.2)
        busy(); idle()
        """,
        "cpu-mem-usage=True:log-event=Compact",
    )
    usage = {event["name"]: event["args"] for event in reversed(events(runner)) if event["ph"] == "C"}
    assert usage["busy"]["cpu_usage"] > 20 > usage["idle"]["cpu_usage"]
    assert 5_000 < usage["busy"]["memory_usage"] < 10_000_000


@pytest.fixture
def gpus(tmp_path):
    """A directory with a library that stands in for NVIDIA's: two GPUs, the first of which is 83 % busy with 3 GiB used."""
    directory = tmp_path / "gpus"
    directory.mkdir()
    stub = HERE.parents[1] / "crates/collect/tests/samplers/nvml_stub.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,-soname,libnvidia-ml.so.1", "-o", directory / "libnvidia-ml.so.1", stub], check=True)
    return directory


def test_use_of_gpus(runner, gpus):
    body = """
        @critical_path()
        def f(): pass
        f(); f()
        assert "libnvidia-ml" in open("/proc/self/maps").read()
    """
    both = ["cpu_usage", "memory_usage", "gpu_usage", "gpu_memory_usage"]
    for options, keys in (("gpu-usage=True", both[2:]), ("gpu-usage=True:cpu-mem-usage=True", both)):
        record(runner, body, f"{options}:log-event=Compact:log-dir={len(keys)}", LD_LIBRARY_PATH=gpus)
        (path,) = runner.files(f"{len(keys)}/perfflow.*")
        found = perfflow(path)
        assert "".join(event["ph"] for event in found) == "CCXCCX"
        assert all(list(event["args"]) == keys for event in found if event["ph"] == "C")
        assert (found[0]["args"]["gpu_usage"], found[0]["args"]["gpu_memory_usage"]) == (83.0, (3 << 30) / 1000)
        assert (found[1]["args"]["gpu_usage"], found[1]["args"]["gpu_memory_usage"]) == (0, 0)


def test_no_gpu_is_told_once_and_nothing_is_added(runner):
    done = record(runner, "@critical_path()\ndef f(): pass\nf()", "gpu-usage=True:log-event=Compact")
    (line,) = done.stderr.splitlines()
    assert "gpu-usage" in line and "libnvidia-ml.so.1" in line
    assert sequence(runner) == [("X", "f")]


def test_region_without_a_function(runner):
    """`sync_event("around", …)`: a block, a function, or the life of the result."""
    body = """
        with aspect.sync_event("around", "block", "c"): time.sleep(0.05)
        @aspect.sync_event("around", "function", "c")
        def f(): time.sleep(0.05); return 1
        assert f() == 1 and f() == 1
        held = aspect.sync_event("around", "held", "c")
        time.sleep(0.05)
        del held
        aspect.sync_event("around", "at once", "c")
        try:
            with aspect.sync_event("around", "failed", "c"): raise KeyError("x")
        except KeyError: pass
        with aspect.async_event("around", "async", "c", scope="s"): time.sleep(0.05)
    """
    names = ["block", "function", "function", "held", "at once", "failed"]
    record(runner, body, "log-event=Compact")
    assert sequence(runner) == [("X", name) for name in names] + [("b", "async"), ("e", "async")]
    found = {event["name"]: event for event in events(runner)}
    assert all(50_000 <= found[name]["dur"] <= 50_000 + SLACK_US for name in ("block", "function", "held"))
    assert found["at once"]["dur"] < SLACK_US and found["failed"]["args"] == {"error": "KeyError"}
    record(runner, body, "log-dir=verbose")
    (path,) = runner.files("verbose/perfflow.*")
    phases = [(event["ph"], event["name"]) for event in perfflow(path)]
    assert phases == [(ph, name) for name in names for ph in "BE"] + [("b", "async"), ("e", "async")]


def test_async_events_by_hand(runner):
    """Golden `edge_cases`: the id that is given is kept, whatever it is."""
    record(
        runner,
        r"""
        aspect.async_event("before", "n", "c", scope="sc", id=7)
        aspect.async_event("instant", "n", "c", scope="", id=0)
        aspect.async_event("after", "né\"\n", "c", id="str")
        aspect.async_event("after", "n", "c", scope="sc", id=7)
        """,
    )
    found = [{key: event.get(key) for key in ("name", "ph", "id", "scope")} for event in events(runner)]
    assert found[0] == {"name": "n", "ph": "b", "id": 7, "scope": "sc"}
    assert found[1].pop("id") and found[1] == {"name": "n", "ph": "n", "scope": None}
    assert found[2] == {"name": 'né"\n', "ph": "e", "id": "str", "scope": None}
    assert found[3] == {"name": "n", "ph": "e", "id": 7, "scope": "sc"}


def test_wrong_pointcuts_of_events_are_told_once(runner):
    done = record(
        runner,
        """
        for _ in range(3): aspect.sync_event("arround", "n", "c")
        aspect.async_event("begin", "n", "c")
        aspect.sync_event("before", "n", "c")
        """,
    )
    assert len(done.stderr.splitlines()) == 2 and sequence(runner) == [("B", "n")]


def test_async_ids_pair_across_threads(runner):
    """Golden `future2`, where no pair has the same id: begun by one function here, ended by another there."""
    record(
        runner,
        """
        from concurrent.futures import ThreadPoolExecutor
        @critical_path(pointcut="before_async", scope="foo")
        def begin(): pass
        @critical_path(pointcut="after_async", scope="foo")
        def bar(delay): time.sleep(delay)
        pool = ThreadPoolExecutor(4)
        @critical_path()
        def foo():
            futures = []
            for number in range(5):
                begin()
                futures.append(pool.submit(bar, 0.1))
            for future in futures: future.result()
        foo()
        """,
    )
    found = events(runner)
    assert [event["name"] for event in found if event["ph"] in "BE"] == ["foo", "foo"]
    begins, ends = ([event for event in found if event["ph"] == phase] for phase in "be")
    assert sorted(event["id"] for event in begins) == sorted(event["id"] for event in ends)
    assert len({event["id"] for event in begins}) == 5
    assert {event["tid"] for event in begins}.isdisjoint({event["tid"] for event in ends})
    lives = sorted(durations(found, "begin"))
    assert len(lives) == 5 and all(100_000 <= life <= 300_000 + SLACK_US for life in lives)


def test_concurrent_async_events_pair_on_their_threads(runner):
    record(
        runner,
        """
        def bar(delay):
            aspect.async_event("before", "bar", "c")
            time.sleep(delay)
            aspect.async_event("after", "bar", "c")
        threads = [threading.Thread(target=bar, args=(delay,)) for delay in (0.3, 0.1, 0.2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        """,
    )
    assert [life // 100_000 for life in sorted(durations(events(runner), "bar"))] == [1, 2, 3]


OPTIONS = [
    ("", "perfflow.array.{host}.{pid}.pfw"),
    ("name=n1:log-filename-include=name", "perfflow.array.n1.pfw"),
    ("log-filename-include=pid,name,hostname", "perfflow.array.{pid}.generic.{host}.pfw"),
    (
        "log-filename-include=hostname,instance-path,pid:log-format=object",
        "perfflow.object.{host}.{{356a192b}}.{pid}.pfw",
    ),
    ("log-dir=a/b:log-filename-include=pid", "a/b/perfflow.array.{pid}.pfw"),
]


@pytest.mark.parametrize(("options", "name"), OPTIONS)
def test_files_are_named_as_the_options_say(options, name, runner):
    """Instance path: the first 8 digits of sha1("1") where no job can be found."""
    done = record(runner, "@critical_path()\ndef f(): pass\nf(); print(os.getpid())", options)
    expected = name.format(host=HOST, pid=done.stdout.strip())
    assert (runner.directory / expected).is_file(), [str(path) for path in runner.directory.rglob("*")]


# Variables of job managers, and what the file's name shows of them: digests of job and step, or the job's own name.
JOBS = [
    ({"SLURM_JOB_ID": "123456", "SLURM_STEP_ID": "1"}, hashlib.sha1(b"123456.1").hexdigest()[:8]),
    ({"LSB_JOBID": "123456", "LS_JOBPID": "1"}, hashlib.sha1(b"123456.1").hexdigest()[:8]),
    ({"SLURM_JOB_ID": "123456"}, hashlib.sha1(b"1").hexdigest()[:8]),
    ({"LSB_JOBID": "123456"}, hashlib.sha1(b"1").hexdigest()[:8]),
    ({"FLUX_JOB_ID": "ƒeF9QZG3"}, "ƒeF9QZG3"),
    ({"PERFFLOW_INSTANCE_PATH": "fff.444", "FLUX_JOB_ID": "123456"}, "fff.444.123456"),
]


@pytest.mark.parametrize(("job", "path"), JOBS)
def test_instance_path_tells_the_job(job, path, runner):
    done = record(
        runner,
        """
        import importlib, subprocess
        import perfflowaspect._recording
        importlib.reload(perfflowaspect._recording); importlib.reload(aspect)
        @critical_path()
        def f(): pass
        f()
        if len(sys.argv) == 1:
            inner = {**os.environ, "FLUX_JOB_ID": "7"}
            subprocess.run([sys.executable, __file__, "inner"], env=inner, check=True)
        """,
        "log-filename-include=instance-path",
        **job,
    )
    assert done.stderr == ""
    assert {file.name for file in runner.files("perfflow.*")} == {
        f"perfflow.array.{{{path}}}.pfw",
        f"perfflow.array.{{{path}.7}}.pfw",
    }


def test_options_that_cannot_be_understood_are_told(runner):
    done = record(
        runner,
        "@critical_path()\ndef f(): pass\nf()",
        "log-event=foo:garbage:cpu-mem-usage=maybe:log-filename-include=pid,bogus",
    )
    assert len(done.stderr.splitlines()) == 4 and all(
        line.startswith("weftline: ") for line in done.stderr.splitlines()
    )
    assert sequence(runner) == [("B", "f"), ("E", "f")]


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_each_process_has_its_own_file(method, runner):
    """Golden `multiprocessing` has four `[` in one file. Here each process has a file of its own."""
    record(
        runner,
        f"""
        import multiprocessing
        @critical_path()
        def foo(number): time.sleep(0.01)
        @critical_path()
        def process(number): foo(number)
        if __name__ == "__main__":
            context = multiprocessing.get_context("{method}")
            children = [context.Process(target=process, args=(number,)) for number in range(4)]
            for child in children: child.start()
            for child in children: child.join()
            process(4)
        """,
    )
    files = runner.files("perfflow.*")
    assert len(files) == 5
    for path in files:
        found = perfflow(path)
        assert [event["ph"] + event["name"] for event in found] == ["Bprocess", "Bfoo", "Efoo", "Eprocess"]
        assert path.name == f"perfflow.array.{HOST}.{found[0]['pid']}.pfw"


ENDS = [("pass", 0), ("sys.exit(3)", 3), ("raise ValueError", 1), ("os._exit(4)", 4)]


@pytest.mark.parametrize(("end", "status"), ENDS)
def test_every_end_leaves_a_whole_file(end, status, runner):
    record(runner, f"@critical_path()\ndef f(): pass\nf()\n{end}", status=status)
    assert sequence(runner) == [("B", "f"), ("E", "f")]


def test_fork_in_the_middle(runner):
    record(
        runner,
        """
        @critical_path("before")
        def b4(): pass
        b4()
        child = os.fork()
        b4()
        if child: os.waitpid(child, 0)
        """,
    )
    assert sorted(len(perfflow(path)) for path in runner.files("perfflow.*")) == [1, 2]


def test_running_again_with_a_fixed_name_keeps_both(runner):
    """The original appends, and nothing can read that."""
    for _ in range(2):
        record(runner, "@critical_path()\ndef f(): pass\nf()", "log-filename-include=name")
    files = runner.files("perfflow.*")
    assert len(files) == 2 and all(len(perfflow(path)) == 2 for path in files)


def test_import_alone_leaves_nothing(runner):
    record(runner, "pass")
    assert [path.name for path in runner.directory.iterdir()] == ["app.py"]
