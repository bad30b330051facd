"""When something is recorded, and where it goes."""

import textwrap

import pytest
from support import annotations_of, read

PROGRAM = """
import os, sys
from dftracer.python import DFTRACER_ENABLE, ai, dft_fn, dftracer
log = dftracer.initialize_log(*sys.argv[1:])
d = dft_fn("C")
@d.log
def work(step): return step + 1
@ai.compute.forward
def forward(x): return x
assert work(1) == 2 and forward(3) == 3
with d: pass
assert list(d.iter([1])) == [1]
os.makedirs("data", exist_ok=True)
for name in ("data/a.txt", "b.txt"):
    with open(name, "w") as file: file.write("content")
print(DFTRACER_ENABLE, log.get_time() > 0)
"""
ALL = ["work", "forward", "<module>", "loop.iter", "loop.yield"]


def names(events):
    return [name for _, name, _ in annotations_of(events, "C", "compute")]


@pytest.mark.parametrize("value", ["1", "true", "yes", "on", "True"])
def test_every_yes_switches_on(value, runner):
    assert runner.dftracer(PROGRAM, DFTRACER_ENABLE=value).stdout == "True True\n"
    assert names(runner.events()) == ALL


@pytest.mark.parametrize("environment", [{}, {"DFTRACER_ENABLE": "0"}, {"DFTRACER_ENABLE": "false"}])
def test_otherwise_nothing_is_recorded(environment, runner):
    done = runner.run(PROGRAM, **environment)
    assert (done.stdout, done.stderr) == ("False False\n", "")
    assert sorted(path.name for path in runner.directory.iterdir()) == ["app.py", "b.txt", "data"]


def test_a_setting_that_cannot_be_understood_is_told(runner):
    """Once, and not at all where the program never asks to record."""
    done = runner.run(PROGRAM + "dftracer.initialize_log()\n", DFTRACER_ENABLE="maybe")
    (line,) = done.stderr.splitlines()
    assert line.startswith("weftline: DFTRACER_ENABLE=maybe") and done.stdout == "False False\n"


def test_functions_are_left_alone_when_off(runner):
    runner.run(
        """
        from dftracer.python import ai, dft_fn, dftracer
        dftracer.initialize_log()
        d = dft_fn("C")
        def function(): return 1
        assert d.log(function) is function and d.log()(function) is function and d.log_init(function) is function
        assert ai.compute.forward(function) is function and ai.compute.forward(step=1)(function) is function
        """
    )


def test_a_dft_fn_that_is_switched_off_leaves_functions_alone(runner):
    runner.dftracer(
        """
        from dftracer.python import dft_fn, dftracer
        dftracer.initialize_log()
        def function(): return 1
        assert dft_fn("C", enable=False).log(function) is function
        """
    )


def test_under_weft_run_no_variable_is_needed(runner):
    assert runner.under_weft(PROGRAM).stdout == "True True\n"
    assert names(runner.run_events()) == ALL
    writes = [event for event in runner.run_events(cat="POSIX") if event["name"] == "write"]
    assert len(writes) >= 2
    # One trace, that of the run.
    assert sorted(path.name for path in runner.directory.iterdir()) == ["app.py", "b.txt", "data", "run"]


def test_under_weft_run_no_means_no(runner):
    runner.under_weft(PROGRAM, DFTRACER_ENABLE=0)
    assert names(runner.run_events()) == [] and runner.run_events(cat="POSIX") != []


def test_under_weft_run_variables_change_nothing(runner):
    runner.under_weft(PROGRAM, DFTRACER_ENABLE=1, DFTRACER_LOG_FILE=runner.directory / "out")
    assert names(runner.run_events()) == ALL and runner.files() == []


def test_files_are_named_after_prefix_program_and_process(runner):
    runner.dftracer(PROGRAM)
    (path,) = runner.files()
    assert path.name == f"out-app-{read(path)[-1]['pid']}.pfw.gz"


