"""As :mod:`dftracer.python.logger`."""

from dftracer.python.common import *  # noqa: F403
from dftracer.python.common import __all__  # noqa: F401
