"""Where DFTracer keeps ``trace_handler``."""

from dftracer.python.torch.common import trace_handler

__all__ = ["trace_handler"]
