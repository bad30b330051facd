"""How instructions are read from callgrind's file, grouped and shown."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "analysis"))

import instructions
from instructions import Profile

# main -> scan (own 600) -> sort (own 40, 30 for scan and 10 for the rows), memcpy; names are written once and then by number.
FILE = """# callgrind format
version: 1
positions: line
events: Ir
summary: 1000

ob=(1) /usr/bin/weft
fl=(1) ???
fn=(1) main
0 50
cfn=(2) weftline_index::pipeline::work::Worker<S>::scan_text
calls=1 0
0 850
cfn=(3) <weftline_index::rows::Collector as core::ops::Drop>::drop
calls=1 0
+3 110

fn=(2)
0 500
fi=(2) memory.rs
+2 100
cob=(2) /lib/libc.so.6
cfi=(3) memmove.S
cfn=(4) __memcpy_avx_unaligned_erms
calls=7 0
* 220
cfn=(5) core::slice::sort::quicksort
calls=1 0
0 30

fn=(3)
0 90
cfn=(5)
calls=1 0
0 10

fn=(4)
0 220

fn=(5)
0 15
cfn=(6) core::slice::sort::quicksort'2
calls=3 0
0 25

fn=(6)
0 25
"""


class Read(unittest.TestCase):
    def setUp(self):
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "callgrind.out"
            path.write_text(FILE)
            self.profile = instructions.read(path)

    def test_costs_are_of_the_function_that_has_them(self):
        self.assertEqual((self.profile.total, sum(self.profile.own.values())), (1000, 1000))
        self.assertEqual(self.profile.own["main"], 50)
        # A call of itself is the same function.
        self.assertEqual(self.profile.own["core::slice::sort::quicksort"], 40)

    def test_what_has_no_group_counts_for_its_callers(self):
        found = {group: round(cost) for group, cost in self.profile.grouped().items()}
        self.assertEqual(found, {"scan": 630, "rows": 100, "memory": 220, "other": 50})

    def test_the_table(self):
        lines = instructions.table_of({"index, cold": self.profile}, 10).splitlines()
        cells = [[cell.strip() for cell in line.strip("|").split("|")][:3] for line in lines]
        self.assertEqual(cells[0], ["instructions per event", "index, cold", "share"])
        self.assertEqual(
            cells[2:],
            [["scan", "63", "63.0 %"], ["memory", "22", "22.0 %"], ["rows", "10", "10.0 %"], ["other", "5", "5.0 %"], ["all", "100", "100 %"]],
        )
        self.assertEqual(
            instructions.notes_on({"index": self.profile})[0][:81],
            "index, the largest functions: `Worker::scan_text` 60.0 %, `__memcpy_avx_unaligned",
        )


class Groups(unittest.TestCase):
    def test_functions_by_name(self):
        for name, group in (
            ("deflate_decompress_bmi2", "inflate"),
            ("weftline_index::inflate::Inflater::member", "inflate"),
            ("<weftline_format::view::Fields as core::iter::traits::iterator::Iterator>::next", "scan"),
            ("weftline_index::dictionary::Strings::intern", "rows"),
            ("weftline_index::part::write::Writer::group", "encode and pack"),
            ("weftline_index::part::page::Decoder::column", "read pages"),
            ("ZSTD_compressBlock_fast_noDict_5_1", "zstd"),
            ("_int_malloc", "memory"),
            ("__memset_avx2_unaligned_erms", "memory"),
            ("weftline_analysis::findings::tally::Tallies::add", "findings"),
            ("<weftline_analysis::group::cell::Stats as weftline_analysis::group::cell::Cell>::add", "sums"),
            ("core::slice::sort::unstable::quicksort::quicksort", None),
            ("0x000000000100eac0", None),
        ):
            self.assertEqual(instructions.group_of(name), group, name)

    def test_callers_in_a_circle_are_nobody(self):
        profile = Profile()
        profile.own.update({"a": 10, "b": 20})
        profile.within["a"]["b"] = 5
        profile.within["b"]["a"] = 5
        self.assertEqual(dict(profile.grouped()), {"other": 30})

    def test_short_names(self):
        for name, short in (
            ("weftline_index::pipeline::work::Worker<S>::scan_text", "Worker::scan_text"),
            ("<alloc::vec::Vec<T> as alloc::vec::spec::SpecFromIter<T,I>>::from_iter", "Vec::from_iter"),
            ("<&str as core::str::pattern::Pattern>::is_contained_in", "str::is_contained_in"),
            ("weftline_analysis::summary::Summary::beside::{{closure}}", "beside::{{closure}}"),
            ("memcpy", "memcpy"),
        ):
            self.assertEqual(instructions.shortened(name), short)


if __name__ == "__main__":
    unittest.main()
