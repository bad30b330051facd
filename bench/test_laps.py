"""What the benchmark of laps reads out of programs' answers, and the rows that it makes of them."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "capture"))

import laps
import measure
import table
from laps import Laps


class Read(unittest.TestCase):
    def check(self, times: list[int], faults: list[int], expected: Laps | None) -> None:
        """Reads laps of 100 records; None: they are refused."""
        said = {"cpu_ns": times, "faults": faults}
        if expected is None:
            self.assertRaises(measure.Failed, laps.read, said, 100)
        else:
            self.assertEqual(laps.read(said, 100), expected)

    def test_the_first_lap_stands_alone(self):
        self.check([12_700, 4_600, 4_600], [150, 0, 0], Laps(127, 46, 1500, 0))

    def test_of_later_laps_the_median_counts(self):
        self.check([1_000, 900, 100, 500], [4, 1, 9, 3], Laps(10, 5, 40, 30))

    def test_what_is_no_answer(self):
        self.check([1_000], [1], None)
        self.check([1_000, 900], [1], None)


class Places(unittest.TestCase):
    def test_what_the_product_offers(self):
        for text, expected in (
            ("      --arenas <PLACE>\n          Where the shared memory lies", ["memory", "disk"]),
            ("      --wait-limit <TIME>", [None]),
        ):
            self.assertEqual(laps.places(text), expected)


class Rows(unittest.TestCase):
    def check(self, runs: dict[str, list[Laps]], labels: dict[str, str], cells: list[list[str]]) -> None:
        """Compares the table's lines, without the bar."""
        lines = table.markdown(laps.LAYOUT, laps.rows("span", runs, labels)).splitlines()[2:]
        self.assertEqual([[cell.strip() for cell in line.strip("|").split("|")][:7] for line in lines], cells)

    def test_each_run_is_compared_with_the_untraced_one_of_its_round(self):
        runs = {
            # The machine is slow in the second round.
            "untraced": [Laps(4, 3, 0, 0), Laps(14, 13, 0, 0), Laps(4, 3, 1, 0)],
            "m": [Laps(54, 43, 10, 0), Laps(64, 53, 10, 0), Laps(60, 63, 21, 0)],
            "d": [Laps(154, 43, 640, 1), Laps(164, 53, 640, 1), Laps(154, 43, 641, 1)],
        }
        self.check(
            runs,
            {"m": "memory", "d": "disk"},
            [
                ["ns per record", "C span", "memory", "3", "50", "40", "1.25×"],
                ["ns per record", "C span", "disk", "3", "150", "40", "3.75×"],
                ["new pages per 1,000 records", "C span", "memory", "0.0", "10.0", "0.0", ""],
                ["new pages per 1,000 records", "C span", "disk", "0.0", "640.0", "1.0", "640×"],
            ],
        )


if __name__ == "__main__":
    unittest.main()
