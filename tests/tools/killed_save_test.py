#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills gpu_train at each call of a save that changes a file: the run goes on with --resume, and ends with the same
tables. A checkpoint whose manifest was removed is still rejected.

usage: killed_save_test.py PROGRAM LIBRARY, of kill_at_call.cpp
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = LIBRARY = None
CONFIG = """[model]
dim = 4
[train]
epochs = 2
batch_size = 128
validate_every = 1
[run]
device = "host"
threads = 1
"""


class KilledSave(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.run_folder = self.folder / "out"
        facts = [f"e{s}\tby{r}\te{(s + r) % 60}\n" for s in range(60) for r in (1, 7, 20)]
        (self.folder / "train.txt").write_text("".join(facts[10:]))
        (self.folder / "valid.txt").write_text("".join(facts[:5]))
        (self.folder / "test.txt").write_text("".join(facts[5:10]))
        (self.folder / "small.toml").write_text(CONFIG)

    def train(self, *options, call=None, within=""):
        environment = dict(os.environ)
        if call is not None:
            environment |= {"LD_PRELOAD": LIBRARY, "KILL_AT_CALL": str(call), "KILL_IN": f"out/{within}",
                            "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0"}
        return subprocess.run([PROGRAM, "train", "small.toml", "--run", "out", *options], cwd=self.folder, text=True,
                              capture_output=True, env=environment)

    def result(self):
        return json.loads((self.run_folder / "summary.json").read_text())["table_hash"]

    def check(self, name, *options):
        """Kills runs at each call in a folder until a run has no more of them. Returns the number of killed runs."""
        done = self.train(*options)
        self.assertEqual(done.returncode, 0, done.stderr)
        whole = self.result()
        for call in range(1, 200):
            shutil.rmtree(self.run_folder)
            done = self.train(*options, call=call, within=name)
            if done.returncode == 0:
                return call - 1
            self.assertEqual(done.returncode, -signal.SIGKILL, done.stderr)
            begun = any((self.run_folder / name).glob("step-*"))
            complete = (self.run_folder / name / "manifest.json").exists()
            done = self.train("--resume", *options)
            self.assertEqual(done.returncode, 0, f"{name}, call {call}: {done.stderr}")
            self.assertEqual(self.result(), whole, f"{name}, call {call}")
            if begun and not complete:
                self.assertRegex(done.stderr, f"the first save to .*{name} did not complete: its files are removed")
        self.fail("the run does not end")

    def test_any_moment_of_a_save(self):
        self.assertGreater(self.check("checkpoint"), 15)

    def test_any_moment_of_saves_of_two_ranks(self):
        self.assertGreater(self.check("best", "--ranks", "2"), 15)

    def test_without_resume_it_begins_again_too(self):
        self.assertEqual(self.train(call=8, within="best").returncode, -signal.SIGKILL)
        done = self.train()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("best did not complete: its files are removed, and training begins again", done.stderr)

    def test_removed_manifest_is_rejected_also_after_a_later_save_was_killed(self):
        self.assertEqual(self.train("--set", "train.epochs=1").returncode, 0)
        (step,) = (self.run_folder / "checkpoint").glob("step-*")
        # The manifest of the second save is half written.
        for call in range(1, 200):
            done = self.train("--resume", call=call, within="checkpoint/manifest")
            if done.returncode == 0 or (self.run_folder / "checkpoint/manifest.json.new").exists():
                break
        self.assertEqual(done.returncode, -signal.SIGKILL)
        (self.run_folder / "checkpoint/manifest.json").unlink()
        done = self.train("--resume")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("has no manifest.json, which was removed", done.stderr)
        self.assertTrue(step.exists())


if __name__ == "__main__":
    LIBRARY = sys.argv.pop(2)
    PROGRAM = sys.argv.pop(1)
    unittest.main()