@pytest.mark.parametrize(
    ("given", "environment", "pattern"),
    [
        ([], {"DFTRACER_TRACE_COMPRESSION": "0"}, "out-app-*.pfw"),
        (["logs/mine"], {}, "logs/mine-app-*.pfw.gz"),
        (["logs/mine.pfw"], {}, "logs/mine-app-*.pfw.gz"),
        (["", "", "3", "logs/mine"], {}, "logs/mine-app-*.pfw.gz"),
    ],
)
def test_files_go_where_they_are_wanted(given, environment, pattern, runner):
    runner.dftracer(PROGRAM, *given, **environment)
    assert len(runner.files(pattern)) == 1
    assert names(runner.events(pattern)) == ALL


def paths(events, runner):
    """Paths of the calls that were recorded, relative to the test's directory."""
    found = {event["args"]["path"] for event in events if event["cat"] == "POSIX" and "path" in event.get("args", {})}
    return {path.replace(f"{runner.directory}/", "") for path in found}


@pytest.mark.parametrize(
    ("given", "environment", "inside", "outside"),
    [
        ([], {}, {"data/a.txt", "b.txt"}, set()),
        ([], {"DFTRACER_DATA_DIR": "all"}, {"data/a.txt", "b.txt"}, set()),
        ([], {"DFTRACER_DATA_DIR": "data"}, {"data/a.txt"}, {"b.txt"}),
        ([], {"DFTRACER_DATA_DIR": "/nowhere:data"}, {"data/a.txt"}, {"b.txt"}),
        (["out", "data"], {}, {"data/a.txt"}, {"b.txt"}),
        ([], {"DFTRACER_DISABLE_IO": "1"}, set(), {"data/a.txt", "b.txt"}),
    ],
)
def test_calls_of_the_wanted_directories_are_recorded(given, environment, inside, outside, runner):
    runner.dftracer(PROGRAM, *given, **environment)
    found = paths(runner.events(), runner)
    assert inside <= found and not outside & found


@pytest.mark.parametrize("mode", ["PRELOAD", "HYBRID"])
def test_modes_that_begin_with_the_interpreter(mode, runner):
    """Calls before `initialize_log` are there too, and so are those of a program that never mentions DFTracer."""
    early = 'open("early.txt", "w").close()\n'
    runner.dftracer(early + textwrap.dedent(PROGRAM), DFTRACER_INIT=mode)
    assert names(runner.events()) == ALL and "early.txt" in paths(runner.events(), runner)
    runner.dftracer(early, DFTRACER_INIT=mode, DFTRACER_LOG_FILE=runner.directory / "plain")
    assert "early.txt" in paths(runner.events("plain-*"), runner)


def test_function_mode_begins_with_the_call(runner):
    early = 'open("early.txt", "w").close()\n'
    runner.dftracer(early + textwrap.dedent(PROGRAM), DFTRACER_INIT="FUNCTION")
    assert names(runner.events()) == ALL and "early.txt" not in paths(runner.events(), runner)
    runner.dftracer(early, DFTRACER_INIT="FUNCTION", DFTRACER_LOG_FILE=runner.directory / "plain")
    assert runner.files("plain-*") == []


@pytest.mark.parametrize("root", ["tracer", "profiler"])
def test_settings_may_come_from_a_file(root, runner):
    (runner.directory / "c.yaml").write_text(
        f"enable: true\n{root}:\n  log_file: {runner.directory}/yaml\n  compression: false\n"
    )
    runner.run(PROGRAM, DFTRACER_CONFIGURATION=runner.directory / "c.yaml")
    assert names(runner.events("yaml-app-*.pfw")) == ALL


def test_a_place_that_cannot_be_written_costs_one_sentence(runner):
    done = runner.dftracer(PROGRAM, DFTRACER_LOG_FILE="/proc/nowhere/out")
    assert done.stdout.endswith("False\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("weftline: nothing is recorded: ") and "/proc/nowhere" in line


def test_modules_can_be_loaded_again(runner):
    runner.dftracer(
        """
        import importlib
        import dftracer.logger, dftracer.logger.logger, dftracer.python.common
        from dftracer.logger import dftracer as first, dft_fn
        first.initialize_log()
        for module in (dftracer.logger.logger, dftracer.python.common, dftracer.logger): importlib.reload(module)
        @dft_fn("C").log
        def work(): pass
        work()
        """
    )
    assert names(runner.events()) == ["work"]
