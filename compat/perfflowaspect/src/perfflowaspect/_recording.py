"""The one recorder of this process, begun as ``PERFFLOW_OPTIONS`` says; under ``weft run`` it is there already."""

import os
import sys
from typing import Any, Callable, Dict

import weftline._native as _native

OPTIONS: Dict[str, Any] = dict(_native.perfflow_options())
# An explicit "no" applies under `weft run` too.
ENABLED: bool = bool(OPTIONS["log_enable"])
# Whether spans tell what processor time and memory they used, or how the GPUs were used.
USAGE: bool = bool(OPTIONS["cpu_mem_usage"]) or bool(OPTIONS["gpu_usage"])

# The job that this process runs in, inside the jobs of its parents; not a level deeper when this module is reloaded.
INSTANCE_PATH: str = globals().get("INSTANCE_PATH") or str(OPTIONS["instance_path"])
# Whether a span is told as a beginning and an end. In a run of `weft run`, which is no file of PerfFlowAspect's, it is
# one event.
VERBOSE: bool = str(OPTIONS["log_event"]).lower() == "verbose" and not _native.is_on()

now: Callable[[], int] = _native.now
emit: Callable[..., None] = _native.emit


def begin() -> None:
    """Starts recording if it is enabled; prints one sentence if that fails."""
    if ENABLED and not _native.is_on():
        try:
            _native.begin("perfflow")
        except Exception as error:
            print(f"weftline: nothing is recorded: {error}", file=sys.stderr)
    if ENABLED and OPTIONS["gpu_usage"] and _native.is_on() and not _native.ask_gpu():
        print(
            "weftline: gpu-usage: NVIDIA's management library (libnvidia-ml.so.1) finds no GPU",
            file=sys.stderr,
        )
    if not ENABLED:
        for sentence in OPTIONS["warnings"]:
            print(f"weftline: {sentence}", file=sys.stderr)
    # The jobs of children lie inside this one. Set only now: `begin` looks at what this process was given.
    os.environ["PERFFLOW_INSTANCE_PATH"] = INSTANCE_PATH


def usage() -> Any:
    """A reading for a span that begins, where spans tell what they used."""
    return _native.usage() if USAGE else None
