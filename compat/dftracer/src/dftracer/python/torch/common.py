"""Hands what PyTorch's profiler measured to the trace: category ``PP``, one event for each of its events."""

from typing import Any, Dict, Optional

from dftracer import _recording
from dftracer._recording import ASYNC_SPAN, SPAN


def trace_handler(profiler_result: Any) -> None:
    """For ``torch.profiler.profile(on_trace_ready=trace_handler)``."""
    if not _recording.now():
        return
    events = list(profiler_result.events())
    begin = _trace_start_ns(profiler_result, events)
    if begin is None:
        return
    here = _thread_of_handler(events)
    whole = sum(event.cpu_time_total for event in events if event.cpu_parent is None) or None
    for event in events:
        span = event.time_range
        # What ran on other threads or on a device may overlap what ran here.
        kind = SPAN if event.thread == here and "CPU" in str(event.device_type) else ASYNC_SPAN
        start, end = int(span.start * 1000), int(span.end * 1000)
        _recording.emit_at(str(event.name), "PP", begin + start, end - start, _arguments(event, whole), kind)


def _arguments(event: Any, whole: Optional[float]) -> Dict[str, Any]:
    shapes = event.input_shapes or []
    args: Dict[str, Any] = {
        "device": int(getattr(event.device_type, "value", 0)),
        "cpu_memory": int(_first(event, "cpu_memory_usage", "self_cpu_memory_usage")),
        "is_remote": int(bool(event.is_remote)),
        "device_memory_usage": int(_first(event, "device_memory_usage", "cuda_memory_usage")),
        "input_size": sum(len(shape) for shape in shapes),
    }
    if whole:
        args["total_cpu_percent"] = 100.0 * event.cpu_time_total / whole
    if any(shapes):
        args["input_shapes"] = str(shapes)
    return args


def _first(event: Any, *names: str) -> Any:
    """PyTorch renamed what is about devices; the first name that is there counts."""
    return next((value for value in (getattr(event, name, None) for name in names) if value is not None), 0)


def _trace_start_ns(profiler_result: Any, events: Any) -> Optional[int]:
    """Wall time that the times of events count from. Old versions do not tell: then the last event has just ended."""
    results: Any = getattr(getattr(profiler_result, "profiler", None), "kineto_results", None)
    if hasattr(results, "trace_start_ns"):
        return int(results.trace_start_ns())
    if hasattr(results, "trace_start_us"):
        return int(results.trace_start_us()) * 1000
    if not events:
        return None
    return _recording.wall_us() * 1000 - int(max(event.time_range.end for event in events) * 1000)


def _thread_of_handler(events: Any) -> Any:
    """PyTorch's number of the thread that steps the profiler, which is the one that runs the handler."""
    steps = [event.thread for event in events if str(event.name).startswith("ProfilerStep")]
    return steps[0] if steps else min((event.thread for event in events), default=0)
