"""Advice around functions, for each kind of function.

*Before* runs when the function begins, *after* when it is over, by return or exception. A generator, a coroutine or an
async generator begins with its first step and is over with its last.
"""

import functools
import inspect
from functools import partial
from typing import Any, AsyncGenerator, Callable, Generator, Optional

from weftline._drive import Relay, ending

Before = Callable[[], Any]
After = Callable[[Any, Optional[BaseException]], None]


def kind_of(function: Any) -> Optional[Callable[[Any, Before, After], Any]]:
    """What weaves advice into a function that runs in steps; `None` for one that just runs."""
    if inspect.iscoroutinefunction(function):
        return _coroutine
    if inspect.isasyncgenfunction(function):
        return _async_generator
    if inspect.isgeneratorfunction(function):
        return _generator
    return None


def weave(function: Any, before: Before, after: After) -> Any:
    maker = kind_of(function) or _call
    return functools.wraps(function)(maker(function, before, after))


def _call(function: Any, before: Before, after: After) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        token = before()
        try:
            result = function(*args, **kwargs)
        except BaseException as error:
            after(token, error)
            raise
        after(token, None)
        return result

    return wrapper


def _coroutine(function: Any, before: Before, after: After) -> Any:
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        with ending(partial(after, before())):
            return await function(*args, **kwargs)

    return wrapper


def _generator(function: Any, before: Before, after: After) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with ending(partial(after, before())):
            return (yield from function(*args, **kwargs))

    return wrapper


def _async_generator(function: Any, before: Before, after: After) -> Any:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        with ending(partial(after, before())):
            relay = Relay(function(*args, **kwargs))
            while True:
                try:
                    item = await relay.step
                except StopAsyncIteration:
                    return
                async with relay:
                    relay.sent = yield item

    return wrapper
