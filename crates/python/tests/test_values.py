"""Arguments of every kind: short, exact where that is possible, and never an exception."""

import math

import pytest
from support import Run

PROGRAM = """
    import collections, dataclasses, enum, json, math, pathlib, sys, types
    import numpy
    import weftline
    from weftline import trace, span, instant, counter, meta

    class Raises:
        def __repr__(self): raise RuntimeError("no")

    class Exits:
        def __repr__(self): raise SystemExit(3)

    class Endless:
        def __repr__(self): return repr(self)

    class NotText:
        def __repr__(self): return 5

    class Listed(list):
        def __len__(self): raise RuntimeError("no")

    class Color(enum.Enum):
        RED = 1

    class Level(enum.IntEnum):
        HIGH = 3

    class Text(str):
        def __str__(self): raise RuntimeError("no")
        def __len__(self): raise RuntimeError("no")
        def encode(self, *a): raise RuntimeError("no")

    class Number(int):
        def __index__(self): raise RuntimeError("no")
        def __int__(self): raise RuntimeError("no")
        def __repr__(self): raise RuntimeError("no")

    class Ratio(float):
        def __float__(self): raise RuntimeError("no")

    @dataclasses.dataclass
    class Point:
        x: int
        y: int

    Pair = collections.namedtuple("Pair", "a b")

    class Removes:
        def __init__(self, d): self.d = d
        def __repr__(self):
            self.d.clear()
            return "removed"

    # What torch looks like from outside.
    class Tensor:
        shape, dtype = (4,), "torch.bfloat16"
        def __repr__(self): raise RuntimeError("waited for a device")
        def item(self): raise RuntimeError("waited for a device")
    Tensor.__module__ = "torch"

    loop = []
    loop.append(loop)
    deep = []
    for _ in range(10000):
        deep = [deep]

    VALUES = dict(
        zero=0, negative=-1, most=2**63 - 1, least=-(2**63), unsigned=2**64 - 1, big=2**64, huge=10**400, enormous=1 << 10_000_000,
        truth=True, untruth=False, nothing=None, ratio=0.123456789012, nan=math.nan, inf=math.inf, neginf=-math.inf,
        tiny=5e-324, text="hä\\n\\"quoted\\"", empty="", long="é" * 5000, surrogate="a\\udcffb", lone="a\\ud800b", nul="a\\0b",
        octets=b"abc", array=bytearray(7), view=memoryview(b"12345"), path=pathlib.PurePosixPath("/data/x y"),
        items=list(range(1000)), pair=(1, "two"), mapping={"a": [1, 2]}, many=set(range(3)), loop=loop, deep=deep, named=Pair(1, 2),
        raises=Raises(), exits=Exits(), endless=Endless(), not_text=NotText(), color=Color.RED, level=Level.HIGH, point=Point(1, 2),
        text_like=Text("plain"), number_like=Number(5), ratio_like=Ratio(0.5), ndarray=numpy.zeros((2, 3), numpy.float32),
        scalar=numpy.int64(42), half=numpy.float16(0.5), double=numpy.float64(0.25), flag=numpy.bool_(True), when=numpy.datetime64("2024-01-02"),
        point0=numpy.array(7), tensor=Tensor(),
        function=len, module=json.__name__, complexity=1j, kind=int, ellipsis=..., few=Listed([1, 2]), listed=Listed(range(100_000)), nested=[Raises(), Exits(), Tensor(), b"12"],
    )

    @trace(args=True)
    def takes(value, which): return which

    def main():
        kept = {}
        for which, value in VALUES.items():
            try:
                takes(value, which)
                kept[which] = "ok"
            except BaseException as error:
                kept[which] = repr(error)
        with span("all", **{key: value for key, value in list(VALUES.items())[:12]}) as s:
            s.update(late=Raises())
        removed = {}
        removed.update(a=Removes(removed), b=2)
        weftline._native.emit(weftline._native.SPAN, "removes", "app", 1, 1, 0, removed)
        weftline._native.emit(weftline._native.SPAN, "keys", "app", 1, 1, 0, {1: "one", None: "none", Raises(): "raises"})
        counter("queue", length=3, share=0.5)
        instant("happened", "instants", why=Raises())
        meta("model", layers=23)
        with span("crowded", **{f"key{n:03}": "x" * 400 for n in range(50)}):
            pass
        with span('odd "name"\\n', "odd \\\\ category"):
            pass
        print(json.dumps({key: value for key, value in kept.items() if value != "ok"}))

    if __name__ == "__main__":
        main()
"""

