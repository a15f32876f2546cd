#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs make_clicks: its output agrees with its summary, depends only on the arguments, and gpu_train can convert it.

usage: make_clicks_test.py MAKE_CLICKS GPU_TRAIN
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

MAKE_CLICKS, GPU_TRAIN = None, None
LINE = re.compile(rb"[01](\t(-?[0-9]+)?){13}(\t([0-9a-f]{8})?){26}\Z")


class MakeClicks(unittest.TestCase):
    def setUp(self):
        self.held = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.held.name)

    def tearDown(self):
        self.held.cleanup()

    def make(self, samples, seed, name):
        done = subprocess.run([MAKE_CLICKS, str(samples), str(seed), self.folder / name], check=True,
                              stdout=subprocess.PIPE)
        return json.loads(done.stdout), (self.folder / name).read_bytes()

    def test_writes_criteo_layout_and_best_possible_metrics(self):
        report, text = self.make(20000, 1, "a")
        lines = text.split(b"\n")
        self.assertEqual(lines.pop(), b"")
        self.assertEqual(len(lines), 20000)
        for line in lines:
            self.assertRegex(line, LINE)
        self.assertEqual(report["bytes"], len(text))
        for part, of in (("all", lines), ("last_fifth", lines[16000:])):
            self.assertEqual(report[part]["samples"], len(of))
            self.assertAlmostEqual(report[part]["clicks"], sum(line[:1] == b"1" for line in of) / len(of))
            self.assertTrue(0.22 < report[part]["clicks"] < 0.28, report)
            self.assertTrue(0.78 < report[part]["auc"] < 0.83, report)
            self.assertTrue(0.40 < report[part]["log_loss"] < 0.48, report)
        self.assertTrue(0.01 < b"".join(lines).count(b"\t\t") / (20000 * 39) < 0.3)

    def test_output_depends_only_on_the_seed(self):
        report, text = self.make(1000, 1, "a")
        again, same = self.make(1000, 1, "b")
        self.assertEqual(text, same)
        self.assertEqual(report["all"], again["all"])
        self.assertNotEqual(text, self.make(1000, 2, "c")[1])
        self.assertTrue(self.make(2000, 1, "d")[1].startswith(text))

    def test_writes_to_a_pipe(self):
        _, text = self.make(100, 1, "a")
        done = subprocess.run([MAKE_CLICKS, "100", "1", "-"], check=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE)
        self.assertEqual(done.stdout, text)
        self.assertEqual(json.loads(done.stderr)["all"]["samples"], 100)

    def test_can_be_converted(self):
        self.make(3000, 1, "a")
        done = subprocess.run([GPU_TRAIN, "convert", self.folder / "a", self.folder / "b"], check=True,
                              stdout=subprocess.PIPE)
        self.assertEqual(json.loads(done.stdout)["samples"], 3000)

    def test_rejects_invalid_arguments(self):
        for arguments in ((), ("10", "1"), ("x", "1", "a"), ("4", "1", "a"), ("10", "1", "no/where")):
            done = subprocess.run([MAKE_CLICKS, *arguments], cwd=self.folder, stderr=subprocess.PIPE)
            self.assertEqual(done.returncode, 2, arguments)
            self.assertIn(b"make_clicks", done.stderr)


if __name__ == "__main__":
    MAKE_CLICKS, GPU_TRAIN = sys.argv[1:3]
    unittest.main(argv=[sys.argv[0]])
