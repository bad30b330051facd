"""Fixtures: each module's program is run once in each way, and its tests look at both traces."""

from pathlib import Path

import pytest
import support


@pytest.fixture(scope="module", params=support.MODES)
def traced(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> support.Run:
    """The module's ``PROGRAM``, traced."""
    directory: Path = tmp_path_factory.mktemp(request.module.__name__)
    return support.run(request.module.PROGRAM, directory, request.param)
