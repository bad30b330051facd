"""The interface of DFTracer 1: ``from dftracer.logger import dftracer, dft_fn``."""

from dftracer.python import *  # noqa: F403
from dftracer.python import __all__  # noqa: F401
