# SPDX-License-Identifier: Apache-2.0
"""Runs a unittest program for ctest. The exit status is 77 if all tests are skipped."""
import sys
import unittest

import processes

SKIPPED = 77


def main():
    processes.end_on_sigterm()
    result = unittest.main(module="__main__", exit=False, verbosity=2).result
    if not result.wasSuccessful() or result.testsRun == 0:
        sys.exit(1)
    if len(result.skipped) == result.testsRun:
        print(result.skipped[0][1])  # the last line is the reason
        sys.exit(SKIPPED)


def need(test, module):
    """Skips a test if something is missing that this way of starting jobs needs."""
    missing = module.missing()
    if missing:
        test.skipTest(f"missing: {', '.join(missing)}")
