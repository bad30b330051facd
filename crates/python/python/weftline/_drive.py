"""Real generators and coroutines in place of those that a traced function returned.

Each driver gets the *life* of what was returned (``_native.Life``), and gives back an object of the same kind that passes everything
on: values, exceptions, closing, the result. So ``inspect``, ``asyncio`` and everybody else see what they would see untraced.
"""

import contextlib
import types
from typing import Any, AsyncGenerator, Awaitable, Callable, Coroutine, Generator, Iterator, Optional, TypeVar

from . import _native

Driven = TypeVar("Driven")


def generator(life: _native.Life) -> Generator[Any, Any, Any]:
    return _named(_generator(life), life)


def awaitable_generator(life: _native.Life) -> Awaitable[Any]:
    return _named(_awaitable_generator(life), life)


def coroutine(life: _native.Life) -> Coroutine[Any, Any, Any]:
    return _named(_coroutine(life), life)


def async_generator(life: _native.Life) -> AsyncGenerator[Any, Any]:
    return _named(_async_generator(life), life)


def _named(driven: Driven, life: _native.Life) -> Driven:
    """Warnings and debuggers show the name of the user's function."""
    for attribute in ("__name__", "__qualname__"):
        setattr(driven, attribute, getattr(life.made, attribute, attribute))
    return driven


def _generator(life: _native.Life) -> Generator[Any, Any, Any]:
    return (yield from life.through(life.take()))


_awaitable_generator = types.coroutine(_generator)


async def _coroutine(life: _native.Life) -> Any:
    return await life.through(life.take().__await__())


@contextlib.contextmanager
def ending(over: Callable[[Optional[BaseException]], Any]) -> Iterator[None]:
    """Calls `over` with what ended the block; what its consumer closed has not failed."""
    failure: Optional[BaseException] = None
    try:
        yield
    except GeneratorExit:
        raise
    except BaseException as error:
        failure = error
        raise
    finally:
        over(failure)


class Relay:
    """``yield from`` for async generators, which Python lacks: what the consumer does with an item is done to `made`.

    Await ``step`` for the next item, and yield it inside ``async with relay: relay.sent = yield item``.
    """

    def __init__(self, made: AsyncGenerator[Any, Any]) -> None:
        self._made = made
        self.step: Awaitable[Any] = made.__anext__()
        self.sent: Any = None

    async def __aenter__(self) -> None:
        self.sent = None

    async def __aexit__(self, kind: Any, error: Optional[BaseException], traceback: Any) -> bool:
        if isinstance(error, GeneratorExit):
            await self._made.aclose()
            return False
        self.step = self._made.asend(self.sent) if error is None else self._made.athrow(error)
        return True


async def _async_generator(life: _native.Life) -> AsyncGenerator[Any, Any]:
    made = life.take()
    step = made.__anext__()
    try:
        while True:
            value = await life.part(step.__await__())
            try:
                sent = yield value
            except GeneratorExit:
                await made.aclose()
                life.over(closed=True)
                raise
            except BaseException as error:
                step = made.athrow(error)
            else:
                step = made.asend(sent)
    except StopAsyncIteration:
        life.over()
    except GeneratorExit:
        raise
    except BaseException as error:
        life.over(error)
        raise
