#!/usr/bin/env python3
"""RUSTC_WORKSPACE_WRAPPER of .ci/run: lints crates/sql while it is compiled for its tests.

`cargo clippy` checks all dependencies first, and nothing else that CI checks needs DataFusion's thirty crates: `make check-clippy` leaves the crate out.
No shell script: a shell drops variables such as `CARGO_BIN_EXE_weft-sql`, because their names are invalid in a shell.
"""

import os
import sys

command, variables = sys.argv[1:], dict(os.environ)
if any(word.startswith("crates/sql/") for word in command):
    variables.update(CLIPPY_ARGS="-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__")
    command.insert(0, "clippy-driver")
os.execvpe(command[0], command, variables)
