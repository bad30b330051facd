"""As :mod:`dftracer.python`: there is one recorder, and it needs no variant for debugging."""

from dftracer.python import *  # noqa: F403
from dftracer.python import __all__  # noqa: F401
