"""The golden traces (crates/testkit/golden), copied so that no index lies in the source tree, and their tables."""

import csv
import gzip
import io
import math
import shutil
from pathlib import Path
from typing import Any, Optional

GOLDEN = Path(__file__).resolve().parents[2] / "testkit/golden"
# Sums of seconds in floating point against exact ones.
TOLERANCE = 1e-9


def trace(name: str, directory: Path) -> Path:
    """A copy of a trace."""
    place = directory / name
    shutil.copytree(GOLDEN / name / "trace", place)
    return place


def table(name: str) -> list[dict[str, str]]:
    """A table as it is stored: texts, empty where there is no value."""
    with gzip.open(GOLDEN / f"{name}.csv.gz", "rt", encoding="utf-8") as file:
        return list(csv.DictReader(io.StringIO(file.read())))


def equal(ours: Any, theirs: str) -> bool:
    """Whether a value is that of a stored table. Nothing and zero are the same where theirs is a sum."""
    expected: Optional[float]
    if theirs == "":
        return ours is None
    try:
        expected = float(theirs)
    except ValueError:
        return bool(ours == theirs)
    return ours is not None and math.isclose(float(ours), expected, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
