"""Typed values of events, and entities: what data was used, made or changed."""

import reprlib
from enum import Enum, IntEnum
from typing import Any, Dict, Optional, Tuple, TypedDict, Union

TagValueTuple = Tuple[int, Union[int, float, str]]


class TagType(Enum):
    """How DFTracer's aggregation treats a value. Weftline keeps every event, so all values are kept alike."""

    KEY = 0
    VALUE = 1
    IGNORE = 2


class TagDType(Enum):
    """The recorded type of a value."""

    INT = 0
    FLOAT = 1
    STRING = 2


class TagValue:
    """A value with its recorded type. A value of another type is recorded as text."""

    def __init__(self, value: Any, dtype: TagDType = TagDType.STRING, tag_type: TagType = TagType.KEY) -> None:
        self._tag_type = tag_type
        self._value: Union[int, float, str]
        try:
            self._value = (
                int(value) if dtype is TagDType.INT else float(value) if dtype is TagDType.FLOAT else text(value)
            )
        except (TypeError, ValueError, OverflowError):
            self._value = text(value)

    def value(self) -> TagValueTuple:
        return (self._tag_type.value, self._value)


# What joins the records about one entity.
EntityID = int


class EntityStore(IntEnum):
    """The place of an entity."""

    MEMORY = 0
    GPU_MEMORY = 1
    LOCAL_DISK = 2
    PARALLEL_FS = 3
    BURST_BUFFER = 4
    OBJECT_STORE = 5
    DATABASE = 6
    NETWORK = 7
    OTHER = 8


class EntityRole(IntEnum):
    """What a type of entities is for."""

    UNKNOWN = 0
    INPUT = 1
    OUTPUT = 2
    INTERMEDIATE = 3
    PARAMETER = 4
    REFERENCE = 5


class EntityRelation(IntEnum):
    """How an event and an entity belong together (below 16), or two entities."""

    USED = 0
    GENERATED = 1
    INVALIDATED = 2
    UPDATED = 3
    DERIVED_FROM = 16
    REVISION_OF = 17
    CONTAINS = 18
    PART_OF = 19
    SPECIALIZATION_OF = 20
    ALTERNATE_OF = 21
    DEPENDS_ON = 22


def text(value: Any) -> str:
    """``str(value)``; the name of its type when that fails, since telling an event must not."""
    try:
        return str(value)
    except Exception:
        return type(value).__name__


class _Short(reprlib.Repr):
    """``repr`` that does not look at a million items."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = self.maxdeque = (
            self.maxarray
        ) = 32
        self.maxstring = self.maxother = 128


_SHORT = _Short()


def plain(value: Any) -> Any:
    """What is recorded for a value: typed values by their value, containers as they are now, the rest unchanged."""
    if isinstance(value, TagValue):
        return value.value()[1]
    if isinstance(value, (list, dict, set, bytearray)):
        try:
            return _SHORT.repr(value)
        except Exception:
            return type(value).__name__
    return value


Int = Optional[int]
Args = Optional[Dict[str, Any]]


class Values(TypedDict, total=False):
    """What a use of a node may be given: the values of training code, others, and whether it is recorded."""

    enable: Optional[bool]
    epoch: Int
    step: Int
    image_idx: Int
    image_size: Any
    args: Args


def training(
    epoch: Any = None, step: Any = None, image_idx: Any = None, image_size: Any = None, args: Any = None
) -> Dict[str, Any]:
    """The four values of training code, and others, as arguments of an event. `None` and methods are no values."""
    made: Dict[str, Any] = {}
    for key, value in (("epoch", epoch), ("step", step), ("image_idx", image_idx), ("image_size", image_size)):
        if value is not None and not callable(value):
            made[key] = number(value)
    if args:
        made.update((text(key), plain(value)) for key, value in dict(args).items())
    return made


def number(value: Any) -> Any:
    """A text of digits as the integer that it is, as DFTracer has it."""
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            return value
    return plain(value)
