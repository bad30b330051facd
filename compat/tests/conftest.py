"""Runs small programs in directories of their own and reads the traces that they leave."""

import pytest
from support import Runner


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)
