"""Advice around functions, for each kind of function.

*Before* runs when the function begins, *after* when it is over, by return or exception. A generator, a coroutine or an
async generator begins with its first step and is over with its last.
"""

import functools
import inspect
from typing import Any, AsyncGenerator, Callable, Generator, Optional, Tuple

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
        token = before()
        try:
            result = await function(*args, **kwargs)
        except BaseException as error:
            after(token, error)
            raise
        after(token, None)
        return result

    return wrapper


def _generator(function: Any, before: Before, after: After) -> Any:
    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        token = before()
        try:
            result = yield from function(*args, **kwargs)
        except GeneratorExit:
            after(token, None)
            raise
        except BaseException as error:
            after(token, error)
            raise
        after(token, None)
        return result

    return wrapper


def _async_generator(function: Any, before: Before, after: After) -> Any:
    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        token = before()
        steps = function(*args, **kwargs)
        step: Callable[..., Any] = steps.asend
        given: Tuple[Any, ...] = (None,)
        try:
            while True:
                try:
                    item = await step(*given)
                except StopAsyncIteration:
                    break
                try:
                    step, given = steps.asend, ((yield item),)
                except GeneratorExit:
                    await steps.aclose()
                    raise
                except BaseException as error:
                    step, given = steps.athrow, (error,)
        except GeneratorExit:
            after(token, None)
            raise
        except BaseException as error:
            after(token, error)
            raise
        after(token, None)

    return wrapper
