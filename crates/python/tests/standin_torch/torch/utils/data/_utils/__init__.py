from . import fetch, worker  # noqa: F401
