"""Everything for training code: the tree, its classes and its names."""

from dftracer.python import ai_common, ai_init, common
from dftracer.python.ai_common import *  # noqa: F403
from dftracer.python.ai_init import *  # noqa: F403
from dftracer.python.common import *  # noqa: F403

__all__ = []
__all__ += ai_common.__all__
__all__ += ai_init.__all__
__all__ += common.__all__
