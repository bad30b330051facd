"""Stands in for torch, which is too big for a test: its data loader's modules, classes and private methods, as far as ``weftline._auto`` touches them.

Written after the behaviour of torch 2: which method asks for an index, hands it to a worker, takes the batch from it. ``make weekly`` runs the same
tests with torch itself.
"""

from . import utils  # noqa: F401
