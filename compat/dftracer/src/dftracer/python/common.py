"""``dftracer`` and ``dft_fn``: the interface that programs were written for."""

import inspect
import json
import logging
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Callable, Dict, Generator, List, Optional, TypeVar, Union, cast, overload

from weftline._native import Items

from dftracer import _recording
from dftracer import dftracer as profiler
from dftracer._calls import wrap
from dftracer._frames import Source
from dftracer._recording import SPAN, now
from dftracer.python.env import (
    DFTRACER_ENABLE,
    DFTRACER_ENABLE_ENV,
    DFTRACER_INIT_ENV,
    DFTRACER_INIT_PRELOAD,
    DFTRACER_LOG_LEVEL,
    DFTRACER_LOG_LEVEL_ENV,
    DFTRACER_TIME_METRIC_ENV,
    logger,
    setup_stream_logger,
)
from dftracer.python.profilers import NoOpProfiler, ProfilerProtocol, Tags
from dftracer.python.seen import Seen
from dftracer.python.tags import (
    Args,
    EntityID,
    EntityRelation,
    EntityRole,
    EntityStore,
    Int,
    TagDType,
    TagType,
    TagValue,
    TagValueTuple,
    training,
)

__all__ = [
    "DFTRACER_ENABLE",
    "DFTRACER_ENABLE_ENV",
    "DFTRACER_INIT_ENV",
    "DFTRACER_INIT_PRELOAD",
    "DFTRACER_LOG_LEVEL",
    "DFTRACER_LOG_LEVEL_ENV",
    "DFTRACER_TIME_METRIC_ENV",
    "EntityID",
    "EntityRelation",
    "EntityRole",
    "EntityStore",
    "NoOpProfiler",
    "ProfilerProtocol",
    "TagDType",
    "TagType",
    "TagValue",
    "TagValueTuple",
    "capture_signal",
    "dft_fn",
    "dftracer",
    "get_default_args",
    "get_time_scale",
    "logger",
    "profiler",
    "setup_logger",
    "setup_stream_logger",
]

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


def capture_signal(signal_number: int, frame: Any) -> None:
    """A signal handler that writes the trace and exits. Nothing installs it, since signals do not harm the trace."""
    dftracer.get_instance().finalize()
    sys.exit(signal_number)


def get_time_scale() -> float:
    """Units of ``get_time`` in a second."""
    return 1_000_000.0


def setup_logger(name: str, log_file: str, formatter: str, level: int = logging.INFO) -> logging.Logger:
    """A logger that writes to a file. This package uses none; it is here for programs that call it."""
    handler = logging.FileHandler(log_file)
    handler.setFormatter(logging.Formatter(formatter))
    made = logging.getLogger(name)
    made.setLevel(level)
    made.addHandler(handler)
    return made


def get_default_args(func: Callable[..., Any]) -> Dict[str, Any]:
    """The parameters of a function that have defaults, with them."""
    parameters = inspect.signature(func).parameters.values()
    return {part.name: part.default for part in parameters if part.default is not inspect.Parameter.empty}


