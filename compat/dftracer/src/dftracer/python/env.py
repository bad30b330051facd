"""The environment when this package was imported."""

import logging

from dftracer import _recording

DFTRACER_ENABLE_ENV = "DFTRACER_ENABLE"
DFTRACER_INIT_ENV = "DFTRACER_INIT"
DFTRACER_LOG_LEVEL_ENV = "DFTRACER_LOG_LEVEL"
DFTRACER_TIME_METRIC_ENV = "DFTRACER_TIME_METRIC"

_OPTIONS = _recording.options()

# Also true under `weft run`, where no variable is needed.
DFTRACER_ENABLE: bool = _recording.wanted()
DFTRACER_INIT_PRELOAD: bool = str(_OPTIONS["init"]).upper() == "PRELOAD"
DFTRACER_LOG_LEVEL: str = str(_OPTIONS["log_level"])

_LEVELS = {"DEBUG": logging.DEBUG, "INFO": logging.INFO, "WARN": logging.WARNING, "ERROR": logging.ERROR}


def setup_stream_logger() -> logging.Logger:
    """The logger ``DFTRACER``, at the level of ``DFTRACER_LOG_LEVEL``, with one handler that writes to stderr."""
    made = logging.getLogger("DFTRACER")
    made.setLevel(_LEVELS.get(DFTRACER_LOG_LEVEL, logging.ERROR))
    if not made.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("[%(name)s %(levelname)s] %(message)s"))
        made.addHandler(handler)
        made.propagate = False
    return made


logger = setup_stream_logger()
