"""The tree of training: ``ai.compute.forward``, ``ai.data.item``, ``ai.pipeline.epoch`` and so on.

Each node is a decorator, a context manager, an iterator and a pair of ``start`` and ``stop``. Values given to ``update`` apply
to the node and all nodes below it from then on; values of a call (``node(step=3)``) apply to that use alone.
"""

import inspect
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Container,
    Dict,
    Iterable,
    Iterator,
    List,
    Optional,
    Tuple,
    TypeVar,
    Union,
    overload,
)

from dftracer import _recording
from dftracer import dftracer as profiler
from dftracer._calls import wrap
from dftracer._frames import Source
from dftracer.python import ai_names
from dftracer.python.ai_names import *  # noqa: F403
from dftracer.python.ai_names import (
    CTX_SEPARATOR,
    INIT_NAME,
    ITER_COUNT_NAME,
    ROOT_CAT,
    ROOT_NAME,
    START_METADATA_NAME,
    STOP_METADATA_NAME,
    CheckpointEvent,
    CommunicationEvent,
    ComputeEvent,
    DataEvent,
    DataLoaderEvent,
    DeviceEvent,
    IOEvent,
    OtherEvent,
    PipelineEvent,
    ProfileCategory,
    get_iter_block_name,
    get_iter_handle_name,
)
from dftracer.python.common import iterate
from dftracer.python.tags import Args, Int, Values, training

if TYPE_CHECKING:
    from typing_extensions import Unpack

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

__all__ = [
    "AI",
    "Checkpoint",
    "Communication",
    "Compute",
    "DFTracerAI",
    "Data",
    "DataLoader",
    "Device",
    "IO",
    "Other",
    "Pipeline",
]
__all__ += ai_names.__all__


class _Use(Source):
    """The events of one node, or of one use of it with values of its own."""

    adds_to_running = False
    switches = True

    def __init__(self, category: str, enable: bool, below: Optional["_Use"] = None) -> None:
        super().__init__(category, enable)
        self.below = below
        # Dictionaries that have this node's values except for some keys.
        self.followers: List[Tuple[Dict[str, Any], Container[str]]] = []

    def enabled(self) -> bool:
        return self.switch and (self.below is None or self.below.enabled())

    def values(self) -> Dict[str, Any]:
        return self.given if self.below is None else {**self.below.values(), **self.given}

    def extra(self) -> Dict[str, Any]:
        if self.below is None:
            return self.given
        values = self.values()
        self.followers.append((values, ()))
        hidden = set(self.given)
        below: Optional[_Use] = self.below
        while below is not None:
            below.followers.append((values, frozenset(hidden)))
            hidden |= set(below.given) if below.below is not None else set()
            below = below.below
        return values

    def hold(self, values: Dict[str, Any]) -> None:
        """Values of all later events."""
        self.given.update(values)
        for follower, hidden in self.followers:
            follower.update((key, value) for key, value in values.items() if key not in hidden)


def _with_parameters_of(other: Callable[..., Any]) -> Callable[[F], F]:
    """Decorator for a function that passes on what `other` takes, for those who ask for its signature."""

    def signed(function: F) -> F:
        setattr(function, "__signature__", inspect.signature(other))
        return function

    return signed


