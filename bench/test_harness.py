"""The command of a benchmark: its options and how it ends."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import harness
import measure


def parsed(*words: str):
    parser = harness.options("What it measures.\n\nMore.", "bench-nothing", repeats=7)
    parser.add_argument("--parts", default="a,b")
    with mock.patch.object(sys, "argv", ["bench.py", *words]), contextlib.redirect_stderr(io.StringIO()):
        options = harness.parsed(parser)
        options.parts = harness.parts(parser, options.parts, ("a", "b"))
    return options


class Options(unittest.TestCase):
    def test_what_is_given_and_what_is_not(self):
        with tempfile.TemporaryDirectory() as directory:
            work = Path(directory) / "work"
            options = parsed("--work", str(work), "--parts", "b")
            self.assertTrue(work.is_dir())
            self.assertEqual((options.json, options.repeats, options.parts), (work / "results.json", 7, ["b"]))
            given = parsed("--work", str(work), "--json", "/elsewhere.json", "--repeats", "1")
            self.assertEqual((given.json, given.repeats), (Path("/elsewhere.json"), 1))
            with self.assertRaises(SystemExit) as ended:
                parsed("--work", str(work), "--parts", "a,c")
            self.assertEqual(ended.exception.code, 2)


class End(unittest.TestCase):
    def check(self, main, expected: int | str) -> None:
        with self.assertRaises(SystemExit) as ended:
            harness.end(main)
        self.assertEqual(ended.exception.code, expected)

    def test_how_a_benchmark_ends(self):
        def fails() -> int:
            raise measure.Failed("true: exit status 1")

        self.check(lambda: 0, 0)
        self.check(lambda: 1, 1)
        # A text makes the status 1, and is printed.
        self.check(fails, "bench.py: true: exit status 1")

    def test_only_a_gate_makes_a_missed_bar_a_failure(self):
        for gate, missed, expected in ((False, True, 0), (True, True, 1), (True, False, 0)):
            self.assertEqual(harness.status(mock.Mock(gate=gate), missed), expected)


if __name__ == "__main__":
    unittest.main()
