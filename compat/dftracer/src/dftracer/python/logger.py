"""``dftracer``, ``dft_fn`` and what belongs to them."""

from dftracer.python.common import *  # noqa: F403
from dftracer.python.common import __all__  # noqa: F401
