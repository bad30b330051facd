"""What the tests share: running programs, reading traces, asking for events."""

import gzip
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
# How much later than asked for a sleep may end on a busy machine.
SLACK_US = 400_000


class Runner:
    """Runs programs in one directory, with an environment that says nothing about tracing."""

    def __init__(self, directory):
        self.directory = Path(directory)
        unwanted = ("DFTRACER_", "PERFFLOW_", "WEFT_", "SLURM_", "LSB_", "LS_", "FLUX_", "LD_PRELOAD")
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(unwanted)}

    def run(self, program, *args, status=0, input=None, timeout=120, before=(), **environment):
        """Runs a program, given as text or as a path; its exit status must be `status`."""
        if isinstance(program, str):
            path = self.directory / "app.py"
            path.write_text(textwrap.dedent(program))
        else:
            path = program
        command = [*map(str, before), sys.executable, str(path), *map(str, args)]
        done = subprocess.run(
            command,
            cwd=self.directory,
            env={**self.environment, **{k: str(v) for k, v in environment.items()}},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )
        assert done.returncode == status, f"status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def dftracer(self, program, *args, **given):
        """Runs a program with DFTracer enabled; its trace files begin with ``out``."""
        return self.run(program, *args, **{"DFTRACER_ENABLE": 1, "DFTRACER_LOG_FILE": self.directory / "out", **given})

    def under_weft(self, program, *args, **given):
        """Runs a program under ``weft run``."""
        return self.run(program, *args, before=[weft(), "run", "-q", "-o", self.directory / "run", "--"], **given)

    def files(self, pattern="out-*.pfw*"):
        return sorted(self.directory.glob(pattern))

    def events(self, pattern="out-*.pfw*", **wanted):
        """The events of all files, in the order of time; annotations only, unless a category is asked for."""
        found = [event for path in self.files(pattern) for event in read(path)]
        found.sort(key=lambda event: event.get("ts", 0))
        return select(found, **wanted)

    def run_events(self, **wanted):
        return self.events("run/*.pfw.gz", **wanted)


def weft():
    """The command of the installed package."""
    beside = Path(sys.executable).parent / "weft"
    return beside if beside.exists() else "weft"


def read(path):
    """The events of one trace file; calls have the path of their file as an argument in place of its hash."""
    events = lines(path)
    paths = {event["args"]["value"]: event["args"]["name"] for event in events if event["name"] == "FH"}
    for event in events:
        if event.get("args", {}).get("fhash") in paths:
            event["args"]["path"] = paths[event["args"]["fhash"]]
    return events


def lines(path):
    """What stands in a file, whatever it is framed by."""
    raw = Path(path).read_bytes()
    text = (gzip.decompress(raw) if str(path).endswith(".gz") else raw).decode()
    try:
        whole = json.loads(text)
    except ValueError:
        return [json.loads(line.rstrip(", ")) for line in text.splitlines() if line.strip(" []\n")]
    return whole.get("traceEvents", [whole]) if isinstance(whole, dict) else whole


def perfflow(path):
    """The events of a file of PerfFlowAspect, whose list is open: JSON once ` {}]` is appended, as its users do."""
    text = Path(path).read_text()
    assert text.endswith("},\n"), text[-80:]
    whole = json.loads(text + (" {}]}" if text.startswith("{") else " {}]"))
    *events, last = whole["traceEvents"] if isinstance(whole, dict) else whole
    assert last == {}
    return events


def select(events, **wanted):
    """Those events whose fields are as wanted."""
    return [event for event in events if all(event.get(key) == value for key, value in wanted.items())]


def annotations_of(events, *categories):
    """Spans and lives of these categories as `(category, name, arguments)`, in the order in which they began."""
    spans = [event for event in events if event["ph"] in ("X", "b") and event["cat"] in categories]
    return [(event["cat"], event["name"], event.get("args", {})) for event in spans]


def durations(events, name):
    """Microseconds of each span or life of that name, in the order in which they began."""
    ends = {(event["cat"], event["id"]): event["ts"] for event in events if event["ph"] == "e"}
    found = []
    for event in events:
        if event["name"] == name and event["ph"] == "X":
            found.append(event["dur"])
        elif event["name"] == name and event["ph"] == "b":
            found.append(ends[event["cat"], event["id"]] - event["ts"])
    return found


def one_duration(events, name, asked_us):
    """The only span of that name lasts as long as was asked for."""
    (duration,) = durations(events, name)
    assert asked_us <= duration <= asked_us + SLACK_US, (name, duration)


def meta(events, **args):
    """Metadata records with these arguments."""
    return [event for event in events if event["ph"] == "M" and args.items() <= event.get("args", {}).items()]
