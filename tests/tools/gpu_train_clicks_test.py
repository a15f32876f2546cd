#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs gpu_train on click data as a user does, with valid and invalid files.

usage: gpu_train_clicks_test.py GPU_TRAIN
"""
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
CONFIG = """[data]
reader = "clicks"
train = "clicks.tsv"
numeric_columns = 2
categorical_columns = 3
[model]
name = "deepfm"
dim = 4
top = [8]
[train]
epochs = 2
batch_size = 32
[run]
device = "host"
threads = 1
"""


def line(draw):
    first = draw.randrange(4)
    label = int(draw.random() < (0.8 if first < 2 else 0.2))
    return f"{label}\t{draw.randrange(9)}\t\tv{first}\t{draw.randrange(5)}\t{draw.randrange(7)}\n"


class Clicks(unittest.TestCase):
    def setUp(self):
        self.held = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.held.name)
        draw = random.Random(1)
        self.lines = [line(draw) for _ in range(300)]
        self.write("clicks.tsv", self.lines)
        (self.folder / "run.toml").write_text(CONFIG)

    def tearDown(self):
        self.held.cleanup()

    def write(self, name, lines):
        (self.folder / name).write_text("".join(lines))

    def run_it(self, *arguments):
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=600)

    def train(self, *settings, name="out"):
        done = self.run_it("train", "run.toml", "--run", name, *[word for s in settings for word in ("--set", s)])
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((self.folder / name / "summary.json").read_text()), done.stderr

    def expect_error(self, words, *settings):
        """Expects an error of one line that contains `words`, and no new files."""
        before = sorted(path.name for path in self.folder.iterdir())
        done = self.run_it("train", "run.toml", "--run", "bad", *[word for s in settings for word in ("--set", s)])
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(words, done.stderr)
        self.assertRegex(done.stderr.splitlines()[-1], r"^gpu_train: error: .* \(.*\): ")
        self.assertLess(len(done.stderr), 2000)
        self.assertEqual(sorted(path.name for path in self.folder.iterdir()), before)

    def test_predict_replaces_no_file(self):
        self.train()
        new = self.run_it("predict", "out", "clicks.tsv", "--out", "predicted.txt")
        self.assertEqual(new.returncode, 0, new.stderr)
        self.assertEqual(len((self.folder / "predicted.txt").read_text().splitlines()), 300)
        for file in ("clicks.tsv", "predicted.txt"):
            before = (self.folder / file).read_bytes()
            again = self.run_it("predict", "out", "clicks.tsv", "--out", file)
            self.assertEqual(again.returncode, 2, again.stderr)
            self.assertIn(f"{file} exists (it would be replaced)", again.stderr)
            self.assertEqual((self.folder / file).read_bytes(), before)

    def test_steps_that_are_too_few_are_said(self):
        self.assertIn("only 18 steps in all, with batches of 32", self.train()[1])
        self.assertNotIn("steps in all", self.train("train.epochs=20", name="longer")[1])
        self.assertNotIn("steps in all", self.train("train.steps=3", name="as wanted")[1])

    def test_predict_says_that_empty_lines_have_no_prediction(self):
        self.train()
        self.write("gaps.tsv", ["\n", self.lines[0], "\n", self.lines[1]])
        done = self.run_it("predict", "out", "gaps.tsv")
        self.assertEqual(len(done.stdout.splitlines()), 2, done.stderr)
        self.assertIn("skipped 2 empty lines of gaps.tsv: they have no lines in the output", done.stderr)
        converted = self.run_it("convert", "gaps.tsv", "gaps.bin", "--numeric-columns", 2, "--categorical-columns", 3)
        self.assertEqual(converted.returncode, 0, converted.stderr)
        for file in ("clicks.tsv", "gaps.bin"):
            done = self.run_it("predict", "out", file)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_convert_reads_the_columns_that_are_named(self):
        self.write("table.csv", ["id,app,click,site,price\n", "7,x,1,abc,5\n", "8,y,0,def,2\n"])
        shape = ("--numeric-columns", 1, "--categorical-columns", 2)
        convert = ("convert", "table.csv", "table.bin", *shape)
        done = self.run_it(*convert, "--columns", "click,price,site,app")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("the label is 'click'; numbers I1 = 'price'; categories C1 = 'site', C2 = 'app'\n", done.stderr)
        for options, said in (((), "cannot be told): name them with --columns"),
                              (("--columns", "click,price"), "--columns has 2 names, and --numeric-columns is 1"),
                              (("--columns", "click,cost,site,app"), "has no column \"cost\" (--columns names it"),
                              (("--columns", "3,5,4,2", "--heading", "some"), "--heading is 'some'"),
                              (("--columns", "3,5,4,2", "--separator", "bar"), "separated by |")):
            with self.subTest(options=options):
                done = self.run_it(*convert, *options)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(said, done.stderr)

    def test_predict_of_ratings_says_that_lines_have_no_prediction(self):
        self.write("ratings.txt", [f"{r} {c} {1 + r * c % 5}\n" for r in range(9) for c in range(9)])
        self.write("ratings.toml", ['[data]\nreader = "ratings"\ntrain = "ratings.txt"\n[run]\ndevice = "host"\n'])
        done = self.run_it("train", "ratings.toml", "--run", "rated")
        self.assertEqual(done.returncode, 0, done.stderr)
        for text, count, said in (("", 0, "pairs.txt has nothing to predict"), ("a b\n", 0, "has nothing to predict"),
                                  (" \n\n", 0, "has nothing to predict"), ("1 2\n3 4\n", 2, ""),
                                  ("1 2\n\n \n3 4\n", 2, "skipped 2 empty lines of pairs.txt: they have no lines")):
            with self.subTest(text=text):
                self.write("pairs.txt", [text])
                done = self.run_it("predict", "rated", "pairs.txt")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(len(done.stdout.splitlines()), count)
                self.assertIn(said, done.stderr)
                self.assertEqual("to predict" in done.stderr or "empty line" in done.stderr, said != "", done.stderr)

    def test_columns_and_splits_without_content_are_said(self):
        log = self.train("model.min_count=200", "data.test_share=0.0001", name="rare")[1]
        self.assertRegex(log, r"left out all \d+ values of C1, C2, C3, each with fewer than 200 samples \(model.min_c")
        self.assertIn("data.test_share = 0.0001 selects none of 300 samples: there is no test split", log)
        log = self.train("model.min_count=50", name="some")[1]
        self.assertRegex(log, r"left out all \d+ values of C3, each with fewer than 50 .* this column")
        self.assertNotIn("left out", self.train("model.min_count=3", name="frequent")[1])
        self.write("lists.tsv", [l.replace("\n", "|9:2\n") for l in self.lines])
        for file, kind, said in (("clicks", "multi_hot=['C1','C3']", "no cell of C1, C3 has several values, although"),
                                 ("clicks", "weighted=['C2']", "no cell of C2 has several values, although"),
                                 ("lists", "multi_hot=['C1','C3']", "no cell of C1 has several values, although"),
                                 ("lists", "weighted=['C3']", "")):
            with self.subTest(file=file, kind=kind):
                log = self.train(f"data.train={file}.tsv", f"data.{kind}", name=f"{file}-{kind}")[1]
                self.assertIn(said, log)
                self.assertEqual("no cell of" in log, said != "")
        self.assertIn("table 'rows_4' has no rows", self.train("model.admission_count=100000", name="never")[1])
        self.assertNotIn("has no rows", self.train("model.admission_count=2", name="soon")[1])

    def test_validation_of_one_class_has_no_auc(self):
        self.write("ones.tsv", [l for l in self.lines if l.startswith("1")])
        summary, log = self.train("data.valid='ones.tsv'", "train.patience=2")
        self.assertIn("auc undefined (all", log)
        entries = [json.loads(l) for l in (self.folder / "out/metrics.jsonl").read_text().splitlines()]
        valid = [entry["valid"] for entry in entries if "valid" in entry]
        self.assertTrue(valid and all(v["auc"] is None and v["log_loss"] > 0 for v in valid), valid)
        self.assertGreater(summary["validation"]["quality"], 0)

    def test_trains_evaluates_and_resumes(self):
        summary, output = self.train("eval.progressive=true")
        self.assertIn("2 numbers and 3 categories; 270 samples for training, 0 for validation, 30 for the test",
                      output)
        self.assertEqual(output.count("progressive auc"), 1)
        self.assertEqual(summary["test"]["samples"], 30)
        self.assertEqual(summary["progressive"]["samples"], 270)
        self.assertRegex(summary["dense_hash"], "^[0-9a-f]{16}$")
        done = self.run_it("eval", "out")
        self.assertEqual(json.loads(done.stdout), summary["test"], done.stderr)
        done = self.run_it("train", "run.toml", "--run", "out", "--resume", "--ranks", 2, "--set", "train.epochs=3",
                           "--set", "eval.progressive=true")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("resuming from step 18", done.stderr)
        resumed = json.loads((self.folder / "out/summary.json").read_text())
        self.assertEqual(resumed["progressive"], summary["progressive"])
        done = self.run_it("nearest", "out", "v1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("has no entities", done.stderr)

    def test_text_may_be_a_pipe(self):
        os.mkfifo(self.folder / "pipe")
        with subprocess.Popen(["sh", "-c", "cat clicks.tsv >pipe"], cwd=self.folder):
            piped = self.train("data.train=pipe", name="piped")[0]
        self.assertEqual(piped["table_hash"], self.train()[0]["table_hash"])

    def test_rejects_missing_and_invalid_files(self):
        self.expect_error("none.tsv cannot be", "data.train=none.tsv")
        self.expect_error("is a folder", "data.train=.")
        self.expect_error("none.tsv does not exist", "data.test=none.tsv")
        self.expect_error("clicks.tsv:1 has 6 fields", "data.numeric_columns=3")
        self.expect_error("/dev/zero", "data.train=/dev/zero")
        self.write("empty.tsv", [])
        self.expect_error("empty.tsv has no samples", "data.train=empty.tsv")
        self.write("bad.tsv", ["no sample\n"] * 50)
        self.expect_error("50 bad lines of 50", "data.train=bad.tsv")
        self.expect_error("bad.tsv has no samples", "data.train=bad.tsv", "data.bad_share_max=1")
        (self.folder / "noise.tsv").write_bytes(random.Random(2).randbytes(5000))
        self.expect_error("noise.tsv", "data.train=noise.tsv")

    def test_skips_bad_lines_up_to_the_limit(self):
        lines = self.lines[:]
        for at in range(0, 300, 10):
            lines[at] = "2\t1\t1\ta\tb\tc\n"
        self.write("some.tsv", lines)
        self.expect_error("30 bad lines of 300", "data.train=some.tsv")
        self.expect_error("30 bad lines of 300", "data.train=some.tsv", "data.bad_share_max=0.09")
        summary, output = self.train("data.train=some.tsv", "data.bad_share_max=0.1")
        self.assertIn("skipped 30 bad lines of 300", output)
        self.assertEqual(summary["samples"], 2 * 243)

    def test_rejects_binary_file_of_another_layout(self):
        done = self.run_it("convert", "clicks.tsv", "clicks.bin", "--numeric-columns", 2, "--categorical-columns", 3)
        self.assertEqual(done.returncode, 0, done.stderr)
        text, _ = self.train(name="text")
        binary, _ = self.train("data.train=clicks.bin", name="binary")
        for key in ("table_hash", "dense_hash", "data_digest", "test"):
            self.assertEqual(binary[key], text[key])
        train = "data.train=clicks.bin"
        self.expect_error("clicks.bin has 2 numbers and 3 categories (the configuration has 2 numbers and 4 categories",
                          train, "data.categorical_columns=4")
        self.expect_error("or categories of other kinds", train, 'data.multi_hot=["C1"]')
        bits = (self.folder / "clicks.bin").read_bytes()
        (self.folder / "cut.bin").write_bytes(bits[:-100])
        self.expect_error("cut.bin", "data.train=cut.bin")
        middle = bytearray(bits)
        middle[len(bits) // 3] ^= 1
        (self.folder / "changed.bin").write_bytes(middle)
        done = self.run_it("train", "run.toml", "--run", "changed", "--set", "data.train=changed.bin")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("changed.bin", done.stderr)

    def test_accepts_long_values(self):
        lines = self.lines[:]
        lines[7] = "1\t1\t1\t" + "x" * 10_000_000 + "\tb\tc\n"
        self.write("long.tsv", lines)
        summary, output = self.train("data.train=long.tsv")
        self.assertEqual(summary["samples"], 2 * 270)
        self.assertLess(len(output), 5000)
        lines[7] = lines[7].replace("1\t1\t1\t", "1\t1\t")  # a column is missing; the error must not contain the value
        self.write("long.tsv", lines)
        self.expect_error("long.tsv:8 has 5 fields", "data.train=long.tsv")

    def test_rejects_shares_that_leave_no_samples(self):
        self.write("one.tsv", self.lines[:1])
        summary, _ = self.train("data.train=one.tsv", name="one")  # a tenth of one sample is none
        self.assertNotIn("test", summary)
        self.write("two.tsv", self.lines[:2])
        self.expect_error("has no samples for training (all are for validation and the test)", "data.train=two.tsv",
                          "data.test_share=0.45", "data.valid_share=0.45")

    def test_memory_plan_matches_peak_memory(self):
        if b"__asan_init" in pathlib.Path(PROGRAM).read_bytes():
            self.skipTest("the address sanitizer takes memory of its own: use another preset")
        draw = random.Random(3)
        self.write("many.tsv", [f"{draw.randrange(2)}\t1\t2\tv{draw.randrange(10**6)}\t{draw.randrange(99)}\tx\n"
                                for _ in range(60000)])
        common = ("data.train=many.tsv", "train.epochs=1", "train.batch_size=40000")
        for number, settings in enumerate((("model.name=dlrm", "model.dim=64"),
                                           ("model.name=dcnv2", "model.dim=128", "train.microbatches=2"),
                                           ("model.top=[2048,2048]", "train.batch_size=64", "train.steps=4"))):
            given = [s for s in common if s.split("=")[0] not in {t.split("=")[0] for t in settings}]
            if "train.steps=4" in settings:
                given.remove("train.epochs=1")
                (self.folder / "run.toml").write_text(CONFIG.replace("epochs = 2\n", ""))
            summary, output = self.train(*given, *settings, name=f"planned{number}")
            planned = float(re.search(r"^ +([0-9.]+) MiB  total on the host", output, re.MULTILINE)[1])
            taken = summary["peak_memory"]["process"] / 2**20
            self.assertGreater(taken, 150)
            self.assertGreater(planned, .7 * (taken - 40), output)
            self.assertLess(planned, 1.3 * taken, output)

    def test_rejects_settings_that_do_not_fit_the_data(self):
        self.expect_error("model.shared has 'C4'", 'model.shared=["C1,C4"]')
        self.expect_error("model.dims has 'C1'", "model.name=dcnv2", 'model.dims=["C1"]')
        self.expect_error("'C9' is not a category", 'data.multi_hot=["C9"]')


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