EXPECTED = {
    "zero": 0,
    "negative": -1,
    "most": 2**63 - 1,
    "least": -(2**63),
    "unsigned": 2**64 - 1,
    "big": str(2**64),
    "huge": "1" + "0" * 400,
    "enormous": "int of 10000001 bits",
    "truth": True,
    "untruth": False,
    "nothing": None,
    "ratio": 0.123456789012,
    "nan": "NaN",
    "inf": "Infinity",
    "neginf": "-Infinity",
    "tiny": 5e-324,
    "text": 'hä\n"quoted"',
    "empty": "",
    "nul": "a\0b",
    "octets": "bytes[3]",
    "array": "bytearray[7]",
    "view": "memoryview[5]",
    "path": "/data/x y",
    "items": "[0, 1, 2, 3, 4, 5, 6, 7, ...]",
    "pair": "(1, 'two')",
    "mapping": "{'a': [1, 2]}",
    "many": "{0, 1, 2}",
    "named": "Pair(a=1, b=2)",
    "raises": "Raises",
    "exits": "Exits",
    "endless": "Endless",
    "not_text": "NotText",
    "color": "<Color.RED: 1>",
    "level": 3,
    "point": "Point(x=1, y=2)",
    "text_like": "plain",
    "number_like": 5,
    "ratio_like": 0.5,
    "ndarray": "ndarray float32[2,3]",
    "scalar": 42,
    "half": 0.5,
    "double": 0.25,
    "flag": True,
    "when": "datetime.date(2024, 1, 2)",
    "point0": 7,
    "tensor": "Tensor bfloat16[4]",
    "function": "<built-in function len>",
    "module": "json",
    "complexity": "1j",
    "kind": "<class 'int'>",
    "ellipsis": "Ellipsis",
    "few": "[1, 2]",
    "listed": "Listed of 100000 items",
    "nested": "[Raises, Exits, Tensor bfloat16[4], bytes[2]]",
}


def recorded(traced: Run, which: str) -> object:
    (event,) = [event for event in traced.all("takes") if event.args["which"] == which]
    return event.args["value"]


def test_nothing_was_raised(traced: Run) -> None:
    assert traced.said() == {}
    assert traced.errors == ""


@pytest.mark.parametrize("which", EXPECTED)
def test_value(traced: Run, which: str) -> None:
    value = recorded(traced, which)
    expected = EXPECTED[which]
    assert value == expected and type(value) is type(expected)
    assert not (isinstance(value, float) and math.isnan(value))


def test_long_texts_are_cut(traced: Run) -> None:
    long = recorded(traced, "long")
    assert isinstance(long, str) and long.startswith("é" * 512) and "é" * 513 not in long and len(long) < 600


def test_texts_that_are_no_unicode_are_kept(traced: Run) -> None:
    for which in ("surrogate", "lone"):
        value = recorded(traced, which)
        assert isinstance(value, str) and value.startswith("a") and value.endswith("b") and len(value) > 2


def test_cycles_and_depth_end(traced: Run) -> None:
    assert str(recorded(traced, "loop")).count("[") <= 8
    assert len(str(recorded(traced, "deep"))) < 100


def test_blocks_and_instants(traced: Run) -> None:
    every = traced.one("all").args
    assert every["most"] == 2**63 - 1 and every["late"] == "Raises" and len(every) == 13
    assert traced.one("removes").args == {"a": "removed", "b": 2}
    assert traced.one("keys").args == {"1": "one", "None": "none", "Raises": "raises"}
    assert traced.one("queue", "C").args == {"length": 3, "share": 0.5}
    happened = traced.one("happened", "i")
    assert (happened.category, happened.args) == ("instants", {"why": "Raises"})
    assert traced.one("model", "M").args == {"layers": 23}


def test_there_is_a_limit(traced: Run) -> None:
    crowded = traced.one("crowded").args
    assert 5 <= len(crowded) < 50 and set(crowded["key000"]) == {"x"}


def test_odd_names(traced: Run) -> None:
    assert traced.one('odd "name"\n').category == "odd \\ category"
