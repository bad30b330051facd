"""The annotations are complete, and the stub of the native module says what that really has."""

import os
import subprocess
import sys
from pathlib import Path

import weftline

USE = """
from typing import AsyncIterator, Iterator
import weftline
from weftline import ai, span, trace
from weftline.torch import traced

@trace
def plain(a: int) -> str: return str(a)

@trace("name", args=["a"])
def named(a: int) -> str: return str(a)

@trace(args=True, category="c", cpu_mem=True)
async def waits(a: int) -> str: return str(a)

@ai.compute.forward
def forward(a: int) -> str: return str(a)

@ai.compute.step(epoch=1)
def step(a: int) -> str: return str(a)

@span("block", key=1)
def block(a: int) -> str: return str(a)

reveal_type(plain)
reveal_type(named)
reveal_type(waits)
reveal_type(forward)
reveal_type(step)
reveal_type(block)
for item in trace.iter([1, 2], name="loop"):
    reveal_type(item)
with span("x", y=2) as s:
    s.update(z=3)
    reveal_type(s)
weftline.counter("c", value=1)
reveal_type(weftline.start("directory"))
"""
FUNCTION = "def (a: int) -> str"
REVEALED = [
    FUNCTION, FUNCTION, "def (a: int) -> typing.Coroutine[Any, Any, str]", FUNCTION, FUNCTION, FUNCTION,
    "int", "weftline._tracing.span", "bool",
]  # fmt: skip


def mypy(*arguments: str, directory: Path) -> str:
    # Where the package lies decides whether mypy takes it for our code; its caches stay out of the tree.
    environment = {**os.environ, "MYPYPATH": "", "MYPY_CACHE_DIR": str(directory / "cache")}
    done = subprocess.run([sys.executable, "-m", *arguments], cwd=directory, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_users_see_types(tmp_path: Path) -> None:
    (tmp_path / "use.py").write_text(USE)
    said = mypy("mypy", "--strict", "use.py", directory=tmp_path)
    # How much of a name is shown depends on the version of mypy.
    said = said.replace("builtins.", "")
    revealed = [line.partition("Revealed type is ")[2].strip('"') for line in said.splitlines() if "Revealed" in line]
    assert revealed == REVEALED


def test_the_package_is_typed(tmp_path: Path) -> None:
    mypy("mypy", "--strict", "-p", "weftline", directory=tmp_path)
    assert (Path(weftline.__file__).parent / "py.typed").exists()


def test_the_stub_is_true(tmp_path: Path) -> None:
    mypy("mypy.stubtest", "weftline._native", "--ignore-disjoint-bases", directory=tmp_path)
