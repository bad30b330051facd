"""The check must see what Perfetto would leave out: traces with known faults, and what is said about each."""

import gzip
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

CHECK = Path(__file__).with_name("check_trace.py")


def event(name: str, start: int, duration: int) -> str:
    return (
        f'{{"name":"{name}","cat":"POSIX","ph":"X","pid":7,"tid":7,"ts":{start},"dur":{duration},"args":{{"ret":1}}}}\n'
    )


SOUND = "[\n" + event("read", 10, 5) + event("write", 15, 5)


class CheckTrace(unittest.TestCase):
    def check(self, content: str | bytes, expected: int, status: int, words: str) -> None:
        """Runs the check on a trace with `content`; `words` must be in what it prints."""
        with tempfile.TemporaryDirectory() as directory:
            trace = Path(directory) / "trace"
            trace.write_bytes(content.encode() if isinstance(content, str) else content)
            command = [sys.executable, str(CHECK), "--expect-slices", str(expected), str(trace)]
            ran = subprocess.run(command, capture_output=True, text=True)
        said = ran.stdout + ran.stderr
        self.assertIn(words, said)
        self.assertEqual(ran.returncode, status, said)

    def test_sound_trace(self):
        self.check(SOUND, 2, 0, "2 slices, 1 processes, 1 threads")

    def test_gzip_members(self):
        members = gzip.compress(SOUND.encode()) + gzip.compress(event("close", 20, 1).encode())
        self.check(members, 3, 0, "3 slices")

    def test_wrong_number(self):
        self.check(SOUND, 3, 1, "expected 3 slices, Perfetto shows 2")

    def test_overlapping_events_are_dropped(self):
        self.check(SOUND + event("late", 18, 9), 3, 1, "slice_drop_overlapping_complete_event = 1")

    def test_missing_bracket(self):
        self.check(SOUND.removeprefix("[\n"), 2, 1, "expected 2 slices, Perfetto shows 0")

    def test_lists_of_perfflowaspect(self):
        """As the original and its stand-in write them: open; and closed, as `log-close=True` wants them."""
        fixtures = CHECK.parents[2] / "crates/dropin/tests/fixtures/perfflow"
        for name, slices in (("c-smoketest_verbose", 12), ("python-smoketest_compact", 12)):
            text = (fixtures / f"{name}.pfw").read_text()
            self.assertTrue(text.endswith(",\n"))
            self.check(text, slices, 0, f"{slices} slices")
            self.check(text.removesuffix(",\n") + "\n]\n", slices, 0, f"{slices} slices")

    def test_torn_gzip(self):
        self.check(gzip.compress(SOUND.encode())[:-20], 2, 1, "cannot load it")


if __name__ == "__main__":
    unittest.main()
