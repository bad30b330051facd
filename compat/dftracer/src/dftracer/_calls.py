"""Wrappers around functions, one for each kind of function, so that each is recorded with its true duration.

A plain call is a span on its thread's stack. A generator, a coroutine or an async generator lives from its first step
to its last, which may cross other spans of the thread, so its life is an async span. An exception is recorded by the name
of its type and propagates.

Weftline's native wrapper does all this in a fraction of a microsecond. The ones here are for what it cannot do:
values that are added while the function runs, values read from the arguments, and switches that can change at any
time.
"""

import functools
import inspect
import types
from typing import (
    Any,
    AsyncGenerator,
    Callable,
    ContextManager,
    Dict,
    Generator,
    Optional,
    Protocol,
    Tuple,
    TypeVar,
    cast,
)

from weftline import _wrapping
from weftline._drive import Relay, ending

from dftracer._frames import Frame, Source, current_frame
from dftracer._recording import ASYNC_SPAN, SPAN, new_id, now

F = TypeVar("F", bound=Callable[..., Any])
Capture = Optional[Callable[[Tuple[Any, ...], Dict[str, Any]], Optional[Dict[str, Any]]]]

# Methods of a source that add to the event that is under way. A function that mentions none of them needs no frame.
ADDING = frozenset(("update", "relate", "relate_entity", "uses", "generates"))


