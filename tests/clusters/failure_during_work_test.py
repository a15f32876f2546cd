#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A rank is lost during each kind of allreduce and each collective call: every other rank reports it.

Prints a line of JSON for each loss, with the seconds until it was reported.

usage: failure_during_work_test.py PROGRAM [unittest's arguments]    PROGRAM: work_until_lost
"""
import pathlib
import sys
import unittest

import as_ctest
import losses

PROGRAM = None


class LostAtWork(unittest.TestCase):
    def check_all(self, way):
        as_ctest.need(self, way.harness())
        self.assertLessEqual(losses.MUST_BE_LISTED, set(losses.works(PROGRAM)))
        for outcome in losses.all_losses(PROGRAM, [way]):
            print(outcome.line(), flush=True)
            with self.subTest(work=outcome.work):
                self.assertEqual(outcome.problems, [], outcome.output)

    def test_link_is_cut(self):
        self.check_all(losses.CUT)

    def test_rank_is_killed(self):
        self.check_all(losses.KILL_OF_HOST)

    def test_rank_on_same_host_is_killed(self):
        self.check_all(losses.KILL)

    def test_rank_hangs(self):
        self.check_all(losses.STOP)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    as_ctest.main()
