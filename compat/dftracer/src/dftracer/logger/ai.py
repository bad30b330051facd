"""As :mod:`dftracer.python.ai`, with the names that the classes had in DFTracer 1."""

from dftracer.python.ai import *  # noqa: F403
from dftracer.python.ai import __all__  # noqa: F401
from dftracer.python.ai_common import AI as _AI  # noqa: F401
from dftracer.python.ai_common import Checkpoint as _Checkpoint  # noqa: F401
from dftracer.python.ai_common import Communication as _Communication  # noqa: F401
from dftracer.python.ai_common import Compute as _Compute  # noqa: F401
from dftracer.python.ai_common import Data as _Data  # noqa: F401
from dftracer.python.ai_common import DataLoader as _DataLoader  # noqa: F401
from dftracer.python.ai_common import Device as _Device  # noqa: F401
from dftracer.python.ai_common import Pipeline as _Pipeline  # noqa: F401
