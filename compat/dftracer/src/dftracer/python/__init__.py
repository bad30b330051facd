"""The interface of DFTracer 2: ``from dftracer.python import dftracer, dft_fn, ai``."""

from dftracer import __version__
from dftracer.python import ai as _ai_module
from dftracer.python.ai import *  # noqa: F403
from dftracer.python.dynamo import Dynamo, create_backend, dynamo

__all__ = ["Dynamo", "__version__", "create_backend", "dynamo"]
__all__ += _ai_module.__all__
