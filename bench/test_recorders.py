"""What the benchmark of spans reads out of recorders' answers."""

import gzip
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "annotate"))

import measure
import recorders

LISTING = """Channels:
-------------
- channel0: [enabled]

    Attributes:
      Event-loss mode:  discard

    Statistics:
      Discarded events: {}

    Recording event rules:
      weft_bench:* (type: tracepoint) [enabled]
"""
COUNTER = """         {} Event messages
              2 Stream beginning messages
              2 Stream end messages
         804012 messages (TOTAL)
"""
LOCK = """version = 4

[[package]]
name = "fastrace"
version = "0.7.19"
source = "registry+https://github.com/rust-lang/crates.io-index"

[[package]]
name = "fastrace-macro"
version = "0.7.18"
"""


class Answers(unittest.TestCase):
    def check(self, read, answer: str, expected: int | None) -> None:
        """None: what was not understood is told, never taken for 0."""
        if expected is None:
            self.assertRaises(measure.Failed, read, answer)
        else:
            self.assertEqual(read(answer), expected)

    def test_events_that_lttng_discarded(self):
        self.check(recorders.discarded, LISTING.format(0), 0)
        self.check(recorders.discarded, LISTING.format(7) + LISTING.format(12), 19)
        self.check(recorders.discarded, "Channels:\n", None)

    def test_events_that_babeltrace_counted(self):
        self.check(recorders.counted_events, COUNTER.format(804_000), 804_000)
        self.check(recorders.counted_events, COUNTER.format(9_998) + COUNTER.format(804_000), 804_000)
        self.check(recorders.counted_events, "1 Event message\n", 1)
        self.check(recorders.counted_events, "0 messages (TOTAL)\n", None)


class Spans(unittest.TestCase):
    def test_growth_tells_what_tracy_queued(self):
        for made, grown, expected in ((1_000, 64_000, 1_000), (1_000, 58_000, 1_000), (1_000, 6_400, 100), (1_000, 0, 0)):
            self.assertEqual(recorders.queued(made, grown), expected)

    def test_only_spans_count_in_our_traces(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "a.pfw.gz"
            lines = [
                "[",
                '{"id":1,"name":"step","cat":"app","ph":"X","pid":1,"tid":1,"ts":1,"dur":0}',
                '{"id":2,"name":"load","cat":"app","ph":"X","pid":1,"tid":1,"ts":2,"dur":0,"args":{"index":1}}',
                '{"id":3,"name":"annotated","cat":"app","ph":"X","pid":1,"tid":1,"ts":3,"dur":0}',
                '{"id":4,"name":"open","cat":"POSIX","ph":"X","pid":1,"tid":1,"ts":4,"dur":0}',
                '{"id":5,"name":"process_name","ph":"M","pid":1,"args":{"name":"step"}}',
            ]
            path.write_bytes(gzip.compress("\n".join(lines).encode()))
            self.assertEqual(recorders.spans_in([path]), 3)

    def test_versions(self):
        self.assertEqual(recorders.locked_versions(LOCK, ["fastrace", "puffin"]), {"fastrace": "0.7.19"})


if __name__ == "__main__":
    unittest.main()
