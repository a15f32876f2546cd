#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs gpu_train as a user does: what it prints, how it exits, and what a signal does to it.

usage: gpu_train_test.py PROGRAM
"""
import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
CONFIG = """[model]
dim = 16
[train]
epochs = 2
batch = 32
[run]
device = "host"
threads = 1
"""


class GpuTrain(unittest.TestCase):
    def setUp(self):
        self.held = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.held.name)
        facts = [f"e{s}\tby{r}\te{(s + r) % 60}\n" for s in range(60) for r in (1, 7, 20)]
        (self.folder / "train.txt").write_text("".join(facts[10:]))
        (self.folder / "valid.txt").write_text("".join(facts[:5]))
        (self.folder / "test.txt").write_text("".join(facts[5:10]))
        self.config = self.folder / "small.toml"
        self.config.write_text(CONFIG)

    def tearDown(self):
        self.held.cleanup()

    def run_it(self, *arguments):
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, capture_output=True, text=True)

    def expect_error(self, words, *arguments):
        done = self.run_it(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(words, done.stderr)
        if done.stderr.startswith("gpu_train: error: "):
            self.assertEqual(done.stderr.count("\n"), 1, done.stderr)

    def test_says_what_it_is(self):
        done = self.run_it("--version")
        self.assertEqual(done.returncode, 0)
        for word in ("gpu_train 0.", "host code for: ", "CUDA: ", "CUDA devices: "):
            self.assertIn(word, done.stdout)
        done = self.run_it("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("train", "eval", "nearest", "Example:"):
            self.assertIn(word, done.stdout)

    def test_trains_evaluates_and_finds_neighbours(self):
        done = self.run_it("train", self.config, "--run", "out", "--ranks", 2, "--set", "train.seed=3")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertIn("memory:", done.stderr)
        self.assertNotIn("\r", done.stderr)
        summary = json.loads((self.folder / "out" / "summary.json").read_text())
        self.assertRegex(summary["table_hash"], "^[0-9a-f]{16}$")
        self.assertEqual(summary["ranks"], 2)
        for split in ("valid", "test"):
            done = self.run_it("eval", "out", "--split", split)
            self.assertEqual(json.loads(done.stdout), summary[split], done.stderr)
        done = self.run_it("nearest", "out", "e1", "e2", "--count", 3)
        self.assertEqual(len(done.stdout.splitlines()), 8, done.stderr)

    def test_without_a_folder_makes_one(self):
        self.assertEqual(self.run_it("train", self.config).returncode, 0)
        made = list((self.folder / "runs").iterdir())
        self.assertEqual(len(made), 1)
        self.assertRegex(made[0].name, r"^small-\d{8}-\d{6}$")

    def test_mistakes_are_one_line_and_exit_2(self):
        self.expect_error("none.toml cannot be read", "train", "none.toml")
        self.expect_error("did you mean 'dim'?", "train", self.config, "--set", "model.dimm=3")
        self.expect_error("device 'tpu' is unknown", "train", self.config, "--device", "tpu")
        self.expect_error("an integer", "train", self.config, "--ranks", "two")
        self.expect_error("cannot be made", "train", self.config, "--run", "train.txt/out")
        self.expect_error("has no checkpoint", "eval", "nowhere")
        self.expect_error("--unknown", "train", self.config, "--unknown")
        self.expect_error("subcommand", "--set", "a.b=c")
        (self.folder / "train.txt").write_text("one field\n")
        self.expect_error("train.txt:1 has 1 field", "train", self.config)

    def test_a_signal_saves_and_the_run_goes_on(self):
        long_run = ["train", str(self.config), "--run", "out", "--set", "train.epochs=100000"]
        running = subprocess.Popen([PROGRAM, *long_run], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        for line in running.stderr:
            if line.startswith("epoch 1:"):
                break
        running.send_signal(signal.SIGTERM)
        rest = running.stderr.read()
        running.stderr.close()
        self.assertEqual(running.wait(), 0, rest)
        self.assertIn("stopped by a signal", rest)
        steps = json.loads((self.folder / "out" / "summary.json").read_text())["steps"]
        self.expect_error("holds a checkpoint", *long_run)
        more = ["train", self.config, "--run", "out", "--resume", "--set", f"train.steps={steps + 5}"]
        self.config.write_text(CONFIG.replace("epochs = 2\n", ""))
        done = self.run_it(*more)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn(f"going on from step {steps}", done.stderr)
        self.assertEqual(json.loads((self.folder / "out" / "summary.json").read_text())["steps"], steps + 5)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
