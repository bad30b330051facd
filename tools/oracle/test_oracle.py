"""Tests of the loop and of the comparison, with small traces and results computed by hand."""

import contextlib
import io
import tempfile
import unittest
from pathlib import Path

import compare
import oracle
import views

TRACES = Path(__file__).resolve().parent / "traces"


def cells_of(name, **how):
    return oracle.sections(oracle.Trace(compare.files_of(TRACES / name)), **how)


class Loop(unittest.TestCase):
    def check(self, name, expected, **how):
        """Compares the cells that are given; a row that is None is not there."""
        found = cells_of(name, **how)
        for (section, row), columns in expected.items():
            have = found[section].get(row)
            self.assertEqual(have if columns is None else {column: have[column] for column in columns}, columns, f"{name} {section} {row}")

    def test_text_is_a_number(self):
        self.check("text_integers.pfw", {
            ("job", ""): {"spans": 6, "time_ns": 750_000, "read_bytes": 4_198_400, "written_bytes": 0, "processes": 1, "hosts": 1},
            ("operations", "posix read"): {"count": 2, "time_ns": 500_000, "min_ns": 100_000, "max_ns": 400_000, "bytes": 4_198_400},
            ("operations", "reader NPZReader.read"): {"bytes": 4_198_400},
            ("operations", "reader NPZReader.open"): {"bytes": 0},
            ("files", "/p/data/a.npz"): {"calls": 4, "read_bytes": 4_198_400, "written_bytes": 0, "time_ns": 570_000},
        })  # fmt: skip

    def test_unusable_times_are_damage(self):
        self.check("bad_times.pfw", {
            ("job", ""): {"events": 7, "spans": 2, "damage": 5, "time_ns": 2_007_000, "read_bytes": 11},
            ("operations", "app nan"): None,
        })  # fmt: skip
        self.check("negative_times.pfw", {("job", ""): {"spans": 2, "damage": 0, "time_ns": 3_500_750}})

    def test_hashes_are_local(self):
        self.check("hashes", {
            ("files", "/p/one"): {"calls": 1, "read_bytes": 100, "written_bytes": 0, "time_ns": 10_000},
            ("files", "/p/two"): {"read_bytes": 20, "written_bytes": 0},
            ("files", "/p/three"): {"read_bytes": 0, "written_bytes": 1000},
            ("files", "/p/late"): {"calls": 2, "written_bytes": 8},
            ("job", ""): {"processes": 2, "hosts": 1, "events": 5},
        })  # fmt: skip

    def test_children_of_vfork_are_on_their_parents_host(self):
        self.check("vfork", {
            ("job", ""): {"processes": 2, "hosts": 1, "spans": 5, "time_ns": 105_000},
            ("processes", "vm#71"): {"calls": 3, "read_bytes": 512, "written_bytes": 0, "time_ns": 15_250},
            ("operations", "posix read"): {"time_ns": 9_250},
        })  # fmt: skip

    def test_the_kernels_threads_are_no_processes(self):
        # dd, seen by its hooks, by the kernel and by samples; a static program, seen by the kernel alone. kworker and the journal only use the device.
        self.check("kernel", {
            ("job", ""): {"processes": 2, "hosts": 1, "spans": 11, "time_ns": 1_250_000, "written_bytes": 8192},
            ("processes", "vm#90"): {"calls": 2, "written_bytes": 8192, "time_ns": 820_000},
            ("operations", "block write"): {"count": 2, "time_ns": 600_000},
            ("ranks", "vm#91"): {"rank": None},
            ("ranks", "vm#35"): None,
            ("ranks", "vm#44"): None,
        })  # fmt: skip

    def test_copies_read_and_write(self):
        self.check("copies", {
            ("job", ""): {"read_bytes": 5400, "written_bytes": 5400},
            ("files", "/w/from"): {"calls": 4, "read_bytes": 5400, "written_bytes": 0},
            ("files", "/w/to"): {"calls": 3, "read_bytes": 0, "written_bytes": 5300},
        })  # fmt: skip

    def test_kineto_files_are_ranks(self):
        self.check("kineto", {
            ("job", ""): {"events": 24, "spans": 8, "processes": 2, "hosts": 1, "time_ns": 31_000},
            ("ranks", "unknown#4242@rank1.pt.trace.json"): {"rank": 1},
            ("operations", "comm all_reduce"): {"count": 2, "time_ns": 17_000, "min_ns": 8_500, "max_ns": 8_500},
        })  # fmt: skip

    def test_spans_end(self):
        self.check("unended.json", {
            ("job", ""): {"events": 6, "spans": 2, "time_ns": 15_000, "damage": 0},
            ("operations", "app inner"): {"count": 1, "time_ns": 5_000},
            ("operations", "app outer"): None,
        })  # fmt: skip
        self.check("viztracer.json", {("job", ""): {"events": 7, "spans": 3, "time_ns": 50_750}, ("operations", "fee work (/w/a.py:9)"): {"time_ns": 1_000}})

    def test_reports_leave_out_the_system_and_take_in_totals(self):
        lines = """
            {"name":"read","cat":"POSIX","ph":"X","pid":1,"tid":1,"ts":5,"dur":2,"args":{"fname":"/etc/hosts","ret":10}}
            {"name":"TFReader.next","cat":"reader","ph":"X","pid":1,"tid":1,"ts":8,"dur":2}
            {"name":"pwrite","cat":"POSIX","ph":3,"pid":1,"tid":1,"ts":0,"args":{"dur_sum":6,"dur_min":1,"dur_max":3,"ret_sum":40,"dft_cnt":4}}
            {"name":"read","cat":"POSIX","ph":3,"pid":1,"tid":1,"ts":0,"args":{"dur_sum":6,"ret_sum":40,"dft_cnt":4}}
            broken
        """
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "a.pfw"
            path.write_text(lines)
            all_spans, report = (oracle.sections(oracle.Trace([path]), kept, kept) for kept in (False, True))
        self.assertEqual(set(all_spans["operations"]), {"posix read", "reader TFReader.next"})
        self.assertEqual(report["operations"], {"posix pwrite": {"count": 4, "time_ns": 6000, "min_ns": 1000, "max_ns": 3000, "bytes": 40}})
        self.assertEqual((report["job"][""]["read_bytes"], report["job"][""]["written_bytes"], report["job"][""]["damage"]), (0, 40, 1))
        self.assertEqual(all_spans["job"][""]["read_bytes"], 10)


