"""Puts traced callables in place of functions, methods, properties and classes; the calls themselves are native.

``inspect`` takes as long to import as all of this package, so it is imported only where it is needed.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from types import FunctionType
from typing import Any, NamedTuple, Optional, Union

from . import _drive, _native

# How parameters take arguments, as the native module counts: by position only, either way, by keyword only.
_PASSING = {"POSITIONAL_ONLY": 0, "POSITIONAL_OR_KEYWORD": 1, "KEYWORD_ONLY": 2}
# Flags of code objects (see `inspect`).
_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200
_OPTIONS = "__weftline__"


class Options(NamedTuple):
    """What a decorator was told."""

    name: Optional[str] = None
    category: str = "app"
    # All arguments, none, or those with these names.
    args: Union[bool, tuple[str, ...]] = False
    skip: tuple[str, ...] = ()
    cpu_mem: bool = False
    # Every step of a generator or coroutine as a span; by default only of coroutines.
    steps: Optional[bool] = None
    # Told with every event.
    extra: Optional[dict[str, Any]] = None


def names(given: Iterable[str], option: str) -> tuple[str, ...]:
    """A list of parameters' names; one name alone is a mistake that Python would read as a list of letters."""
    if isinstance(given, str):
        raise TypeError(f"{option} is a list of names of parameters: write {option}=[{given!r}]")
    chosen = tuple(given)
    if not all(isinstance(name, str) for name in chosen):
        raise TypeError(f"{option} is a list of names of parameters")
    return chosen


def wrap(target: Any, options: Options) -> Any:
    """What stands in for ``target`` when it is traced: the same kind of thing."""
    if isinstance(target, (staticmethod, classmethod)):
        return type(target)(wrap(target.__func__, options))
    if isinstance(target, property):
        return _property(target, options)
    if isinstance(target, functools.cached_property):
        target.func = wrap(target.func, options)
        return target
    if isinstance(target, functools.partialmethod):
        return functools.partialmethod(wrap(target.func, options), *target.args, **target.keywords)
    if isinstance(target, type):
        return _class(target, options)
    return _callable(target, options)


def _property(target: property, options: Options) -> property:
    def accessor(function: Optional[Callable[..., Any]], suffix: str) -> Optional[Callable[..., Any]]:
        if function is None:
            return None
        traced: Callable[..., Any] = _callable(function, options._replace(name=(options.name or default_name(function)) + suffix))
        return traced

    accessors = (accessor(target.fget, ""), accessor(target.fset, ".set"), accessor(target.fdel, ".delete"))
    return type(target)(*accessors, target.__doc__)


def _class(target: type, options: Options) -> type:
    """Its public methods, where it defines them; inherited ones belong to another class."""
    for name, value in list(vars(target).items()):
        if not name.startswith("_") and isinstance(value, (FunctionType, staticmethod, classmethod, property)):
            of_method = None if options.name is None else f"{options.name}.{name}"
            setattr(target, name, wrap(value, options._replace(name=of_method)))
    return target


def default_name(function: Any) -> str:
    """``Class.method`` of methods, the bare name of functions inside functions."""
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None)
    return name.rpartition("<locals>.")[2] if isinstance(name, str) else type(function).__qualname__


def _callable(function: Callable[..., Any], options: Options) -> Any:
    driver, own_steps = _driver(function)
    steps = own_steps if options.steps is None else options.steps
    parameters, rest, others = _parameters(function, options)
    traced = _native.traced(
        function,
        options.name or default_name(function),
        options.category,
        usage=options.cpu_mem,
        parameters=parameters,
        rest=rest,
        others=others,
        extra=options.extra,
        driver=driver,
        steps=steps,
    )
    functools.update_wrapper(traced, function)
    setattr(traced, _OPTIONS, options)
    return traced


def _driver(function: Callable[..., Any]) -> tuple[Optional[Callable[[_native.Life], Any]], bool]:
    """How to go through what the function returns, and whether its steps are told."""
    flags = _flags(function)
    if flags & _COROUTINE:
        return _drive.coroutine, True
    if flags & _ASYNC_GENERATOR:
        return _drive.async_generator, True
    if flags & _GENERATOR:
        return (_drive.awaitable_generator if flags & _ITERABLE_COROUTINE else _drive.generator), False
    return None, False


def _flags(function: Any) -> int:
    """The flags of the code that a call runs, where that is Python code."""
    if type(function) is FunctionType:
        return function.__code__.co_flags
    import inspect

    code_of = function
    if not inspect.isroutine(function) and not isinstance(function, (functools.partial, _native.TracedFunction)):
        code_of = getattr(type(function), "__call__", function)
    if inspect.iscoroutinefunction(code_of):
        return _COROUTINE
    if inspect.isasyncgenfunction(code_of):
        return _ASYNC_GENERATOR
    if inspect.isgeneratorfunction(code_of):
        return int(getattr(inspect.unwrap(code_of), "__code__", code_of.__code__).co_flags)
    return 0


Parameters = tuple[Optional[list[tuple[str, int, bool]]], Optional[str], bool]


def _parameters(function: Callable[..., Any], options: Options) -> Parameters:
    """The function's parameters with which of them are recorded, the name of ``*args`` and whether ``**kwargs`` are."""
    if not options.args:
        return None, None, False
    import inspect

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        # Built-in functions that do not tell.
        return [], "args", True
    known = signature.parameters
    chosen = set(options.args) if isinstance(options.args, tuple) else set(known)
    others = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in known.values())
    for name in (*chosen, *options.skip):
        if name not in known and not others:
            raise ValueError(f"{default_name(function)} has no parameter called {name!r}")
    if options.args is True:
        chosen -= {name for name in list(known)[:1] if name in ("self", "cls")}
    chosen -= set(options.skip)
    listed, rest, all_others = [], None, False
    for name, parameter in known.items():
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            rest = name if name in chosen else None
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            all_others = name in chosen
        else:
            listed.append((name, _PASSING[parameter.kind.name], name in chosen))
    # Names that only `**kwargs` can take.
    listed += [(name, 2, True) for name in sorted(chosen) if name not in known]
    return listed, rest, all_others


def _is_importable(traced: Any) -> bool:
    found = sys.modules.get(getattr(traced, "__module__", None) or "")
    for part in getattr(traced, "__qualname__", "<unknown>").split("."):
        found = getattr(found, part, None)
    return found is traced


def _reduce(traced: Any, protocol: int) -> Any:
    """By name, as functions are pickled.

    cloudpickle (Dask, Ray, joblib) sends functions that others cannot import by value; then the traced one goes as its function and
    its options, and is traced at the other end too.
    """
    by_value = "cloudpickle" in sys._getframe(1).f_globals.get("__name__", "")
    if by_value and (traced.__module__ == "__main__" or not _is_importable(traced)) and hasattr(traced, _OPTIONS):
        return wrap, (traced.__wrapped__, getattr(traced, _OPTIONS))
    return traced.__qualname__


def _itself(traced: Any, memo: Any = None) -> Any:
    return traced


def _repr(traced: Any) -> str:
    return f"<traced {getattr(traced, '__wrapped__', None)!r}>"


for _type in (_native.TracedFunction, _native.TracedCallable):
    setattr(_type, "__reduce_ex__", _reduce)
    setattr(_type, "__copy__", _itself)
    setattr(_type, "__deepcopy__", _itself)
    setattr(_type, "__repr__", _repr)