class DFTracerAI:
    """A node of the tree."""

    def __init__(
        self, *, cat: str, name: Optional[str] = None,
        epoch: Int = None, step: Int = None, image_idx: Int = None, image_size: Any = None, enable: bool = True
    ) -> None:  # fmt: skip
        self._cat = str(cat)
        self._name = str(name) if name else self._cat
        self._source = _Use(self._cat, enable)
        self._source.given.update(training(epoch, step, image_idx, image_size))
        self._children: Dict[str, "DFTracerAI"] = {}

    @overload
    def __call__(self, fn: F, **values: "Unpack[Values]") -> F: ...

    @overload
    def __call__(self, fn: None = None, **values: "Unpack[Values]") -> "DFTracerAI": ...

    def __call__(
        self, fn: Optional[F] = None, *, enable: Optional[bool] = None,
        epoch: Int = None, step: Int = None, image_idx: Int = None, image_size: Any = None, args: Args = None
    ) -> Union[F, "DFTracerAI"]:  # fmt: skip
        """Decorates `fn`; without one, the node with values for one use, to decorate with or to enter."""
        values = training(epoch, step, image_idx, image_size, args)
        node = self
        if values or enable is not None or fn is None:
            node = DFTracerAI(cat=self._cat, name=self._name, enable=enable is not False)
            node._source = _Use(self._cat, enable is not False, self._source)
            node._source.given.update(values)
        return node if fn is None else node._decorate(fn)

    def _decorate(self, fn: F) -> F:
        if not _recording.wanted():
            return fn
        return wrap(fn, self._name, self._source)

    def __enter__(self) -> "DFTracerAI":
        self._source.enter(context=self._source.enabled())
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        self._source.leave(self._name, exc_val)

    def get_time(self) -> int:
        return _recording.wall_us()

    def start(self, metadata: bool = False) -> None:
        """Begins an event that ``stop`` ends, perhaps in another function or thread; `metadata` records an instant instead."""
        if metadata:
            self._tell_time(START_METADATA_NAME)
        else:
            self._source.enter(context=False)

    def stop(self, metadata: bool = False) -> None:
        if metadata:
            self._tell_time(STOP_METADATA_NAME)
        else:
            self._source.leave(self._name)

    def _tell_time(self, what: str) -> None:
        if self._source.enabled():
            profiler.log_metadata_event(f"{self._name}{CTX_SEPARATOR}{what}", str(_recording.wall_us()))

    def reset(self) -> None:
        """Drops events that were begun and not ended."""
        self._source.forget()

    def enable(self) -> None:
        self._switch(True)

    def disable(self) -> None:
        self._switch(False)

    def _switch(self, on: bool) -> None:
        self._source.switch = on
        for child in list(self._children.values()):
            child._switch(on)

    @property
    def cat(self) -> str:
        return self._cat

    @property
    def name(self) -> str:
        return self._name

    def update(
        self, epoch: Int = None, step: Int = None, image_idx: Int = None, image_size: Any = None, args: Args = None
    ) -> "DFTracerAI":
        """Values of all later events of this node and of those below it."""
        self._source.hold(training(epoch, step, image_idx, image_size, args))
        for child in list(self._children.values()):
            child.update(epoch, step, image_idx, image_size, args)
        return self

    def iter(
        self,
        iterator: "Iterable[T]",
        *,
        include_block: bool = True,
        include_iter: bool = True,
        iter_name: Optional[str] = None,
        block_name: Optional[str] = None,
    ) -> "Iterator[T]":
        """The items; for each, ``<name>.iter`` is the time to get it and ``<name>.block`` the time it was used."""
        getting = (iter_name or get_iter_handle_name(self._name)) if include_iter else None
        using = (block_name or get_iter_block_name(self._name)) if include_block else None
        return iterate(self._source, iterator, getting, using, ITER_COUNT_NAME)

    def create_children(self, names: Dict[str, str]) -> None:
        """Makes children with this node's category and values; each is an attribute of its node."""
        for attribute, name in names.items():
            self._adopt(str(attribute), DFTracerAI(cat=self._cat, name=str(name), enable=self._source.switch))

    def _adopt(self, attribute: str, child: "DFTracerAI") -> "DFTracerAI":
        child._source.given.update(self._source.given)
        self._children[attribute] = child
        setattr(self, attribute, child)
        return child

    def derive(self, name: str) -> "DFTracerAI":
        """The child ``<this node>.<name>``; the same one for the same name."""
        key = f"{self._name}{CTX_SEPARATOR}{name}"
        child = self._children.get(key)
        if child is None:
            child = DFTracerAI(cat=self._cat, name=key, enable=self._source.switch)
            child._source.given.update(self._source.values())
            self._children[key] = child
        return child

    @overload
    def init(self, fn: F, **values: "Unpack[Values]") -> F: ...

    @overload
    def init(self, fn: None = None, **values: "Unpack[Values]") -> "DFTracerAI": ...

    @_with_parameters_of(__call__)
    def init(self, fn: Optional[F] = None, **values: "Unpack[Values]") -> Union[F, "DFTracerAI"]:
        """Decorator for what sets things up: ``<this node>.init``."""
        use = self.derive(INIT_NAME)(**values)
        return use if fn is None else use(fn)


