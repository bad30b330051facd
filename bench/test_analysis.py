"""The tables of the analysis benchmark: what they say about given numbers, and what the rig reads out of tools' answers."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "analysis"))

import measure
import results
import tools
from results import Bar, Result
from tools import BARE, COLD, GROUPS, INDEX, PAIRS, REPORT, START, WARM, WINDOW
from traces import Trace

MILLION = 1_000_000


def result(task: str, state: str, trace: str, tool: str, cpu: list[float], peak_mib: int = 100, **more) -> Result:
    return Result(task, state, trace, tool, 8 * MILLION, cpu, [peak_mib << 20] * len(cpu), **more)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


class Bars(unittest.TestCase):
    def check(self, found: list[Result], what: str, measured: str, verdict: str, scaling: tuple = ()) -> None:
        """Compares one line of the table of bars."""
        bar = next(bar for bar in results.bars(found, list(scaling)) if bar.what == what)
        shown = bar.cells()
        self.assertEqual((shown[1], shown[3]), (measured, verdict))

    def test_the_median_is_judged(self):
        what = "index, cold, multi-member"
        self.check([result(INDEX, COLD, "multi", "weft", [5, 4, 40])], what, "1.60 M events/CPU-s", "reached")
        self.check([result(INDEX, COLD, "multi", "weft", [10, 4, 40])], what, "0.80 M events/CPU-s", "**not reached**")
        self.check([result(INDEX, COLD, "multi", "weft", [10])], "index, cold, single-member", "–", "not measured")
        self.check([result(PAIRS, BARE, "multi", "weft", [1])], "cat, name, warm", "–", "not measured")
        self.check([result(INDEX, COLD, "multi", "weft", [1], problem="rows: 1 instead of 2")], what, "–", "not measured")

    def test_a_value_is_judged_as_it_is_printed(self):
        what = "index, cold, own run"
        self.check([result(INDEX, COLD, "run", "weft", [8 / 1.396])], what, "1.40 M events/CPU-s", "reached")
        self.check([result(INDEX, COLD, "run", "weft", [8 / 1.394])], what, "1.39 M events/CPU-s", "**not reached**")

    def test_the_stable_dfanalyzer_is_the_measure(self):
        cost = f"posix report, cold: CPU of {results.DFANALYZER} ÷ weft"
        memory = f"posix report, cold: memory of {results.DFANALYZER} ÷ weft"
        found = [
            result(REPORT, COLD, "multi", "weft", [8], 500),
            result(REPORT, COLD, "multi", results.DFANALYZER, [100], 5_500),
            result(REPORT, COLD, "multi", "dfanalyzer 0.0.10 with utils 0.0.14", [200], 6_000),
            result(REPORT, COLD, "fake", results.DFANALYZER, [1], 1),
        ]
        self.check(found, cost, "12.5×", "**not reached**")
        self.check(found, memory, "11.0×", "reached")
        self.check(found[:1], cost, "–", "not measured")

    def test_a_window_beside_the_whole(self):
        what = "posix report, warm: CPU of 1 % of the time ÷ whole, own run"
        whole = result(REPORT, WARM, "run", "weft", [2])
        self.check([whole, result(WINDOW, WARM, "run", "weft", [0.05])], what, "2.50 %", "reached")
        self.check([whole, result(WINDOW, WARM, "run", "weft", [0.08])], what, "4.00 %", "**not reached**")
        empty = result(WINDOW, WARM, "run", "weft", [0.01], problem="events: 0 instead of 1 to 399,999")
        self.check([whole, empty], what, "–", "not measured")

    def test_plain_text_beside_gzip(self):
        what = "index, cold: CPU of plain text ÷ multi-member gzip"
        compressed = result(INDEX, COLD, "multi", "weft", [5])
        self.check([compressed, result(INDEX, COLD, "plain", "weft", [4.5])], what, "0.90×", "reached")
        self.check([compressed, result(INDEX, COLD, "plain", "weft", [5.1])], what, "1.02×", "**not reached**")

    def test_sizes(self):
        found = [
            result(INDEX, COLD, "single", "weft", [5], index_bytes=90, trace_bytes=100),
            result(INDEX, COLD, "run", "weft", [5], index_bytes=130, trace_bytes=100),
            result(INDEX, COLD, "single", "other", [5], index_bytes=1, trace_bytes=100),
        ]
        self.check(found, "index size, of the gzip -6 file", "90.0 %", "**not reached**")
        self.check(found, "index size, of our own trace", "130 %", "reached")

    def test_memory_counts_scaling_and_growth_too(self):
        small, large = [[result(INDEX, COLD, "multi", "weft", [5], peak)] for peak in (400, 1_200)]
        self.check([], "peak memory of weft, largest of all rows", "1,200 MiB", "**not reached**", (small, large))
        self.check([], "peak memory, most ÷ second most events, worst task", "3.00×", "**not reached**", (small, large))
        self.check([], "peak memory, most ÷ second most events, worst task", "1.00×", "reached", (large, small, small))


class Speeds(unittest.TestCase):
    def check(self, found: list[Result], expected: list[list[str]]) -> None:
        self.assertEqual([cells(line) for line in results.speeds(found).splitlines()[2:]], expected)

    def test_ours_comes_first_and_in_the_same_state(self):
        found = [
            result(PAIRS, BARE, "multi", "DuckDB", [8]),
            result(PAIRS, WARM, "multi", "view", [6]),
            result(PAIRS, BARE, "multi", "weft", [2]),
            result(PAIRS, WARM, "multi", "weft", [0.25]),
        ]
        rows = [
            [PAIRS, "multi", "weft, no index", "4.00", "2.00", "100", "", ""],
            [PAIRS, "multi", "weft, warm", "32.0", "0.25", "100", "", ""],
            [PAIRS, "multi", "DuckDB, no index", "1.00", "8.00", "100", "4×", ""],
            [PAIRS, "multi", "view, warm", "1.33", "6.00", "100", "24×", ""],
        ]
        self.check(found, rows)

    def test_a_missing_tool_is_a_row(self):
        found = [result(GROUPS, WARM, "multi", "weft", [], problem="group_by is not there")]
        self.check(found, [[GROUPS, "multi", "weft, warm", "–", "–", "–", "", "group_by is not there"]])
        found = [result(GROUPS, WARM, "multi", "weft", [], problem="a|b " * 40)]
        self.assertLessEqual(len(cells(results.speeds(found).splitlines()[2])[-1]), 70)


class Windows(unittest.TestCase):
    def test_the_start_of_the_process_is_shown(self):
        found = [
            result(REPORT, WARM, "multi", "weft", [2], found=8_000_000),
            result(WINDOW, WARM, "multi", "weft", [0.05], found=79_000),
            result(START, BARE, "multi", "weft", [0.004]),
            # Of this one there is no whole.
            result(WINDOW, WARM, "run", "weft", [0.05]),
        ]
        lines = [cells(line) for line in results.windows(found).splitlines()[2:]]
        self.assertEqual(lines, [["multi", "79,000 of 8,000,000", "2,000", "50.0", "4.00", "2.50 %", "2.30 %", ""]])
        self.assertEqual(results.windows([]), "")


class Answers(unittest.TestCase):
    def check(self, read, printed: str, expected: dict[str, int]) -> None:
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "printed"
            path.write_text(printed)
            self.assertEqual(read(path), expected)

    def test_numbers_are_found(self):
        events = {"rows": 21, "events": 200_000}
        self.check(tools.number_after("Trace Count"), "│ Trace Count │ count │ 200,000 │\n", {"events": 200_000})
        self.check(tools.number_after("Trace Count"), "nothing of the kind\n", {})
        self.check(tools.json_rows, '{"name":"a","count":3}\n{"name":"b"}\n', {"rows": 2, "events": 4})
        self.check(tools.last_object, 'warning\n{"rows": 21, "events": 200000}\n', events)
        self.check(tools.last_object, "", {})
        self.check(tools.spans, "  trace report\n      trace  1,234 spans in 2 files, 3 B\n", {"events": 1_234})
        self.check(tools.spans, "      trace  1 span in 1 file\n", {"events": 1})
        self.check(tools.spans, "      trace  nothing\n", {})
        answers = ("groups 21\nevents 200000\n", "21 groups of 200,000 events", '{"groups":21,"events":200000}')
        for printed in answers:
            self.check(tools.named_numbers, printed, events)


    def test_what_is_wrong_with_an_answer(self):
        def wrong(expected: dict, answer: dict) -> str:
            trace = Trace("multi", Path("/nowhere"), 10)
            return tools.Measurement(REPORT, WARM, trace, "weft", [], expected=expected).wrong(answer)

        for expected, answer, words in (
            ({}, {}, ""),
            ({"rows": None}, {}, ""),
            ({"rows": 2, "events": 3000}, {"rows": 2, "events": 3000}, ""),
            ({"rows": 2, "events": 3000}, {"rows": 1, "events": 4000}, "rows: 1 instead of 2, events: 4,000 instead of 3,000"),
            ({"events": 3}, {}, "its answer could not be read"),
            ({"events": range(1, 401)}, {"events": 400}, ""),
            ({"events": range(1, 401)}, {"events": 0}, "events: 0 instead of 1 to 400"),
        ):
            self.assertEqual(wrong(expected, answer), words)


class Tasks(unittest.TestCase):
    def check(self, trace: str, seconds: int | None, expected: dict[str, int]) -> None:
        """Compares how often weft is asked for some tasks."""
        asked = [one.task for one in tools.ours(Path("weft"), Path("group_by"), Trace(trace, Path("/t"), 10, seconds=seconds))]
        self.assertEqual({task: asked.count(task) for task in expected}, expected)

    def test_what_is_asked_of_which_trace(self):
        self.check("multi", 600, {INDEX: 1, REPORT: 2, WINDOW: 1, START: 1})
        self.check("plain", 600, {INDEX: 1, PAIRS: 1, REPORT: 1, WINDOW: 0, GROUPS: 0})
        self.check("fake", None, {REPORT: 2, WINDOW: 0, START: 0})

    def test_a_window_is_one_hundredth(self):
        trace = Trace("run", Path("/t"), 8_000_000, seconds=600)
        window = next(one for one in tools.ours(Path("weft"), Path("group_by"), trace) if one.task == WINDOW)
        self.assertEqual(window.command[-4:], ["--from", "297000ms", "--to", "303000ms"])
        self.assertEqual((window.events, window.expected), (0, {"events": range(1, 400_000)}))


class Traces(unittest.TestCase):
    def test_only_traces_are_files(self):
        with tempfile.TemporaryDirectory() as directory:
            for name in ("a.pfw", "b.pfw.gz", "truth.json", "c.pfw.gz.tmp"):
                (Path(directory) / name).write_text("12345")
            trace = Trace("plain", Path(directory), 1)
            self.assertEqual(([path.name for path in trace.files], trace.bytes), (["a.pfw", "b.pfw.gz"], 10))

    def test_removing_an_index_leaves_the_trace(self):
        with tempfile.TemporaryDirectory() as directory:
            folder = Path(directory) / "multi"
            for name in (".weft", ".dftindex", "split", "worker_0_0"):
                (folder / name).mkdir(parents=True)
                (folder / name / "content").write_text("1")
            (folder / "trace.pfw.gz").write_text("12345")
            trace = Trace("multi", folder, 1)
            trace.remove_index()
            self.assertEqual([path.name for path in folder.iterdir()], ["trace.pfw.gz"])
            copy = trace.copy_for("stack")
            self.assertEqual((copy.bytes, copy.directory.name), (5, "multi-stack"))
            self.assertTrue(copy.files[0].samefile(trace.files[0]))


class Commands(unittest.TestCase):
    def check(self, command: list[str], problem: str, limit_s: float = 30) -> None:
        with tempfile.TemporaryDirectory() as directory, self.assertRaises(measure.Failed) as failed:
            measure.run_apart(command, Path(directory) / "printed", Path(directory), limit_s)
        self.assertEqual(str(failed.exception), problem)

    def test_why_a_command_failed(self):
        clap = "echo error: no such verb >&2; echo try --help >&2; exit 2"
        self.check(["sh", "-c", clap], "exit status 2: error: no such verb")
        self.check(["sh", "-c", "echo Traceback >&2; echo KeyError >&2; exit 1"], "exit status 1: KeyError")
        self.check(["sh", "-c", "sleep 60 & wait"], "stopped after 0 s", 0.2)

    def test_what_it_cost(self):
        with tempfile.TemporaryDirectory() as directory:
            printed = Path(directory) / "printed"
            # A grandchild's time and memory count as well.
            work = "import time\nkept = bytearray(200 << 20)\nwhile time.process_time() < 0.3: pass\nprint('done')"
            command = ["sh", "-c", '"$@"; true', "sh", sys.executable, "-c", work]
            cost = measure.run_apart(command, printed, Path(directory), 60)
            self.assertEqual(printed.read_text(), "done\n")
        self.assertGreaterEqual(cost.cpu_ns, 300_000_000)
        self.assertGreaterEqual(cost.peak_bytes, 200 << 20)


class Verdicts(unittest.TestCase):
    def test_both_directions(self):
        missed = "**not reached**"
        for value, at_least, verdict in ((2, True, "reached"), (1, True, missed), (2, False, missed), (1, False, "reached")):
            self.assertEqual(Bar("x", value, 1.5, "", at_least).verdict, verdict)


if __name__ == "__main__":
    unittest.main()
