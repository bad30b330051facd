"""The judgement over results; run by `python -m unittest`."""

import unittest

from run_dftracer import judge

PAGE = "| `check_*` | names |"


class Judgement(unittest.TestCase):
    def check(self, found, deviations, expected):
        wrong = judge(found, [{"tests": tests, "reason": "r"} for tests in deviations], PAGE)
        self.assertEqual([line.split(":")[1].split("\n")[0].strip() for line in wrong], expected)

    def test_what_is_expected_is_fine(self):
        self.check({"a": "", "check_b": "no file"}, ["check_*"], [])

    def test_a_new_failure(self):
        self.check({"a": "boom", "check_b": "no file"}, ["check_*"], ["failed"])

    def test_a_deviation_that_is_gone(self):
        self.check({"check_b": "", "check_c": "no file"}, ["check_*"], ["passes, although it is listed"])

    def test_a_deviation_of_nothing(self):
        self.check({"a": ""}, ["check_*"], ["there is no such test"])

    def test_a_deviation_that_the_page_does_not_have(self):
        self.check({"a": "boom"}, ["a"], ["docs/compat.md does not have it"])


if __name__ == "__main__":
    unittest.main()
