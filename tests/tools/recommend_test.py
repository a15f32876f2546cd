#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains on interactions and recommends items with gpu_train, for users on the command line and in a file.

usage: recommend_test.py PROGRAM
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
CONFIG = """[data]
reader = "interactions"
train = "choices.txt"
test_share = 0.1
[model]
name = "ials"
dim = 8
[train]
epochs = 5
batch_size = 64
[run]
device = "host"
threads = 1
"""


class RecommendTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        # User u likes the items i with u % 3 = i % 3.
        lines = (f"u{u} " + " ".join(f"i{(u + 3 * k * (1 + u % 2)) % 30}" for k in range(6)) for u in range(60))
        (self.folder / "choices.txt").write_text("\n".join(lines) + "\n")
        (self.folder / "run.toml").write_text(CONFIG)
        self.call("train", "run.toml", "--run", "out")

    def call(self, *arguments, status=0):
        command = [PROGRAM, *map(str, arguments)]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr if status else done.stdout

    def test_recommends_for_users_and_for_a_file_of_users(self):
        named = self.call("recommend", "out", "u4", "u8", "--count", 3)
        lines = named.splitlines()
        self.assertEqual([lines[0], lines[4]], ["u4", "u8"])
        scores = [float(line.split()[0]) for line in lines[1:4]]
        self.assertEqual(scores, sorted(scores, reverse=True))
        for line in lines[1:4]:
            self.assertEqual(int(line.split()[1][1:]) % 3, 1)
        for users in ("u4\nu8\n", " u4 \n \t\nu8\t\r\n"):
            (self.folder / "users.txt").write_bytes(users.encode())
            self.assertEqual(self.call("recommend", "out", "--users", "users.txt", "--count", 3), named)
        metrics = json.loads(self.call("eval", "out"))
        self.assertGreater(metrics["recall@20"], metrics["popularity"]["recall@20"])

    def test_rejects_other_users(self):
        self.assertIn("recommend needs users", self.call("recommend", "out", status=2))
        self.assertIn("recommend needs users", self.call("recommend", "out", "u1", "--users", "x", status=2))
        self.assertIn("there is no user 'nobody'", self.call("recommend", "out", "nobody", status=2))
        (self.folder / "users.txt").write_text("u4\n\nno one\nu8\nu99\nu98\nu97\n")
        command = [PROGRAM, "recommend", "out", "--users", "users.txt", "--count", "3"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, self.call("recommend", "out", "u4", "u8", "--count", 3))
        self.assertIn("left out 4 of 6 users, not in the training data: users.txt:3 'no one', "
                      "users.txt:5 'u99', users.txt:6 'u98', ...", done.stderr)
        (self.folder / "users.txt").write_text("\nnobody\nno one\n")
        self.assertIn("users.txt:2: there is no user 'nobody', nor any of the other 1",
                      self.call("recommend", "out", "--users", "users.txt", status=2))
        (self.folder / "users.txt").write_text("\n")
        self.assertIn("has no users", self.call("recommend", "out", "--users", "users.txt", status=2))
        self.assertEqual(self.call("nearest", "out", "i1", "iii", "--count", 2),
                         self.call("nearest", "out", "i1", "--count", 2))
        self.assertIn("missing.txt", self.call("recommend", "out", "--users", "missing.txt", status=2))

    def test_says_that_there_is_no_run_to_resume(self):
        command = [PROGRAM, "train", "run.toml", "--run", "typo", "--resume"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("typo has no checkpoint, so a new run begins there", done.stderr)

    def test_rejects_settings_without_effect(self):
        for given in (("--ranks", 2), ("--set", "eval.hits=[5]"), ("--set", "train.patience=3"),
                      ("--set", "run.report_every=5")):
            for command in (("recommend", "out", "u4"), ("nearest", "out", "i1"), ("export", "out", "new")):
                self.assertIn(f"{given[0]} {given[1]} has no effect on {command[0]}",
                              self.call(*command, *given, status=2))
        self.assertIn("has no effect on eval (it does not train)",
                      self.call("eval", "out", "--set", "train.patience=3", status=2))
        metrics = json.loads(self.call("eval", "out", "--ranks", 2, "--set", "eval.hits=[5]", "--threads", 1))
        self.assertIn("recall@5", metrics)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
