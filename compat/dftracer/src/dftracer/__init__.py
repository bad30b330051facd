"""Weftline's drop-in for the Python package of DFTracer: the same interface on top of Weftline.

``dftracer.python`` is the interface of DFTracer 2, ``dftracer.logger`` that of DFTracer 1, ``dftracer.dftracer`` the
native module below both. Only this package, not the original, has ``dftracer.__weftline__``.
"""

import os as _os

__weftline__ = True
__version__ = "0.1.0"


def _original_beside() -> bool:
    """Whether files of the original lie in this directory too, so that imports would be a mixture of both."""
    try:
        names = _os.listdir(_os.path.dirname(__file__))
    except OSError:
        return False
    return any(name == "_version.py" or (name.startswith("dftracer") and name.endswith(".so")) for name in names)


if _original_beside():
    import warnings as _warnings

    _warnings.warn(
        f"weftline-dftracer and the original dftracer are both installed in {_os.path.dirname(__file__)}: "
        "uninstall both, then install the one you want",
        RuntimeWarning,
        stacklevel=2,
    )
