#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A link is cut, or a rank killed, in the middle of each kind of sum over the ranks: every other rank names it.

usage: lost_in_sums_test.py PROGRAM [unittest's arguments]    PROGRAM: sum_until_lost
"""
import pathlib
import signal
import subprocess
import sys
import time
import unittest

import as_ctest
import namespaces

PROGRAM = None
RANKS, VICTIM = 4, 2
PEER_TIMEOUT_S = 2
WITHIN_S = 40  # much longer than that, for slow machines; shorter than the store's wait_timeout_s
LOST = 3  # the program's exit status where a rank was lost


class LostInSums(unittest.TestCase):
    def check(self, what, moment_s, lose):
        """lose: loses the victim of a network and its job. Returns the victim's exit status."""
        with namespaces.Network(RANKS) as network, network.job([PROGRAM, what, PEER_TIMEOUT_S]) as job:
            for rank in range(RANKS):
                job.wait_for(rank, "going")
            time.sleep(moment_s)
            self.assertEqual(set(job.codes()), {None}, job.all_output())
            lose(network, job)
            lost_at = time.monotonic()
            codes = job.wait(WITHIN_S, but=[VICTIM])
            print(f"{what}: the others ended {time.monotonic() - lost_at:.1f} s later", flush=True)
            for rank in set(range(RANKS)) - {VICTIM}:
                self.assertEqual(codes[rank], LOST, job.all_output())
                self.assertIn(f"lost: rank {VICTIM}: ", job.output(rank), job.all_output())
            return job.wait(WITHIN_S)[VICTIM]

    def check_all(self, lose, code):
        as_ctest.need(self, namespaces)
        listed = subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout.split()
        self.assertLessEqual({"integers", "reduce_scatter", "top_k", "rows"}, set(listed))
        for number, what in enumerate(listed):
            with self.subTest(what=what):
                self.assertEqual(self.check(what, 0.05 + 0.07 * number, lose), code)

    def test_a_link_is_cut(self):
        self.check_all(lambda network, job: network.cut(VICTIM), LOST)  # all are lost to the victim, or one of them

    def test_a_rank_is_killed(self):
        self.check_all(lambda network, job: job.signal(VICTIM, signal.SIGKILL), -signal.SIGKILL)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    as_ctest.main()
