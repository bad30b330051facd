"""What PerfFlowAspect's own tests of its Python module ask, in the same steps.

`perfflow_suite/case.sh` has the steps, `cases.json` the cases. Those of woven C++ programs are in the same file;
crates/suite runs them.
"""

import json
import subprocess
import sys

import pytest
from support import HERE, PROGRAMS

SUITE = HERE / "perfflow_suite"
CASES = [case for case in json.loads((SUITE / "cases.json").read_text()) if "python" in case["languages"]]

HEAD = """
import time
from concurrent.futures import ThreadPoolExecutor
import perfflowaspect.aspect as aspect
from perfflowaspect.aspect import critical_path

pool = ThreadPoolExecutor(3)
"""
# Each of these also must have done its work, traced or not.
PROGRAM = {
    "future": """
@critical_path(pointcut="around_async", scope="bar")
def bar(message):
    time.sleep(0.01)
    return message

@critical_path()
def foo():
    return pool.submit(bar, "hello").result()

assert foo() == "hello"
""",
    "future2": """
@critical_path(pointcut="after_async", scope="bar")
def bar(message):
    return message

@critical_path(pointcut="before_async", scope="bar")
def begin(message):
    return pool.submit(bar, message)

@critical_path()
def foo():
    return [begin(number) for number in range(5)]

assert [future.result() for future in foo()] == [0, 1, 2, 3, 4]
""",
    "direct": """
def foo():
    aspect.sync_event("before", "foo", "direct.py")
    aspect.sync_event("after", "foo", "direct.py")
    return 1

assert foo() == 1
""",
    "future_direct": """
def bar(message):
    aspect.async_event("before", "bar", "future_direct.py")
    aspect.async_event("after", "bar", "future_direct.py")
    return message

assert pool.submit(bar, "hello").result() == "hello"
""",
}


def test_the_suite_is_whole():
    assert len(CASES) == 24


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["case"])
def test_case(case, runner):
    program = runner.directory / "program.py"
    if case["program"] == "smoke":
        program.write_text((PROGRAMS / "perfflow_nested.py").read_text())
    else:
        program.write_text(HEAD + PROGRAM[case["program"]])
    done = subprocess.run(
        [SUITE / "case.sh", case["file"], case["leaves"], sys.executable, program],
        cwd=runner.directory,
        env={**runner.environment, **case["environment"]},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
