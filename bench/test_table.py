"""What the printed table says about given numbers."""

import unittest
from dataclasses import replace

from table import Layout, Row, markdown, verdicts

COLUMNS = {"untraced": "untraced", "weft": "weft", "dftracer": "DFTracer", "strace": "strace"}
LAYOUT = Layout("added by tracing", COLUMNS, "dftracer", "bench-capture")


def row(weft: float | None, bar: float | None = 60, threads: int = 1) -> Row:
    return Row("ns per call", "pread", threads, {"untraced": 500, "weft": weft, "dftracer": 4200}, bar)


class Table(unittest.TestCase):
    def check(self, rows: list[Row], cells: list[str], verdict: str) -> None:
        """Compares the first row's cells and the verdicts below the table."""
        line = markdown(LAYOUT, rows).splitlines()[2]
        self.assertEqual([cell.strip() for cell in line.strip("|").split("|")], cells)
        self.assertEqual(verdicts(LAYOUT, rows), verdict)

    def test_reached(self):
        cells = ["ns per call", "pread", "1", "500", "42", "4,200", "–", "100×", "≤ 60", "reached"]
        self.check([row(42)], cells, "- ns per call: reached; at worst 42, bar 60 (pread, threads 1)")

    def test_the_worst_row_decides(self):
        cells = ["ns per call", "pread", "1", "500", "42", "4,200", "–", "100×", "≤ 60", "reached"]
        verdict = "- ns per call: NOT REACHED; at worst 84, bar 60 (pread, threads 4)"
        self.check([row(42), row(84, threads=4)], cells, verdict)

    def test_nothing_to_judge(self):
        self.check([row(None)], ["ns per call", "pread", "1", "500", "–", "4,200", "–", "", "≤ 60", ""], "")
        self.check([row(42, bar=None)], ["ns per call", "pread", "1", "500", "42", "4,200", "–", "100×", "", ""], "")

    def test_columns_without_an_incumbent(self):
        cells = ["ns per call", "pread", "1", "500", "42", "4,200", "–", "≤ 60", "reached"]
        line = markdown(replace(LAYOUT, incumbent=None), [row(42)]).splitlines()
        self.assertEqual([cell.strip() for cell in line[2].strip("|").split("|")], cells)
        self.assertNotIn("÷", line[0])
        self.assertIn("DFTracer ÷ later", markdown(replace(LAYOUT, divisor="later"), [row(42)]))


if __name__ == "__main__":
    unittest.main()
