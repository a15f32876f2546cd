#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of run_cases.py and run_shards.py: every case of a test program counts once, with its outcome, however its
process ends.

usage: run_cases_test.py PROGRAM    of cases_to_run.cpp
"""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import count_tests  # noqa: E402

KILLED = "its process was ended by SIGKILL"
FAILING = {"Outcomes.Fails": "", "Outcomes.IsKilled": KILLED,
           "Outcomes.EndsItsProcess": "its process ended with status 0", "All/Numbers.AreSmall/2": ""}
PASSING = ["Outcomes.Passes", "All/Numbers.AreSmall/0", "All/Numbers.AreSmall/1"]


class RunCases(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.results = pathlib.Path(folder.name, "made", "results.jsonl")

    def start(self, program=None, arguments=(), **variables):
        command = [sys.executable, ROOT / "tools" / "run_cases.py", self.results, program or PROGRAM, *arguments]
        if not arguments:
            variables = {"GTEST_FILTER": "-*.Hangs", **variables}
        return subprocess.Popen(command, env={**os.environ, **variables}, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT)

    def outcomes(self):
        return count_tests.of_program(self.results.read_text().splitlines())

    def run_all(self, status, *arguments, **variables):
        """Runs the cases and returns their outcomes and the output."""
        process = self.start(arguments=arguments, **variables)
        text = process.communicate(timeout=300)[0]
        self.assertEqual(process.returncode, status, text)
        return self.outcomes(), text

    def test_each_case_counts_once(self):
        outcomes, text = self.run_all(1)
        self.assertEqual(sorted(outcomes), sorted(
            [(name, "failed", why) for name, why in FAILING.items()] + [(name, "passed", "") for name in PASSING] +
            [("Outcomes.IsSkipped", "skipped", "there is no moon")]))
        self.assertIn("what a case that fails prints", text)
        self.assertIn("1 + 1", text)
        self.assertNotIn("what a case that passes prints", text)
        self.assertEqual(text.splitlines()[-1], "3 passed, 4 failed, 1 skipped")

    def test_runner_runs_the_program(self):
        outcomes, _ = self.run_all(0, GPUPS_CASE_RUNNER="env GTEST_FILTER=Outcomes.Passes")
        self.assertEqual(outcomes, [("Outcomes.Passes", "passed", "")])

    def test_status_is_0_without_failures(self):
        outcomes, text = self.run_all(0, GTEST_FILTER="Outcomes.Passes:Outcomes.IsSkipped")
        self.assertEqual([outcome for _, outcome, _ in outcomes], ["passed", "skipped"])
        self.assertEqual(text, "1 passed, 0 failed, 1 skipped\n")
        self.assertEqual(self.run_all(0, GTEST_FILTER="None.*")[0], [])

    def test_filter_selects_cases_unless_the_environment_does(self):
        self.assertEqual(self.run_all(0, "Outcomes.Passes")[0], [("Outcomes.Passes", "passed", "")])
        self.assertEqual(self.run_all(0, "Outcomes.Passes", GTEST_FILTER="*AreSmall/0")[0],
                         [("All/Numbers.AreSmall/0", "passed", "")])
        self.assertEqual(self.run_all(0, "Outcomes.Passes", GTEST_FILTER="None.*")[0], [])
        outcomes, text = self.run_all(1, "None.*")
        self.assertEqual([outcome for _, outcome, _ in outcomes], ["failed"])
        self.assertIn("selects no case", text)

    def test_shards_share_the_cases(self):
        shards = [self.run_all(1, GTEST_TOTAL_SHARDS="2", GTEST_SHARD_INDEX=index)[0] for index in ("0", "1")]
        self.assertTrue(all(len(shard) == 4 for shard in shards))
        self.assertEqual(sorted(name for shard in shards for name, _, _ in shard),
                         sorted([*FAILING, *PASSING, "Outcomes.IsSkipped"]))

    def test_case_that_hangs_fails(self):
        outcomes, text = self.run_all(1, GTEST_FILTER="Outcomes.Hangs:All/Numbers.AreSmall/0", GPUPS_CASE_SECONDS="2")
        self.assertEqual(outcomes, [("Outcomes.Hangs", "failed", "it took longer than 2 s"),
                                    ("All/Numbers.AreSmall/0", "passed", "")])
        self.assertIn("Outcomes.Hangs: it took longer than 2 s", text)

    def test_failure_after_the_last_case_counts(self):
        outcomes, text = self.run_all(1, GTEST_FILTER="Outcomes.Passes", STATUS_AFTERWARDS="23")
        self.assertEqual(outcomes, [
            ("Outcomes.Passes", "passed", ""),
            (pathlib.Path(PROGRAM).name, "failed", "outside of cases its process ended with status 23")])
        self.assertIn("something leaks", text)

    def test_program_that_does_not_start_fails(self):
        process = self.start("/not/there")
        self.assertIn("cannot be listed", process.communicate()[0])
        self.assertEqual(process.returncode, 1)
        self.assertEqual([outcome for _, outcome, _ in self.outcomes()], ["failed"])

    def test_cases_that_were_not_reached_fail(self):
        process = self.start(GTEST_FILTER="Outcomes.Passes:Outcomes.Hangs:All/Numbers.AreSmall/0")
        while not self.results.exists() or '"started": "Outcomes.Hangs"' not in self.results.read_text():
            self.assertIsNone(process.poll(), "the program ended before the case started")
            time.sleep(.05)
        process.send_signal(signal.SIGTERM)
        process.communicate()
        self.assertNotEqual(process.returncode, 0)
        self.assertEqual(self.outcomes(), [
            ("Outcomes.Passes", "passed", ""),
            ("Outcomes.Hangs", "failed", "it was running when its program was ended"),
            ("All/Numbers.AreSmall/0", "failed", "it did not run")])


class RunShards(unittest.TestCase):
    def run_shards(self, filter_, shards, seconds=300):
        """Returns the status and the lines of the output."""
        with tempfile.TemporaryDirectory() as results:
            command = [sys.executable, ROOT / "tools" / "run_shards.py", "--shards", str(shards), "--seconds",
                       str(seconds), "--results", results, PROGRAM]
            done = subprocess.run(command, env={**os.environ, "GTEST_FILTER": filter_}, text=True, timeout=300,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return done.returncode, done.stdout.splitlines()

    def test_counts_are_those_of_all_shards(self):
        for shards in (1, 3):
            status, lines = self.run_shards("-*.Hangs", shards)
            self.assertEqual((status, lines[-1]), (1, "3 passed, 4 failed, 1 skipped"))
            self.assertIn("what a case that fails prints", lines)
            self.assertIn("skipped: Outcomes.IsSkipped: there is no moon", lines)
            self.assertNotIn("what a case that passes prints", lines)
        self.assertEqual(self.run_shards("*.Passes:*AreSmall/0", 5), (0, ["2 passed, 0 failed, 0 skipped"]))

    def test_case_that_hangs_fails_at_the_end_of_the_time(self):
        begin = time.monotonic()
        status, lines = self.run_shards("Outcomes.Passes:Outcomes.Hangs:*AreSmall/0:*AreSmall/1", 2, seconds=3)
        self.assertLess(time.monotonic() - begin, 100)
        self.assertEqual((status, lines[-1]), (1, "2 passed, 2 failed, 0 skipped"))
        self.assertIn("failed: Outcomes.Hangs: it was running when its program was ended", lines)
        self.assertIn("failed: All/Numbers.AreSmall/1: it did not run", lines)

    def test_empty_selection_fails(self):
        self.assertEqual(self.run_shards("None.*", 2)[0], 1)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
