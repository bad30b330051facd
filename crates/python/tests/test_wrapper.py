"""The wrapper itself: a traced function is used like the function, whether something is recorded or not."""

import asyncio
import copy
import functools
import gc
import inspect
import pickle
import subprocess
import sys
import threading
import types
import typing
import unittest.mock
import weakref
from pathlib import Path
from typing import Any

import pytest
import support
import weftline
from weftline import _native, span, trace


@trace
def module_level(a: int, b: str = "x") -> bool:
    """Says something."""
    return bool(a)


@trace
async def waits() -> int:
    return 1


class Things:
    @trace
    def method(self, a: int) -> int:
        return a

    @trace
    @classmethod
    def maker(cls) -> type:
        return cls


def test_it_looks_like_the_function() -> None:
    assert module_level.__name__ == "module_level" and module_level.__qualname__ == "module_level"
    assert module_level.__module__ == __name__ and module_level.__doc__ == "Says something."
    assert str(inspect.signature(module_level)) == "(a: int, b: str = 'x') -> bool"
    assert typing.get_type_hints(module_level) == {"a": int, "b": str, "return": bool}
    assert inspect.isroutine(module_level) and callable(module_level)
    assert module_level.__defaults__ == ("x",) and module_level.__code__ is module_level.__wrapped__.__code__  # type: ignore
    assert inspect.getsource(module_level).startswith("@trace\ndef module_level")
    assert inspect.unwrap(module_level).__closure__ is None  # type: ignore[attr-defined]
    assert "module_level" in repr(module_level)


def test_kinds_are_kept() -> None:
    assert inspect.iscoroutinefunction(waits) and asyncio.iscoroutinefunction(waits)
    assert inspect.iscoroutinefunction(functools.partial(waits))
    assert not inspect.iscoroutinefunction(module_level) and not inspect.isgeneratorfunction(module_level)


def test_methods_bind() -> None:
    thing = Things()
    assert thing.method(3) == Things.method(thing, 3) == 3
    assert thing.method.__self__ is thing and isinstance(thing.method, types.MethodType)  # type: ignore[attr-defined]
    assert str(inspect.signature(thing.method)) == "(a: int) -> int"
    assert thing.maker() is Things
    thing.method = lambda a: -a  # type: ignore[method-assign]
    assert thing.method(3) == -3


def test_attributes() -> None:
    def function() -> None: ...

    function.known = 1  # type: ignore[attr-defined]
    traced = trace(function)
    assert traced.known == 1  # type: ignore[attr-defined]
    traced.added = 2  # type: ignore[attr-defined]
    assert not hasattr(function, "added") and traced.__dict__["added"] == 2
    with pytest.raises(AttributeError, match="missing"):
        traced.missing  # type: ignore[attr-defined]
    del traced.added  # type: ignore[attr-defined]
    assert not hasattr(traced, "added")


def test_pickling_and_copying() -> None:
    for thing in (module_level, waits, Things.method):
        assert pickle.loads(pickle.dumps(thing)) is thing
        assert copy.copy(thing) is thing and copy.deepcopy([thing])[0] is thing
    thing = Things()
    assert pickle.loads(pickle.dumps(thing.method))(4) == 4

    def local() -> None: ...

    with pytest.raises((pickle.PicklingError, AttributeError), match="local"):
        pickle.dumps(trace(local))


def test_cloudpickle_sends_by_value(tmp_path: Path) -> None:
    """A function of `__main__` reaches a process that cannot import it, and is traced there."""
    sender = """
        import cloudpickle, weftline
        from weftline import trace

        @trace("sent", args=True)
        def work(n): return n + 1

        class Local:
            @trace("method sent")
            def method(self): return 5

        print(cloudpickle.dumps((work, Local)).hex())
    """
    receiver = """
        import pickle, weftline
        work, Local = pickle.loads(bytes.fromhex({data!r}))
        print(work(2), Local().method())
    """
    data = support.untraced(sender, tmp_path).strip()
    run = support.run(receiver.format(data=data), tmp_path)
    assert run.output == "3 5\n"
    assert run.one("sent").args == {"n": 2} and run.one("method sent")