class ViewsOfTraces(unittest.TestCase):
    def of(self, name, width, preset=None):
        return views.Views(oracle.Trace(compare.files_of(TRACES / name)), width, preset)

    def check(self, found, expected):
        for row, columns in expected.items():
            have = found.get(row)
            self.assertEqual(have if columns is None else {column: have.get(column) for column in columns}, columns, row)

    def test_layers_have_counts_times_and_bytes(self):
        found = self.of("hashes", 20_000)
        self.check(found.of_layer("time_range", "posix"), {
            "0": {"count_sum": 2, "time_sum_ns": 20_000, "size_sum": 1100, "read_size_sum": 100, "write_size_sum": 1000, "proc_name_nunique": 2},
            "2": {"count_sum": 1, "write_size_sum": 3, "read_count_sum": None, "size_call_min": 3, "size_bin_0_4kib_sum": 1},
            "3": None,
        })  # fmt: skip
        self.check(found.of_layer("file_name", "posix"), {"/p/late": {"count_sum": 2, "time_proc_max_ns": 10_000, "size_call_mean": 4.0, "size_call_std": 1.0}})
        # Calls of the two processes overlap; the wall times of processes add up.
        self.check(found.flat("host_name"), {"node1": {"posix_time_union_ns": 50_000, "o_posix_time_union_ns": 50_000, "posix_bw": 1128 / 50e-6}})

    def test_wall_times_are_unions_without_what_lies_below(self):
        found = self.of("ai.pfw", 1_000_000)
        self.assertEqual(found.preset, "ai")
        self.check(found.flat("rank"), {
            # 6 steps of 250 and 200 µs, and the reader beside them: 60 to 180, 200 to 370, 380 to 395 µs of each step, of which 240 to 370 and 380 to 395 compute.
            "0": {"compute_time_union_ns": 2_700_000, "reader_time_union_ns": 1_830_000, "u_reader_time_union_ns": 960_000, "compute_count_sum": 12},
            "1": {"epoch_time_union_ns": 6_600_000, "comm_time_union_ns": 6 * 91_000},
        })  # fmt: skip
        whole = found.summary()
        self.assertEqual((whole["reader"]["count"], whole["reader"]["processes"], whole["reader"]["time_unoverlapped_ns"]), (48, 2, 1_920_000))
        # A step is what the loop does with a batch.
        self.assertEqual(whole["step"]["time_union_proc_ns"], 12 * 600_000)

    def test_categories_are_layers(self):
        found = {one.name: one.parent for one in self.of("many_categories.json", 1_000, "auto").layers}
        self.assertEqual((len(found), found["app_2"], found["app_io"], found["flat_2"], found["posix_read_2"]), (49, "app", "app_2", "app", "posix"))

    def test_totals_count_in_sums(self):
        found = self.of("aggregated.pfw", 2_000_000_000)
        self.check(found.of_layer("time_range", "posix"), {
            "1": {"count_sum": 3, "time_sum_ns": 60_000, "size_sum": 300, "time_call_min_ns": views.UNKNOWN},
            "2": {"count_sum": 1, "size_sum": 7},
            "4": {"open_count_sum": 2, "size_sum": 0},
        })  # fmt: skip
        self.assertEqual([row["time_end"] for row in found.profiles().values()], [3_000_000_000, 5_000_000_000, 9_000_000_000])


