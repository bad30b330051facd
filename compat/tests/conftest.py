"""Runs small programs in directories of their own and reads the traces that they leave."""

import os

import pytest
from support import Runner

# The interfaces are compared in this process, which importing must not begin to record.
os.environ["PERFFLOW_OPTIONS"] = "log-enable=False"


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)
