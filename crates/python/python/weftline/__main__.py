"""``python -m weftline``: the command ``weft``."""

from ._command import main

if __name__ == "__main__":
    main()