def test_references() -> None:
    class Thing:
        pass

    thing = Thing()

    def function(default: Any = thing) -> None: ...

    traced = trace(args=True)(function)
    function.itself = traced  # type: ignore[attr-defined]
    traced.itself = traced  # type: ignore[attr-defined]
    seen, gone = weakref.ref(traced), weakref.ref(thing)
    assert seen() is traced
    del function, traced, thing
    gc.collect()
    assert seen() is None and gone() is None

    held = Thing()
    block = span("cycle", held=held)
    held.block = block  # type: ignore[attr-defined]
    gone = weakref.ref(held)
    del held, block
    gc.collect()
    assert gone() is None


def test_references_of_calls_are_balanced() -> None:
    def function(*args: Any, **kwargs: Any) -> Any:
        return args[0]

    for options in ({}, {"args": True}):
        traced = trace(**options)(function)  # type: ignore[call-overload]
        value = object()
        before = sys.getrefcount(value), sys.getrefcount(traced), sys.getrefcount(function)
        for _ in range(100):
            traced(value, key=value)
            with pytest.raises(IndexError):
                traced()
        assert (sys.getrefcount(value), sys.getrefcount(traced), sys.getrefcount(function)) == before


def test_no_way_around_the_decorator() -> None:
    with pytest.raises(TypeError, match=r"weftline\.trace"):
        _native.TracedFunction()
    for wrong in (5, None, "text"):
        with pytest.raises(TypeError):
            _native.traced(wrong, "name", "category")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="only callables"):
        trace(5)
    with pytest.raises(ValueError, match="no parameter called 'c'"):
        trace(args=["c"])(lambda a, b: None)
    with pytest.raises(TypeError, match=r"args=\['ab'\]"):
        trace(args="ab")(lambda ab: None)


def test_wrong_calls_say_what_is_wrong() -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        module_level()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        module_level(1, z=2)  # type: ignore[call-arg]


def test_deep_recursion_raises_as_ever() -> None:
    @trace
    def endless() -> None:
        endless()

    with pytest.raises(RecursionError):
        endless()


def test_other_descriptors() -> None:
    class Binds:
        """A callable that binds in a way of its own."""

        def __get__(self, instance: Any, owner: Any) -> Any:
            return functools.partial(self, "bound" if instance is not None else "class")

        def __call__(self, *args: Any) -> Any:
            return args

    class Owner:
        binds = trace(Binds())
        mocked = trace(unittest.mock.Mock(return_value=7))

    assert Owner().binds(1) == ("bound", 1) and Owner.binds(1) == ("class", 1)
    assert Owner().mocked() == 7


def test_threads() -> None:
    counts: list[int] = []

    @trace(args=True)
    def adds(n: int) -> None:
        counts.append(n)

    threads = [threading.Thread(target=lambda: [adds(n) for n in range(200)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(counts) == 1600


def test_reload(tmp_path: Path) -> None:
    code = "import importlib, weftline; f = weftline.trace(len); importlib.reload(weftline); g = weftline.trace(len); print(f([1]), g([1]))"
    assert support.untraced(code, tmp_path) == "1 1\n"


def test_subinterpreters_are_refused(tmp_path: Path) -> None:
    program = """
        import sys, weftline
        name = {(3, 13): "_interpreters"}.get(sys.version_info[:2], "_xxsubinterpreters")
        interpreters = __import__(name)
        try:
            made = interpreters.create("legacy") if sys.version_info >= (3, 13) else interpreters.create()
            result = interpreters.run_string(made, "import weftline")
        except interpreters.RunFailedError if hasattr(interpreters, "RunFailedError") else () as error:
            result = error
        print(result)
        print(weftline.trace(len)([1]))
    """
    said = support.untraced(program, tmp_path)
    assert "ImportError" in said and "subinterpreter" in said and said.endswith("\n1\n")


def test_the_command(tmp_path: Path) -> None:
    for command in ([sys.executable, "-m", "weftline"], [sys.executable, "-c", "from weftline._command import main; main()"]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
        assert done.returncode == 0 and weftline.__version__ in done.stdout, done