class Looks(Protocol):
    """What reads values from the arguments of calls."""

    @property
    def attributes(self) -> Tuple[str, ...]:
        """Attributes that it looks at."""

    def names(self) -> Tuple[str, ...]:
        """Parameters that it looks at."""

    def has_attributes(self, args: Tuple[Any, ...]) -> bool:
        """Whether the object whose method is called may have any of them."""

    def of_call(self, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> Optional[Dict[str, Any]]:
        """The values."""


def wrap(function: F, name: Optional[str], source: Source, look: Optional[Callable[[Any], Looks]] = None) -> F:
    """Wraps the function: each call is recorded by `source`, with the values that `look` finds in its arguments."""
    if isinstance(function, (staticmethod, classmethod)):
        return cast(F, type(function)(wrap(function.__func__, name, source, look)))
    if isinstance(function, property):
        parts = (part and wrap(part, name, source, look) for part in (function.fget, function.fset, function.fdel))
        return cast(F, property(*parts, doc=function.__doc__))
    if name is None:
        name = str(
            getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or type(function).__name__
        )
    seen = look(function) if look else None
    framed = source.adds_to_running and _mentions(function, ADDING)
    maker = next((maker for is_kind, maker in _IN_STEPS if is_kind(function)), None)
    wrapper = (maker or _call)(function, name, source, seen.of_call if seen else None, framed)
    if not framed and not isinstance(function, type) and (maker is None or not source.switches):
        names = seen.names() if seen else ()
        native = _wrapping.wrap(
            function,
            _wrapping.Options(name=name, category=source.category, args=names, steps=False, extra=source.extra()),
        )
        if source.switches:
            wrapper = _switched(function, native, source)
        elif seen is None or not seen.attributes:
            return cast(F, native)
        elif maker is None:
            wrapper = _method(native, wrapper, seen)
    return cast(F, functools.wraps(function)(wrapper))


def _mentions(function: Any, names: "frozenset[str]") -> bool:
    code = getattr(inspect.unwrap(function) if callable(function) else function, "__code__", None)
    if code is None:
        # A callable object: it may do anything. What is written in C calls no method of ours.
        return not isinstance(function, (types.BuiltinFunctionType, types.MethodWrapperType, type))
    todo = [code]
    while todo:
        code = todo.pop()
        if not names.isdisjoint(code.co_names):
            return True
        todo.extend(part for part in code.co_consts if isinstance(part, types.CodeType))
    return False


def _switched(function: Callable[..., Any], native: Callable[..., Any], source: Source) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return (native if source.enabled() else function)(*args, **kwargs)

    return wrapper


def _method(native: Callable[..., Any], telling: Callable[..., Any], seen: Looks) -> Callable[..., Any]:
    """Most objects have none of the attributes: then the native wrapper records everything."""

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return (telling if seen.has_attributes(args) else native)(*args, **kwargs)

    return wrapper


def _call(
    function: Callable[..., Any], name: str, source: Source, capture: Capture, framed: bool
) -> Callable[..., Any]:
    if framed:
        return _framed_call(function, name, source, capture)

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not now() or not source.enabled():
            return function(*args, **kwargs)
        own = capture(args, kwargs) if capture else None
        start = now()
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            source.tell(SPAN, name, start, now(), own, error)
            raise
        source.tell(SPAN, name, start, now(), own)
        return result

    return wrapper


def _framed_call(function: Callable[..., Any], name: str, source: Source, capture: Capture) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not now() or not source.enabled():
            return function(*args, **kwargs)
        frame = Frame(source, capture(args, kwargs) if capture else None)
        token = current_frame.set(frame)
        frame.start = now()
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            source.tell(SPAN, name, frame.start, now(), frame.own, error)
            raise
        finally:
            current_frame.reset(token)
        source.tell(SPAN, name, frame.start, now(), frame.own)
        return result

    return wrapper


def _coroutine(
    function: Callable[..., Any], name: str, source: Source, capture: Capture, framed: bool
) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        if not now() or not source.enabled():
            return await function(*args, **kwargs)
        frame = Frame(source, capture(args, kwargs) if capture else None)
        token = current_frame.set(frame)
        frame.start = now()
        failure: Optional[BaseException] = None
        try:
            return await function(*args, **kwargs)
        except BaseException as error:
            failure = error
            raise
        finally:
            source.tell(ASYNC_SPAN, name, frame.start, now(), frame.own, failure, new_id())
            try:
                current_frame.reset(token)
            except ValueError:
                # Thrown away by the garbage collector, for instance: that context never saw the frame.
                pass

    return wrapper


def _life(frame: Frame, name: str) -> ContextManager[None]:
    """A generator from its first step to its last."""

    def over(failure: Optional[BaseException]) -> None:
        frame.source.tell(ASYNC_SPAN, name, frame.start, now(), frame.own, failure, new_id())

    return ending(over)


def _generator(
    function: Callable[..., Any], name: str, source: Source, capture: Capture, framed: bool
) -> Callable[..., Any]:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        if not now() or not source.enabled():
            return (yield from function(*args, **kwargs))
        frame = Frame(source, capture(args, kwargs) if capture else None)
        frame.start = now()
        with _life(frame, name):
            steps = function(*args, **kwargs)
            return (yield from _framed_steps(steps, frame) if framed else steps)

    return wrapper


def _framed_steps(steps: Generator[Any, Any, Any], frame: Frame) -> Generator[Any, Any, Any]:
    """The steps of a generator, with the frame in place during each step only: between steps, its consumer runs."""
    step: Callable[..., Any] = steps.send
    given: Tuple[Any, ...] = (None,)
    while True:
        token = current_frame.set(frame)
        try:
            item = step(*given)
        except StopIteration as stop:
            return stop.value
        finally:
            current_frame.reset(token)
        try:
            step, given = steps.send, ((yield item),)
        except GeneratorExit:
            steps.close()
            raise
        except BaseException as error:
            step, given = steps.throw, (error,)


def _async_generator(
    function: Callable[..., Any], name: str, source: Source, capture: Capture, framed: bool
) -> Callable[..., Any]:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        on = bool(now()) and source.enabled()
        frame = Frame(source, capture(args, kwargs) if on and capture else None)
        # A start of 0 is told by nobody.
        frame.start = now() if on else 0
        with _life(frame, name):
            relay = Relay(function(*args, **kwargs))
            while True:
                token = current_frame.set(frame) if on else None
                try:
                    item = await relay.step
                except StopAsyncIteration:
                    return
                finally:
                    if token is not None:
                        current_frame.reset(token)
                async with relay:
                    relay.sent = yield item

    return wrapper


_IN_STEPS = (
    (inspect.iscoroutinefunction, _coroutine),
    (inspect.isasyncgenfunction, _async_generator),
    (inspect.isgeneratorfunction, _generator),
)