class dftracer:
    """The tracer of this process. ``initialize_log`` starts recording if the environment enables it."""

    __instance: Optional["dftracer"] = None

    def __init__(self) -> None:
        self.logger: Any = profiler if _recording.wanted() else NoOpProfiler()
        self.dbg_logging = logging.getLogger("dftracer_dbg")
        self.start_time = self.get_time()

    @classmethod
    def get_instance(cls) -> "dftracer":
        if dftracer.__instance is None:
            dftracer.__instance = cls()
        return dftracer.__instance

    @staticmethod
    def initialize_log(
        logfile: Optional[str] = None,
        data_dir: Optional[str] = None,
        process_id: int = -1,
        log_file: Optional[str] = None,
    ) -> "dftracer":
        """Starts recording into files with the prefix `logfile`, or joins the current recording.

        DFTracer's own introduction calls the first parameter `log_file`.
        """
        _recording.begin(logfile or log_file, data_dir, process_id)
        instance = dftracer.get_instance()
        instance.logger = profiler if _recording.wanted() else NoOpProfiler()
        instance.start_time = instance.get_time()
        return instance

    def get_time(self) -> int:
        return _recording.wall_us()

    def get_config(self, key: str) -> str:
        return profiler.get_config(key)

    def log_event(
        self, name: str, cat: str, start_time: int, duration: int,
        int_args: Tags = None, float_args: Tags = None, string_args: Tags = None,
        relations: Optional[Dict[EntityRelation, List[int]]] = None
    ) -> None:  # fmt: skip
        """Records an event with a start and duration measured by ``get_time``."""
        profiler.log_event(name, cat, start_time, duration, int_args, string_args, float_args, relations)

    def log_metadata_event(self, key: str, value: str) -> None:
        profiler.log_metadata_event(key, value)

    def declare_entity(self, type: str, key: Any, store: EntityStore = EntityStore.MEMORY, uri: str = "") -> int:
        """Records an entity, a piece of data; the same type and key have the same id in every process."""
        return profiler.declare_entity(type, key, store, uri)

    def declare_entity_type(self, type: str, role: EntityRole = EntityRole.UNKNOWN, description: str = "") -> None:
        profiler.declare_entity_type(type, role, description)

    def relate_entities(self, relation: EntityRelation, subject: int, object: int) -> None:
        profiler.relate_entities(relation, subject, object)

    def set_app_metadata_int(self, key: str, value: int) -> None:
        profiler.set_app_metadata_int(key, value)

    def set_app_metadata_string(self, key: str, value: str) -> None:
        profiler.set_app_metadata_string(key, value)

    def mark_used(self, name: str) -> None:
        profiler.mark_used(name)

    def enter_event(self) -> None:
        return None

    def exit_event(self) -> None:
        return None

    def finalize(self) -> None:
        """Writes the trace. Optional: it is written when the process ends, in any way."""
        _recording.finish()


