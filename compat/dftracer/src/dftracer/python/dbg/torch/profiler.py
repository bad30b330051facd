"""As :mod:`dftracer.python.torch.profiler`."""

from dftracer.python.torch import trace_handler

__all__ = ["trace_handler"]
