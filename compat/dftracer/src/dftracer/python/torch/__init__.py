"""Events of PyTorch's own profiler, put into the trace."""

from dftracer.python.torch.common import trace_handler

__all__ = ["trace_handler"]
