"""The command ``weft``: the program that lies in this package."""

import os
import sys
from typing import NoReturn

BINARY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "weft")


def main() -> NoReturn:
    """Becomes ``weft`` with the same arguments."""
    try:
        os.execv(BINARY, ["weft", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"weft: {BINARY} cannot be run ({error.strerror}); reinstall weftline")
