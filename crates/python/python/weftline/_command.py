"""The command ``weft``: the program that lies in this package."""

import os
import sys
from pathlib import Path
from typing import NoReturn

BINARY = Path(__file__).parent / "bin" / "weft"


def main() -> NoReturn:
    """Becomes ``weft`` with the same arguments."""
    try:
        os.execv(BINARY, ["weft", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"weft: {BINARY} cannot be run ({error.strerror}); reinstall weftline")
