#!/usr/bin/env python3
"""Puts standard input between `<!-- NAME: begin -->` and `<!-- NAME: end -->` of a page: tools/update-block.py PAGE NAME"""

import pathlib
import re
import sys


def replaced(text: str, name: str, block: str) -> str:
    begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->\n"
    pattern = re.escape(begin) + ".*?" + re.escape(end)
    if not re.search(pattern, text, flags=re.S):
        raise SystemExit(f"there is no block {name} in the page")
    return re.sub(pattern, lambda _: begin + block.strip() + "\n" + end, text, flags=re.S)


if __name__ == "__main__":
    page, name = pathlib.Path(sys.argv[1]), sys.argv[2]
    page.write_text(replaced(page.read_text(), name, sys.stdin.read()))
