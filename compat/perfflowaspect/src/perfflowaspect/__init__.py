"""Weftline's drop-in for the Python package of PerfFlowAspect: the same interface on top of Weftline.

Use it as ever: ``import perfflowaspect.aspect``. ``perfflowaspect.__weftline__`` tells this package from the original.
"""

import os as _os

__weftline__ = True
__version__ = "0.1.0"

if _os.path.exists(_os.path.join(_os.path.dirname(__file__), "advice_chrome.py")):
    import warnings as _warnings

    _warnings.warn(
        f"weftline-perfflowaspect and the original perfflowaspect are both installed in {_os.path.dirname(__file__)}: "
        "uninstall both, then install the one you want",
        RuntimeWarning,
        stacklevel=2,
    )
