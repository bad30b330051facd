"""Tests of the verdict; DLIO itself is run by `make weekly`."""

import unittest

import check


class Verdict(unittest.TestCase):
    def test_two_percent_of_dlios_value(self):
        def agrees(theirs, ours, processes=2):
            training = {"accelerator_utilisation": ours, "steps": 24, "blocks": 2, "processes": processes}
            return check.judge(theirs, training, 2)[0]

        for theirs, ours, expected in [(50.0, 0.5, True), (50.0, 0.5099, True), (50.0, 0.5101, False), (50.0, 0.4899, False), (0.0, 0.1, False)]:
            self.assertEqual(agrees(theirs, ours), expected, f"{theirs} {ours}")
        self.assertFalse(agrees(50.0, 0.5, processes=1))
        self.assertFalse(check.judge(50.0, None, 2)[0])

    def test_sleeps_that_were_late(self):
        # Two steps behind the first: told to compute for 2 s of 4 s, they took 3 s by the clock. The second block has no wait of its first step.
        block = {"au": 50.0, "proc": [9, 2, 2], "load": [8, 0.5, 0.5], "compute": [1, 1, 1]}
        epoch = {column: {"block1": values, "block2": values, "eval": []} for column, values in block.items()}
        epoch["load"] = {**epoch["load"], "block2": [0.5, 0.5]}
        real, late = check.by_its_clock([{"1": epoch, "2": epoch, "hostname": "a"}])
        self.assertEqual((real, late), (75.0, 0.5))
        training = {"accelerator_utilisation": 0.75, "steps": 12, "blocks": 4, "processes": 1}
        self.assertTrue(check.judge(50.0, training, 1, real, late)[0])
        self.assertFalse(check.judge(50.0, training, 1, real, 0.009)[0])


if __name__ == "__main__":
    unittest.main()
