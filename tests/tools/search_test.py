#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Searches hyper-parameters with gpu_train: a planted optimum is found, a search that is killed at any time ends with
the same table, trials that fail are out, and settings that make no sense are rejected.

usage: search_test.py PROGRAM
"""
import json
import math
import os
import pathlib
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = None
KILLS = 10
CONFIG = """[data]
reader = "ratings"
train = "ratings.txt"
valid_share = 0.2
test_share = 0
[model]
dim = 8
init_scale = 0.3
[optimizer]
kind = "adagrad"
learning_rate = 1e-4
[train]
epochs = 18
batch_size = 64
[run]
device = "host"
threads = 1
"""
SEARCH = """[search]
trials = 12
reduction = 3
concurrent = {concurrent}
[search.settings]
optimizer.learning_rate = {{from = 1e-4, to = 1, log = true}}
optimizer.schedule = ["constant", "linear"]
model.dim = {{from = 2, to = 16}}
"""


def ratings():
    draw = random.Random(1)
    rows, columns = ([[draw.uniform(-1, 1) for _ in range(2)] for _ in range(n)] for n in (80, 50))
    return "".join(f"{r} {c} {sum(map(math.prod, zip(rows[r], columns[c]))):.4f}\n"
                   for r in range(80) for c in range(50) if draw.random() < .5)


class SearchTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        (self.folder / "ratings.txt").write_text(ratings())

    def start(self, name, *options, concurrent=1, search=SEARCH, **more):
        (self.folder / "search.toml").write_text(CONFIG + search.format(concurrent=concurrent))
        return subprocess.Popen([PROGRAM, "search", "search.toml", "--run", name, *options], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)

    def wait_for(self, process, is_true):
        """Waits until a function returns true, or the process ends."""
        end = time.monotonic() + 60
        while not is_true() and process.poll() is None:
            self.assertLess(time.monotonic(), end)
            time.sleep(.005)

    def finish(self, *arguments, **settings):
        process = self.start(*arguments, **settings)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        return out[:out.rindex("best: ")].splitlines()

    def reject(self, expected, search, *options):
        process = self.start("rejected", *options, search=search)
        _, err = process.communicate(timeout=600)
        self.assertEqual(process.returncode, 2, err)
        for words in expected:
            self.assertIn(words, err)

    def test_finds_the_planted_optimum(self):
        table = self.finish("found", concurrent=2)
        self.assertEqual([line.split()[1] for line in table], ["epochs", "18"] + 3 * ["6"] + 8 * ["2"])
        best = table[1].split("  ")
        rate = float(next(word for word in best if word.startswith("optimizer.learning_rate=")).split("=")[1])
        self.assertGreater(rate, .02)
        self.assertIn("as in the file", "\n".join(table[5:]))  # a learning rate of 1e-4
        trial = int(table[1].split()[0])
        run = self.folder / "found/trials" / f"{trial:03}"
        summary = json.loads((run / "summary.json").read_text())
        self.assertIn(f"rmse {summary['valid']['rmse']:.4g}", table[1])
        self.assertTrue((run / "checkpoint").is_dir())
        others = [path for path in (self.folder / "found/trials").glob("*/checkpoint") if path.parent != run]
        self.assertEqual(others, [])
        page = (self.folder / "found/search.html").read_text()
        self.assertIn("<svg", page)
        self.assertEqual(page.count("<tr>"), 1 + 12)

        # The configuration of the best trial gives its model again.
        train = [PROGRAM, "train", "found/best.toml", "--run", "again", "--set", "train.validate_every=0"]
        again = subprocess.run(train, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(json.loads((self.folder / "again/summary.json").read_text())["table_hash"],
                         summary["table_hash"])
        self.assertEqual(self.finish("found", "--resume", concurrent=2), table)  # nothing is left to do

    def test_killed_search_ends_with_the_same_table(self):
        longer = ("--set", "train.epochs=180")
        whole = self.finish("whole", *longer)
        draw = random.Random(2)
        kills = 0
        record = self.folder / "killed/search.jsonl"
        found = [0]  # lines of the record at each kill
        while kills < KILLS:
            process = self.start("killed", "--resume", *longer)
            # Every second kill is soon after the start; for the others, a trial has ended since the last.
            wanted = found[-1] + 1 if kills % 2 == 1 else 1
            self.wait_for(process, lambda: record.exists() and len(record.read_text().splitlines()) >= wanted)
            time.sleep(draw.uniform(.02, .15))
            if process.poll() is None:
                process.kill()
                kills += 1
                found.append(len(record.read_text().splitlines()))
            _, err = process.communicate()
            self.assertIn(process.returncode, (0, -signal.SIGKILL), err)
            if process.returncode == 0:  # on a fast machine
                break
        self.assertGreater(kills, 2)
        self.assertGreater(found[-1], 1, "no trial had ended at the last kill")
        self.assertEqual(self.finish("killed", "--resume", *longer), whole)

    def test_concurrent_trials_give_the_same_table(self):
        self.assertEqual(self.finish("beside", concurrent=3), self.finish("alone"))

    def test_says_what_it_begins_and_what_was_read(self):
        heading = "user,item,rating\n" + ratings().replace(" ", ",")
        (self.folder / "ratings.txt").write_text(heading)
        small = SEARCH.replace("trials = 12", "trials = 2")
        process = self.start("new", "--resume", "--set", "train.epochs=1", search=small)
        _, err = process.communicate(timeout=600)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("new has no search, so a new one begins there", err)
        self.assertIn("2 trials with 1 epoch each", err)
        self.assertIn("trial 1, 1 epoch: ", err)
        self.assertEqual(err.count("with a heading; columns user, item, rating"), 1)
        for options in ((), ("--resume",)):
            process = self.start("new/trials/000", *options, search=small)
            self.assertIn("is the folder of a run of train", process.communicate(timeout=600)[1])
            self.assertEqual(process.returncode, 2)

    def test_stopped_search_can_be_resumed(self):
        whole = self.finish("whole")
        process = self.start("stopped")
        self.wait_for(process, lambda: (self.folder / "stopped/trials/001.log").exists())
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=600)
        self.assertEqual(process.returncode, 0, err)
        self.assertIn("continue with --resume --run", err)
        self.assertEqual(self.finish("stopped", "--resume"), whole)
        process = self.start("stopped")
        self.assertIn("contains a search", process.communicate(timeout=600)[1])
        process = self.start("stopped", "--resume", "--set", "model.biases=false")
        self.assertIn("another configuration", process.communicate(timeout=600)[1])

    def test_failed_trials_are_out(self):
        search = "[search]\ntrials = 8\nreduction = 8\n[search.settings]\noptimizer.learning_rate = [0.1, 1e6]\n" \
                 "optimizer.kind = [\"sgd\", \"adagrad\"]\n"
        table = self.finish("failing", search=search.replace("{", "{{").replace("}", "}}"))
        failed = [line for line in table if "failed: " in line]
        self.assertTrue(failed)
        self.assertNotIn("failed", table[1])
        self.assertEqual(table[-len(failed):], failed)

    def trials_of(self, process):
        """Returns the ids of the processes of trials."""
        return [int(number) for number in
                pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]

    def test_killed_trial_of_the_last_stage_runs_again(self):
        longer = ("--set", "train.epochs=180")
        search = SEARCH.replace("trials = 12", "trials = 3")
        whole = self.finish("whole", *longer, search=search)
        process = self.start("killed", *longer, search=search)
        record = self.folder / "killed/search.jsonl"
        last = []
        def last_stage_runs():
            last[:] = self.trials_of(process) if record.exists() and len(record.read_text().splitlines()) == 4 else []
            return last
        self.wait_for(process, last_stage_runs)
        os.kill(last[0], signal.SIGKILL)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 2, err)
        self.assertIn("ended by signal 9", err.splitlines()[-1])
        self.assertIn("--resume --run", err.splitlines()[-1])
        table = out.splitlines()
        self.assertEqual([line.split()[1] for line in table[1:4]], 3 * ["60"])
        self.assertIn("failed with 180 epochs: ended by signal 9", table[1])
        self.assertIn("of those with 60 epochs, because no trial with 180 has a result", table[-1])
        self.assertIn("epochs = 180", (self.folder / "killed/best.toml").read_text())
        self.assertEqual(self.finish("killed", "--resume", *longer, search=search), whole)

    def test_trials_run_again_after_a_full_disk(self):
        """A limit on file sizes stands for a full disk: no checkpoint fits."""
        search = SEARCH.replace("from = 2, to = 16", "from = 100, to = 160").replace("trials = 12", "trials = 3")
        wide = ("--set", "model.dim=120")
        whole = self.finish("whole", *wide, search=search)
        process = self.start("full", *wide, search=search,
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000)))
        _, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 2, err)
        self.assertIn("every trial failed", err.splitlines()[-1])
        self.assertIn("free memory or space on the disk, and try them again with --resume", err.splitlines()[-1])
        self.assertEqual(self.finish("full", "--resume", *wide, search=search), whole)

    def test_diverged_trial_of_the_last_stage_is_not_the_best(self):
        search = "[search]\ntrials = 3\nreduction = 3\n[search.settings]\nmodel.dim = [4, 8]\n"
        self.finish("diverged", search=search)
        record = self.folder / "diverged/search.jsonl"
        *before, last = record.read_text().splitlines()
        trial = json.loads(last)["trial"]
        failed = {"trial": trial, "budget": 18, "error": "the gradient is not finite"}
        record.write_text("\n".join([*before, json.dumps(failed)]) + "\n")
        process = self.start("diverged", "--resume", search=search)
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, 0, err)
        best = int(out[out.index("best: trial ") + 12:].split()[0])
        self.assertNotEqual(best, trial)
        self.assertIn("of those with 6 epochs", out.splitlines()[-1])

    def test_rejects_what_cannot_be_searched(self):
        def plan(lines, more=""):
            return f"[search]\n{more}[search.settings]\n{lines}\n".replace("{", "{{").replace("}", "}}")

        self.reject(["has no section [search]"], "")
        self.reject(["[search.settings] is missing or empty"], "[search]\ntrials = 3\n")
        self.reject(["there is no setting 'model.dimm'", "did you mean 'model.dim'"], plan("model.dimm = [1, 2]"))
        self.reject(["train.epochs cannot be searched"], plan("train.epochs = [1, 2]"))
        self.reject(["model.dim has fewer than two values"], plan("model.dim = 4"))
        self.reject(["needs from and to"], plan("model.dim = {from = 4}"))
        self.reject(["needs from and to", "from 1 to 65536"], plan("model.dim = {from = 0, to = 9}"))
        self.reject(["log is 'yes'"], plan("model.dim = {from = 4, to = 9, log = \"yes\"}"))
        self.reject(["data.valid_share cannot be searched"], plan("data.valid_share = [0.1, 0.2]"))
        self.reject(["train.patience ends trials early"], plan("model.dim = [4, 8]"), "--set", "train.patience=2")
        self.reject(["train.keep_best has no effect"], plan("model.dim = [4, 8]"), "--set", "train.keep_best=false")
        self.reject(["begins at 0", "log = true"], plan("optimizer.l2 = {from = 0, to = 1, log = true}"))
        self.reject(["a range has no 'step'"], plan("model.dim = {from = 1, to = 9, step = 2}"))
        self.reject(["optimizer.kind is not a number"], plan("optimizer.kind = {from = 1, to = 2}"))
        self.reject(["there is no key 'trial'", "did you mean 'trials'"], plan("model.dim = [4, 8]", "trial = 3\n"))
        self.reject(["search.reduction is 1"], plan("model.dim = [4, 8]", "reduction = 1\n"))
        self.reject(["model.n3 has no effect here"], plan("model.n3 = [0.1, 0.2]"))
        self.reject(["no valid split"], plan("model.dim = [4, 8]"), "--set", "data.valid_share=0")
        self.assertFalse((self.folder / "rejected/trials/000").exists())


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