class Comparison(unittest.TestCase):
    """A product that says what it is told, compared with a trace of two spans of 5 and 5 µs."""

    HEAD = "trace\tinterface\tsection\trow\tcolumn\treason\n"
    RIGHT = {"count": 1, "time_ns": 5_000}

    def complaints(self, said, lines=""):
        with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
            file.write(self.HEAD + lines)
            file.flush()
            expected = compare.Expected(file.name)
        ask = {"report": lambda run, width: {"operations": said}}
        found, _ = compare.compare("a trace", TRACES / "unended.json", ["report"], expected, ask)
        return found + expected.unmet(["a trace"], ["report"])

    def test_cells_are_compared(self):
        right = {"app inner": self.RIGHT, "app work": self.RIGHT}
        for said, lines, expected in [
            (right, "", 0),
            ({**right, "app work": {"count": 1, "time_ns": 5_001}}, "", 0),
            ({**right, "app work": {"count": 2, "time_ns": 5_002}}, "", 2),
            ({**right, "app work": {"count": 2, "time_ns": 5_000}}, "a trace\treport\toperations\tapp work\tcount\twhy\n", 0),
            (right, "a trace\treport\toperations\tapp work\tcount\twhy\n", 1),
            ({**right, "app work": {"count": 2, "time_ns": 5_000}}, "a *\t*\toperations\tapp *\tcount\twhy\n", 1),
            (right, "a trace\treport\tfiles\t*\t*\tmatches nothing\n", 1),
            (right, "another\treport\tfiles\t*\t*\tis not asked\n", 0),
            ({"app inner": self.RIGHT}, "", 5),
            ({**right, "app outer": self.RIGHT}, "", 2),
        ]:
            self.assertEqual(len(self.complaints(said, lines)), expected, f"{said} {lines}")

    def test_every_column_of_a_view_counts(self):
        said = {"flat rank": {"0": {"a": 1, "b": 2, "c": 3}}, "job": {"": {"events": 1, "spans": 2}}}
        truth = {"flat rank": {"0": {"b": 2, "c": views.UNKNOWN, "d": 4, "e": None}}, "job": {"": {"spans": 2, "hosts": 1}}}
        found = compare.cells(said, truth.get)
        expected = {("flat rank", "0", "a"): (1, None), ("flat rank", "0", "b"): (2, 2), ("flat rank", "0", "d"): (None, 4), ("job", "", "spans"): (2, 2)}
        self.assertEqual(found, expected)
        self.assertTrue(compare.same(0.1 + 0.2, 0.3, "share") and not compare.same(0.3001, 0.3, "share"))

    def test_missing_golden_traces_fail_unless_told(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(compare.main(["--golden", "/nowhere/golden"]), 1)
            self.assertEqual(compare.main(["--golden", "/nowhere/golden", "--without-golden"]), 0)
        self.assertEqual(said.getvalue().count("not there: /nowhere/golden"), 2)


if __name__ == "__main__":
    unittest.main()
