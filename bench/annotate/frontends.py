"""The annotation front-ends that are compared: where each is installed, and how it is switched on and off."""

from dataclasses import dataclass, field
from pathlib import Path

# Calls per loop. Slow front-ends do fewer; everything is reported per call.
CALLS = 100_000


@dataclass
class Frontend:
    """One column of the table, for one Python."""

    name: str
    python: Path
    # The function of workload.py that annotates with it.
    kind: str
    calls: int = CALLS
    on: dict[str, str] = field(default_factory=dict)
    off: dict[str, str] = field(default_factory=dict)
    # Put before the command when it is on.
    launcher: list[str] = field(default_factory=list)

    def command(self, workload: Path, traces: Path, switched_on: bool, share: float) -> tuple[list[str], dict[str, str]]:
        variables = {name: value.replace("{traces}", str(traces)) for name, value in (self.on if switched_on else self.off).items()}
        launcher = [part.replace("{traces}", str(traces)) for part in self.launcher] if switched_on else []
        calls = max(100, int(self.calls * share))
        return [*launcher, str(self.python), str(workload), self.kind, str(calls)], variables


DFTRACER_ON = {
    "DFTRACER_ENABLE": "1",
    "DFTRACER_INC_METADATA": "1",
    "DFTRACER_LOG_FILE": "{traces}/trace",
    "DFTRACER_DATA_DIR": "{traces}/nothing",
    "DFTRACER_TRACE_COMPRESSION": "1",
}
PERFFLOW_ON = {"PERFFLOW_OPTIONS": "log-event=Compact:log-dir={traces}"}
PERFFLOW_OFF = {"PERFFLOW_OPTIONS": "log-enable=False:log-dir={traces}"}


def ours(python: Path, weft: Path) -> Frontend:
    return Frontend("weft", python, "weft", launcher=[str(weft), "run", "-q", "-o", "{traces}/run", "--"])


def drop_ins(python: Path) -> list[Frontend]:
    """Our modules under the names of the others, in their own mode: no `weft run`."""
    return [
        Frontend("weft-dftracer", python, "dftracer", on=DFTRACER_ON),
        Frontend("weft-perfflow", python, "perfflow", on=PERFFLOW_ON, off=PERFFLOW_OFF),
    ]


def others(python: Path) -> list[Frontend]:
    return [
        Frontend("dftracer", python, "dftracer", calls=5_000, on=DFTRACER_ON),
        Frontend("perfflow", python, "perfflow", calls=1_000, on=PERFFLOW_ON, off=PERFFLOW_OFF),
        Frontend("viztracer", python, "viztracer", on={"BENCH_ON": "1"}),
    ]
