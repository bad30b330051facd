"""What the printed table says about given numbers."""

import tempfile
import unittest
from dataclasses import replace
from pathlib import Path

from table import Layout, Row, markdown, missed, update, verdicts

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

    def test_a_value_is_judged_as_it_is_printed(self):
        for weft, shown, expected in ((60.4, "60", False), (60.6, "61", True), (None, "–", False)):
            self.assertEqual((row(weft).cells(LAYOUT)[4], missed([row(weft)])), (shown, expected))

    def test_nothing_to_judge(self):
        self.check([row(None)], ["ns per call", "pread", "1", "500", "–", "4,200", "–", "", "≤ 60", ""], "")
        self.check([row(42, bar=None)], ["ns per call", "pread", "1", "500", "42", "4,200", "–", "100×", "", ""], "")

    def test_columns_without_an_incumbent(self):
        cells = ["ns per call", "pread", "1", "500", "42", "4,200", "–", "≤ 60", "reached"]
        line = markdown(replace(LAYOUT, incumbent=None), [row(42)]).splitlines()
        self.assertEqual([cell.strip() for cell in line[2].strip("|").split("|")], cells)
        self.assertNotIn("÷", line[0])
        self.assertIn("DFTracer ÷ later", markdown(replace(LAYOUT, divisor="later"), [row(42)]))


class Document(unittest.TestCase):
    def test_only_the_named_block_changes(self):
        with tempfile.TemporaryDirectory() as directory:
            page = Path(directory) / "page.md"
            page.write_text("a\n<!-- one: begin -->\nold\n<!-- one: end -->\nb\n<!-- two: begin -->\nkept\n<!-- two: end -->\n")
            update("one", page, "new\n")
            expected = "a\n<!-- one: begin -->\n\nnew\n\n<!-- one: end -->\nb\n<!-- two: begin -->\nkept\n<!-- two: end -->\n"
            self.assertEqual(page.read_text(), expected)


if __name__ == "__main__":
    unittest.main()
