"""The programs of PerfFlowAspect's documentation, unchanged, and what its own smoke tests were seen to write."""

import json
import socket

import pytest
from support import PROGRAMS, SLACK_US, annotations_of, durations, perfflow, read

HOST = socket.gethostname()


def run(runner, listing, *, prelude="", epilogue="", **given):
    path = runner.directory / f"{listing}.py"
    path.write_text(prelude + (PROGRAMS / f"{listing}.py").read_text() + epilogue)
    return runner.run(path, **given)


def sequence(events):
    return [(event["ph"], event["name"]) for event in events]


def only_file(runner, pattern="perfflow.*"):
    (path,) = runner.files(pattern)
    return path


def spans(events):
    """Name and microseconds of each B and E that belong together, per thread, in the order in which they ended."""
    open_, found = {}, []
    for event in events:
        if event["ph"] == "B":
            open_.setdefault(event["tid"], []).append(event)
        elif event["ph"] == "E":
            begin = open_[event["tid"]].pop()
            assert begin["name"] == event["name"]
            found.append((event["name"], event["ts"] - begin["ts"]))
    assert not any(open_.values())
    return found


NESTED = [("B", "foo"), ("B", "bar"), ("B", "bas"), ("E", "bas"), ("E", "bar"), ("E", "foo")]
NESTED_OUTPUT = "Inside main\n" + "foo\nbar\nbas\n" * 4


def test_snippet(runner):
    assert run(runner, "perfflow_snippet", prelude="import time\n", epilogue="\n\nmain()\n").stdout == "hello\n"
    events = perfflow(only_file(runner))
    assert sequence(events) == [("B", "foo"), ("B", "bar"), ("E", "bar"), ("E", "foo")]
    (_, bar), (_, foo) = spans(events)
    assert 1e6 <= bar <= 1e6 + SLACK_US and 3e6 <= foo <= 3e6 + 2 * SLACK_US


def test_nested_verbose(runner):
    """Golden `smoketest_default`: 24 events."""
    assert run(runner, "perfflow_nested").stdout == NESTED_OUTPUT
    path = only_file(runner)
    events = perfflow(path)
    pid = events[0]["pid"]
    assert path.name == f"perfflow.array.{HOST}.{pid}.pfw"
    assert sequence(events) == NESTED * 4
    for event in events:
        assert list(event) == ["name", "cat", "pid", "tid", "ts", "ph"]
        assert (event["cat"], event["tid"], type(event["ts"])) == ("__main__", pid, float)


def test_nested_compact(runner):
    """Golden `smoketest_compact`: 12 events, inner ones first; each inside the one that called it."""
    run(runner, "perfflow_nested", PERFFLOW_OPTIONS="log-event=Compact")
    events = perfflow(only_file(runner))
    assert sequence(events) == [("X", "bas"), ("X", "bar"), ("X", "foo")] * 4
    assert all(list(event) == ["name", "cat", "pid", "tid", "ts", "ph", "dur"] for event in events)
    for bas, bar, foo in zip(*[iter(events)] * 3):
        for inner, outer in ((bas, bar), (bar, foo)):
            assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
        assert bar["dur"] >= 1000 and foo["dur"] >= 2000


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("Compact", [(ph, name) for name in ("bas", "bar", "foo") for ph in "CCX"]),
        (
            "Verbose",
            [("B", "foo"), ("B", "bar"), ("B", "bas")] + [(ph, name) for name in ("bas", "bar", "foo") for ph in "CCE"],
        ),
    ],
)
def test_nested_with_usage(mode, expected, runner):
    """Golden `smoketest_cpumem_*`: two counters, then the X or E."""
    run(runner, "perfflow_nested", PERFFLOW_OPTIONS=f"cpu-mem-usage=True:log-event={mode}")
    events = perfflow(only_file(runner))
    assert sequence(events) == expected * 4
    counters = [event for event in events if event["ph"] == "C"]
    for used, over in zip(counters[::2], counters[1::2]):
        assert list(used["args"]) == ["cpu_usage", "memory_usage"]
        assert 0 <= used["args"]["cpu_usage"] and used["args"]["memory_usage"] > 1000
        assert over["args"] == {"cpu_usage": 0, "memory_usage": 0} and used["ts"] <= over["ts"]


def test_nested_as_object(runner):
    run(runner, "perfflow_nested", PERFFLOW_OPTIONS="log-format=Object")
    path = only_file(runner, "perfflow.object.*")
    assert sequence(perfflow(path)) == NESTED * 4
    assert path.read_text().startswith('{\n  "displayTimeUnit": "us",')


@pytest.mark.parametrize("form", ["Array", "Object"])
def test_closed_on_request(form, runner):
    """The original knows no such option and ignores it."""
    run(runner, "perfflow_nested", PERFFLOW_OPTIONS=f"log-close=True:log-format={form}")
    whole = json.loads(only_file(runner).read_text())
    assert sequence(whole["traceEvents"] if form == "Object" else whole) == NESTED * 4


def test_nested_disabled(runner):
    """The original does not call the functions at all: golden `smoketest_disabled` prints one line."""
    assert run(runner, "perfflow_nested", PERFFLOW_OPTIONS="log-enable=False").stdout == NESTED_OUTPUT
    assert runner.files("perfflow.*") == []


def test_nested_under_weft_run(runner):
    path = runner.directory / "app.py"
    path.write_text((PROGRAMS / "perfflow_nested.py").read_text())
    runner.under_weft(path)
    assert [name for _, name, _ in annotations_of(runner.run_events(), "__main__")] == ["foo", "bar", "bas"] * 4
    assert runner.files("perfflow.*") == []


def test_critical_path(runner):
    assert run(runner, "perfflow_critical_path").stdout == "Inside main\n" + "foo\n" * 4
    events = perfflow(only_file(runner))
    assert sequence(events) == [("B", "foo"), ("E", "foo")] * 4
    assert all(1e6 <= duration <= 1e6 + SLACK_US for _, duration in spans(events))


def test_sync_events(runner):
    """Golden `direct`."""
    assert run(runner, "perfflow_sync_events").stdout == "hello\n"
    events = perfflow(only_file(runner))
    assert sequence(events) == [("B", "main"), ("B", "foo"), ("E", "foo"), ("E", "main")]
    assert {event["cat"] for event in events} == {"perfflow_sync_events.py"}
    assert all(2e6 <= duration <= 2e6 + SLACK_US for _, duration in spans(events))


def test_async_events(runner):
    """Golden `future_direct`; the ids of beginning and end are the same."""
    assert run(runner, "perfflow_async_events").stdout == "True\nhello\n"
    events = perfflow(only_file(runner))
    assert sequence(events) == [("B", "foo"), ("b", "bar"), ("e", "bar"), ("E", "foo")]
    begin, end = events[1:3]
    assert begin["id"] == end["id"] and begin["tid"] == end["tid"] != events[0]["tid"]
    assert list(begin) == ["name", "cat", "pid", "tid", "ts", "ph", "id"]
    (bar,) = durations(events, "bar")
    assert 3e6 <= bar <= 3e6 + SLACK_US
    assert read(only_file(runner)) == events
