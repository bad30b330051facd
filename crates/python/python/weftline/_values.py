"""How values become arguments of events: short, and without running anything of the user's but ``__repr__`` or ``__str__``.

The native module handles plain numbers and short texts itself and asks :func:`describe` for everything else.
"""

import reprlib
import sys
from typing import Any, Tuple, Union

TEXT = 512
# An integer of more bits is told by its size: turning one into digits takes time that grows with the square of its length.
INTEGER_BITS = 1600
# Packages whose objects have a shape and an element type. They are never imported here.
ARRAYS = frozenset(("numpy", "torch", "jax", "jaxlib", "cupy", "tensorflow", "pandas", "polars"))
# A container of a type of its own is told by `repr` up to this length, since that may well show all of it.
ITEMS = 64
CONTAINERS: Tuple[Any, ...] = (list, tuple, dict, set, frozenset)

Described = Union[None, int, float, bytes, Tuple[bytes, int]]


class Short(reprlib.Repr):
    """``repr`` that looks at a few items only, and reaches a few levels deep."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 3
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = self.maxdeque = self.maxarray = 8
        self.maxstring = self.maxother = 120

    def repr1(self, x: Any, level: int) -> str:
        kind = type(x)
        if kind.__module__.partition(".")[0] in ARRAYS:
            return shape_of(x)
        if kind in (bytes, bytearray, memoryview):
            return sized(x)
        if isinstance(x, int) and int.bit_length(x) > INTEGER_BITS:
            return big_integer(x)
        return super().repr1(x, level)

    def repr_instance(self, x: Any, level: int) -> str:
        try:
            text = own_repr(x)
        except KeyboardInterrupt:
            raise
        except BaseException:
            return type(x).__name__
        return text if len(text) <= self.maxother else text[: self.maxother] + "..."


SHORT = Short()


def describe(value: Any) -> Described:
    """A number, a text as bytes, or the beginning of a text with the length of the whole."""
    try:
        return _describe(value)
    except KeyboardInterrupt:
        # That is for the program; the native module passes it on.
        raise
    except BaseException:
        return type(value).__name__.encode("utf-8", "backslashreplace")


def _describe(value: Any) -> Described:
    kind = type(value)
    if kind is bool:
        return bool(value)
    if isinstance(value, int):
        if int.bit_length(value) <= 63:
            return int(int.__index__(value))
        if int.bit_length(value) == 64 and value > 0:
            return int(int.__index__(value))
        return text(int.__repr__(value) if int.bit_length(value) <= INTEGER_BITS else big_integer(value))
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, str):
        return text(value)
    if kind in (bytes, bytearray, memoryview):
        return text(sized(value))
    if kind.__module__.partition(".")[0] in ARRAYS:
        return array(value)
    pathlib = sys.modules.get("pathlib")
    if pathlib is not None and isinstance(value, pathlib.PurePath):
        return text(str(value))
    if kind in CONTAINERS:
        return text(SHORT.repr(value))
    return text(own_repr(value))


def own_repr(value: Any) -> str:
    """What the object says of itself, unless it may be very long."""
    for kind in CONTAINERS:
        if isinstance(value, kind) and kind.__len__(value) > ITEMS:
            return f"{type(value).__name__} of {kind.__len__(value)} items"
    return repr(value)


def text(value: str) -> Union[bytes, Tuple[bytes, int]]:
    length = str.__len__(value)
    kept = encoded(str.__getitem__(value, slice(0, TEXT)))
    return kept if length <= TEXT else (kept, min(length, 0xFFFFFFFF))


def encoded(value: str) -> bytes:
    """UTF-8; names of files that are none keep their bytes."""
    try:
        return str.encode(value, "utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return str.encode(value, "utf-8", "backslashreplace")


def big_integer(value: int) -> str:
    return f"int of {int.bit_length(value)} bits"


def sized(value: Any) -> str:
    length = value.nbytes if type(value) is memoryview else len(value)
    return f"{type(value).__name__}[{length}]"


def array(value: Any) -> Described:
    """Scalars by their value, arrays by element type and shape: no element is looked at, so nothing waits for a device."""
    if type(value).__module__.partition(".")[0] == "numpy" and getattr(value, "shape", None) == () and hasattr(value, "item"):
        scalar = value.item()
        if isinstance(scalar, (bool, int, float, str, bytes)):
            return _describe(scalar)
        return text(repr(scalar))
    return text(shape_of(value))


def shape_of(value: Any) -> str:
    shape = getattr(value, "shape", None)
    if shape is None:
        return repr(value)
    sizes = ",".join(str(size) for size in tuple(shape))
    element = str(getattr(value, "dtype", "")).rpartition(".")[2]
    return f"{type(value).__name__} {element}[{sizes}]"
