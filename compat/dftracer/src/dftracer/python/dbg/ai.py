"""As :mod:`dftracer.python.ai`."""

from dftracer.python.ai import *  # noqa: F403
from dftracer.python.ai import __all__  # noqa: F401
