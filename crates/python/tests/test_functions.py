"""Decorated functions, methods, properties and classes: names, nesting, durations, arguments, errors."""

import pytest
from support import Run, lasted

PROGRAM = """
    import functools, json, threading, time
    import weftline
    from weftline import trace, span

    @trace
    def sleeps():
        time.sleep(0.02)
        return 7

    @trace("outer", category="work")
    def outer():
        return sleeps() + 1

    @trace(args=True, skip=["secret"])
    def everything(a, b=2, /, c=3, *rest, k=4, secret=None, **others):
        return a

    @trace(args=["b"])
    def chosen(a, b): pass

    @trace
    def fails():
        raise KeyError("gone")

    @trace
    def recursive(n):
        return 0 if n == 0 else 1 + recursive(n - 1)

    class Base:
        @trace(args=True)
        def method(self, x): return ("method", x)

        @trace
        @staticmethod
        def static_above(x): return x

        @staticmethod
        @trace
        def static_below(x): return x

        @trace
        @classmethod
        def class_above(cls): return cls.__name__

        @classmethod
        @trace
        def class_below(cls): return cls.__name__

        @trace
        @property
        def value(self): return self._value

        @value.setter
        def value(self, new): self._value = new

        @property
        @trace("below")
        def value_below(self): return 5

        @trace
        @functools.cached_property
        def cached(self): return 6

        def part(self, a, b): return (a, b)
        half = trace(functools.partialmethod(part, 1))

    class Derived(Base):
        def method(self, x): return super().method(x + 1)

    @trace(category="whole")
    class Whole:
        def one(self): return 1
        @staticmethod
        def two(): return 2
        def _hidden(self): return 3
        def __len__(self): return 4

    class Callable:
        def __call__(self, x): return x * 2

    class Holder:
        unbound = trace(Callable())

    ready = trace(Callable(), )
    adds = trace(functools.partial(int, base=2), )
    length = trace(len)
    counted = trace(functools.lru_cache(maxsize=None)(lambda x: x))
    with_extra = span("extra", "tagged", tag="t")(lambda: 1)

    def main():
        results = {}
        results["outer"] = outer()
        results["everything"] = everything(1, c=30, secret="s", z="zz")
        everything(1, 2, 3, 4, 5)
        chosen(1, b=[1, 2])
        try:
            fails()
        except KeyError as error:
            results["error"] = repr(error)
        results["recursive"] = recursive(30)
        thing = Base()
        thing._value = 9
        thing.value = 10
        derived = Derived()
        results["method"] = thing.method(1), derived.method(1), Base.method(thing, x=3), [m(4) for m in [thing.method]]
        results["static"] = thing.static_above(1), Base.static_below(2)
        results["class"] = Derived.class_above(), derived.class_below()
        results["property"] = thing.value, thing.value_below, thing.cached, thing.cached
        results["half"] = thing.half(2)
        whole = Whole()
        results["whole"] = whole.one(), Whole.two(), whole._hidden(), len(whole)
        results["callables"] = ready(4), Holder().unbound(5), adds("101"), length([1, 2, 3]), counted(1), counted(1), with_extra()
        results["hits"] = counted.cache_info().hits
        threads = [threading.Thread(target=outer) for _ in range(3)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        print(json.dumps(results))

    if __name__ == "__main__":
        main()
"""


def test_results_are_those_of_the_functions(traced: Run) -> None:
    assert traced.said() == {
        "outer": 8,
        "everything": 1,
        "error": "KeyError('gone')",
        "recursive": 30,
        "method": [["method", 1], ["method", 2], ["method", 3], [["method", 4]]],
        "static": [1, 2],
        "class": ["Derived", "Derived"],
        "property": [10, 5, 6, 6],
        "half": [1, 2],
        "whole": [1, 2, 3, 4],
        "callables": [8, 10, 5, 3, 1, 1, 1],
        "hits": 1,
    }
    assert traced.errors == ""


def test_durations_and_nesting(traced: Run) -> None:
    outer, sleeps = traced.all("outer"), traced.all("sleeps")
    assert len(outer) == len(sleeps) == 4
    assert {event.category for event in outer} == {"work"}
    for inner in sleeps:
        lasted(inner, 20)
        assert sum(event.holds(inner) and event.tid == inner.tid for event in outer) == 1
    assert len({event.tid for event in sleeps}) == 4


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("everything", [{"a": 1, "b": 2, "c": 30, "k": 4, "z": "zz"}, {"a": 1, "b": 2, "c": 3, "rest": "(4, 5)", "k": 4}]),
        ("chosen", [{"b": "[1, 2]"}]),
        ("fails", [{"error": "KeyError"}]),
        ("Base.method", [{"x": 1}, {"x": 2}, {"x": 3}, {"x": 4}]),
        ("Base.static_above", [{}]),
        ("Base.static_below", [{}]),
        ("Base.class_above", [{}]),
        ("Base.class_below", [{}]),
        ("Base.value", [{}]),
        # The setter was put on a traced property, so only its getter is traced.
        ("Base.value.set", []),
        ("below", [{}]),
        ("Base.cached", [{}]),
        ("Base.part", [{}]),
        ("Whole.one", [{}]),
        ("Whole.two", [{}]),
        ("Whole._hidden", []),
        ("Whole.__len__", []),
        ("Callable", [{}, {}]),
        ("int", [{}]),
        ("len", [{}]),
        ("<lambda>", [{}, {}]),
        ("extra", [{"tag": "t"}]),
    ],
)
def test_arguments(traced: Run, name: str, args: list[dict[str, object]]) -> None:
    assert [event.args for event in traced.all(name)] == args


def test_recursion_nests(traced: Run) -> None:
    calls = traced.all("recursive")
    assert len(calls) == 31
    # Those of equal start differ in nanoseconds, which are not in the start: the longer one is the outer one.
    calls.sort(key=lambda event: (event.start, -event.duration))
    assert all(outer.holds(inner) for outer, inner in zip(calls, calls[1:]))


def test_categories(traced: Run) -> None:
    assert traced.one("Whole.one").category == "whole"
    assert traced.one("extra").category == "tagged"
    assert traced.one("len").category == "app"