class dft_fn:
    """Events of one category: decorator, context manager, iterator, or by hand with ``update`` and ``flush``."""

    def __init__(
        self, cat: str, name: Optional[str] = None,
        epoch: Int = None, step: Int = None, image_idx: Int = None, image_size: Any = None, enable: bool = True
    ) -> None:  # fmt: skip
        self._source = Source(cat, enable)
        self._source.given.update(training(epoch, step, image_idx, image_size))
        self._name = name if name is not None else sys._getframe(1).f_code.co_name
        self._since = now()

    def __enter__(self) -> "dft_fn":
        self._source.enter()
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self._source.leave(self._name, exc_val)

    def update(
        self, epoch: Int = None, step: Int = None, image_idx: Int = None, image_size: Any = None, args: Args = None
    ) -> "dft_fn":
        """Adds values to the current event; outside of any, to all later events."""
        self._source.add(training(epoch, step, image_idx, image_size, args))
        return self

    def relate(self, relation: EntityRelation, entity: int) -> "dft_fn":
        """Records that the current event used or made an entity."""
        known = self._source.added().get("relations")
        relations: Dict[str, List[int]] = json.loads(known) if isinstance(known, str) else {}
        relations.setdefault(profiler.name_of(EntityRelation, relation), []).append(int(entity))
        self._source.add({"relations": json.dumps(relations)})
        return self

    def relate_entity(
        self,
        relation: EntityRelation,
        type: str,
        key: Any,
        store: EntityStore = EntityStore.MEMORY,
        uri: str = "",
    ) -> int:
        entity = profiler.declare_entity(type, key, store, uri)
        self.relate(relation, entity)
        return entity

    def uses(self, type: str, key: Any, store: EntityStore = EntityStore.MEMORY, uri: str = "") -> int:
        return self.relate_entity(EntityRelation.USED, type, key, store, uri)

    def generates(self, type: str, key: Any, store: EntityStore = EntityStore.MEMORY, uri: str = "") -> int:
        return self.relate_entity(EntityRelation.GENERATED, type, key, store, uri)

    def flush(self) -> "dft_fn":
        """An event from the making of this object, or from ``reset``, until now."""
        self._source.tell(SPAN, self._name, self._since, now())
        return self

    def reset(self) -> "dft_fn":
        """What is flushed next begins now."""
        self._since = now()
        return self

    @overload
    def log(self, func: F, name: Optional[str] = None) -> F: ...

    @overload
    def log(self, func: None = None, name: Optional[str] = None) -> Callable[[F], F]: ...

    def log(self, func: Optional[F] = None, name: Optional[str] = None) -> Union[F, Callable[[F], F]]:
        """Decorator: an event for each call, named after the function unless a name is given."""
        if func is None:
            return lambda function: self.log(function, name)
        if not self._source.switch or not _recording.wanted():
            return func
        return wrap(func, name, self._source, Seen)

    def log_metadata(self, key: str, value: str) -> None:
        """Records metadata of the process."""
        if self._source.switch:
            profiler.log_metadata_event(key, value)

    def iter(
        self,
        func: Union["Sequence[T]", "Iterable[T]", Generator[T, Any, Any]],
        name: str = "loop",
        iter_name: str = "step",
        include_yield: bool = True,
        include_iter: bool = True,
    ) -> "Iterator[T]":
        """The items; for each, ``<name>.iter`` is the time to get it and ``<name>.yield`` the time it was used."""
        getting = f"{name}.iter" if include_iter else None
        using = f"{name}.yield" if include_yield else None
        return iterate(self._source, func, getting, using, iter_name)

    @overload
    def log_init(self, init: F, name: Optional[str] = None) -> F: ...

    @overload
    def log_init(self, init: None = None, name: Optional[str] = None) -> Callable[[F], F]: ...

    def log_init(self, init: Optional[F] = None, name: Optional[str] = None) -> Union[F, Callable[[F], F]]:
        """Decorator for ``__init__``; what the function returns is returned."""
        return self.log(init, name) if init is not None else self.log(None, name)

    @overload
    def log_static(self, func: F, name: Optional[str] = None) -> F: ...

    @overload
    def log_static(self, func: None = None, name: Optional[str] = None) -> Callable[[F], F]: ...

    def log_static(self, func: Optional[F] = None, name: Optional[str] = None) -> Union[F, Callable[[F], F]]:
        """Decorator for static methods, above or below ``@staticmethod``."""
        return self.log(func, name) if func is not None else self.log(None, name)


def iterate(
    source: Source,
    items: "Iterable[T]",
    getting: Optional[str],
    using: Optional[str],
    count_name: str,
) -> "Iterator[T]":
    """The items, with an event for the getting and one for the using of each; `None` leaves that one out."""
    if _recording.REFUSED or not source.enabled():
        return iter(items)
    if getting and using:
        traced = Items(items, getting, source.category, body=using, count=count_name, first=1, extra=source.extra())
        return cast("Iterator[T]", traced)
    return _iterate(source, items, getting, using, count_name)


def _iterate(
    source: Source,
    items: "Iterable[T]",
    getting: Optional[str],
    using: Optional[str],
    count_name: str,
) -> "Generator[T, Any, None]":
    count = 0
    iterator = iter(items)
    while True:
        count += 1
        own = {count_name: count}
        asked = now()
        try:
            item = next(iterator)
        except StopIteration:
            return
        except BaseException as error:
            if getting:
                source.tell(SPAN, getting, asked, now(), own, error)
            raise
        got = now()
        if getting:
            source.tell(SPAN, getting, asked, got, own)
        try:
            yield item
        finally:
            # Also when the loop is left by `break` or an exception: then the generator is closed.
            if using:
                source.tell(SPAN, using, got, now(), own)
