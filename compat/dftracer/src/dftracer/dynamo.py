"""DFTracer 1's module for compiled PyTorch models; see :mod:`dftracer.python.dynamo`."""

from dftracer.python.dynamo import Dynamo, create_backend, create_detailed_op_name, dynamo

__all__ = ["Dynamo", "create_backend", "create_detailed_op_name", "dft_fn", "dynamo"]


class dft_fn(Dynamo):
    """The compiler under its name in DFTracer 1."""

    def __init__(self, name: str = "dynamo", enabled: bool = True) -> None:
        super().__init__(name=name, enable=enabled)