class _Branch(DFTracerAI):
    """A node right below the root: its category is its name."""

    _category: str = ""
    _events: "Iterable[Any]" = ()

    def __init__(
        self, epoch: Int = None, step: Int = None, image_idx: Int = None, image_size: Any = None, enable: bool = True
    ) -> None:
        super().__init__(
            cat=self._category, epoch=epoch, step=step, image_idx=image_idx, image_size=image_size, enable=enable
        )
        self.create_children({str(event): str(event) for event in self._events})


class IO(DFTracerAI):
    """Reading and writing of a branch: ``data.io.open`` and so on."""

    open: DFTracerAI
    read: DFTracerAI
    write: DFTracerAI
    close: DFTracerAI

    def __init__(
        self, *, cat: str, parent_name: str,
        epoch: Int = None, step: Int = None, image_idx: Int = None, image_size: Any = None, enable: bool = True
    ) -> None:  # fmt: skip
        name = f"{parent_name}{CTX_SEPARATOR}io"
        super().__init__(
            cat=cat, name=name, epoch=epoch, step=step, image_idx=image_idx, image_size=image_size, enable=enable
        )
        self.create_children({str(event): f"{name}{CTX_SEPARATOR}{event}" for event in IOEvent})


class _BranchWithIO(_Branch):
    """A branch with separate nodes for reading and writing."""

    io: IO

    def __init__(
        self, epoch: Int = None, step: Int = None, image_idx: Int = None, image_size: Any = None, enable: bool = True
    ) -> None:
        super().__init__(epoch, step, image_idx, image_size, enable)
        self._adopt("io", IO(cat=self._cat, parent_name=self._name, enable=enable))


class Compute(_Branch):
    forward: DFTracerAI
    backward: DFTracerAI
    step: DFTracerAI
    _category, _events = str(ProfileCategory.COMPUTE), ComputeEvent


class Data(_BranchWithIO):
    preprocess: DFTracerAI
    item: DFTracerAI
    _category, _events = str(ProfileCategory.DATA), DataEvent


class DataLoader(_Branch):
    fetch: DFTracerAI
    _category, _events = str(ProfileCategory.DATALOADER), DataLoaderEvent


class Communication(_Branch):
    send: DFTracerAI
    receive: DFTracerAI
    barrier: DFTracerAI
    bcast: DFTracerAI
    reduce: DFTracerAI
    all_reduce: DFTracerAI
    gather: DFTracerAI
    all_gather: DFTracerAI
    scatter: DFTracerAI
    reduce_scatter: DFTracerAI
    all_to_all: DFTracerAI
    _category, _events = str(ProfileCategory.COMM), CommunicationEvent


class Device(_Branch):
    transfer: DFTracerAI
    _category, _events = str(ProfileCategory.DEVICE), DeviceEvent


class Checkpoint(_BranchWithIO):
    capture: DFTracerAI
    restart: DFTracerAI
    _category, _events = str(ProfileCategory.CHECKPOINT), CheckpointEvent


class Pipeline(_Branch):
    epoch: DFTracerAI
    train: DFTracerAI
    evaluate: DFTracerAI
    test: DFTracerAI
    _category, _events = str(ProfileCategory.PIPELINE), PipelineEvent


class Other(_BranchWithIO):
    log: DFTracerAI
    _category = str(ProfileCategory.OTHER)

    def __init__(
        self, epoch: Int = None, step: Int = None, image_idx: Int = None, image_size: Any = None, enable: bool = True
    ) -> None:
        super().__init__(epoch, step, image_idx, image_size, enable)
        self.create_children({str(event): f"{self._name}{CTX_SEPARATOR}{event}" for event in OtherEvent})


class AI(DFTracerAI):
    """The root."""

    compute: Compute
    data: Data
    dataloader: DataLoader
    comm: Communication
    device: Device
    checkpoint: Checkpoint
    pipeline: Pipeline
    other: Other

    def __init__(
        self, epoch: Int = None, step: Int = None, image_idx: Int = None, image_size: Any = None, enable: bool = True
    ) -> None:
        super().__init__(
            cat=ROOT_CAT,
            name=ROOT_NAME,
            epoch=epoch,
            step=step,
            image_idx=image_idx,
            image_size=image_size,
            enable=enable,
        )
        for branch in (Compute, Data, DataLoader, Communication, Device, Checkpoint, Pipeline, Other):
            self._adopt(branch._category, branch(epoch, step, image_idx, image_size, enable))
