"""Runs small programs in directories of their own and reads the traces that they leave."""

import os
import signal

import pytest
from support import Runner

# The interfaces are compared in this process, which importing must not begin to record.
os.environ["PERFFLOW_OPTIONS"] = "log-enable=False"

# A job that a script starts in the background ignores Ctrl-C, and so would the programs: their reaction to it is a subject here.
signal.signal(signal.SIGINT, signal.default_int_handler)
# Likewise SIGHUP, which nohup ignores.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)
