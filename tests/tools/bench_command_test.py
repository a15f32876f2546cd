#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs benchmarks with gpu_train: metrics are means over folds and medians over seeds, beside published results.

usage: bench_command_test.py PROGRAM
"""
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = None
CONFIG = """[data]
reader = "ratings"
train = "all.txt"
valid_share = 0
[model]
dim = 4
[train]
epochs = 2
batch_size = 32
[run]
device = "host"
threads = 1
"""
BENCH = """[bench]
data = "made up"
metrics = ["rmse", "mae"]
seeds = [5, 6, 8, 7]
folds = [["data.train=a.txt", "data.test=b.txt"], ["data.train=b.txt", "data.test=a.txt"]]
[bench.published]
"Somebody" = {rmse = 0.25}
"""


class BenchTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        for name, first in (("a", 0), ("b", 1)):
            lines = (f"{i % 30} {i * 7 % 20} {1 + i * 3 % 5}\n" for i in range(first, 400, 2))
            (self.folder / f"{name}.txt").write_text("".join(lines))

    def bench(self, section, *options, status=0):
        (self.folder / "bench.toml").write_text(CONFIG + section)
        command = [PROGRAM, "bench", "bench.toml", "--run", "out", *options]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr if status else done.stdout

    def test_prints_means_and_medians(self):
        lines = [line.split() for line in self.bench(BENCH).splitlines()]
        self.assertEqual(lines[0], ["rmse", "mae", "training", "sent"])
        means = []
        for number, seed in enumerate((5, 6, 8, 7)):
            tests = [json.loads((self.folder / f"out/seed{seed}-fold{fold}/summary.json").read_text())["test"]
                     for fold in (1, 2)]
            means.append([statistics.mean(test[metric] for test in tests) for metric in ("rmse", "mae")])
            self.assertEqual(lines[1 + number][:4], ["seed", str(seed)] + [f"{mean:.4g}" for mean in means[-1]])
        self.assertEqual(lines[5], ["median"] + [f"{statistics.median(column):.4g}" for column in zip(*means)])
        self.assertEqual(lines[6:], [["Somebody", "0.25"]])

        kept = (self.folder / "out/seed5-fold1/summary.json").stat().st_mtime_ns
        self.assertEqual([line.split() for line in self.bench(BENCH).splitlines()], lines)  # finished runs are kept
        self.assertEqual((self.folder / "out/seed5-fold1/summary.json").stat().st_mtime_ns, kept)

    def test_stopped_benchmark_goes_on(self):
        section = CONFIG.replace("epochs = 2", "epochs = 200") + BENCH.replace("5, 6, 8, 7", "5, 6")
        (self.folder / "bench.toml").write_text(section)
        command = [PROGRAM, "bench", "bench.toml", "--run", "stopped"]
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        while not (self.folder / "stopped/seed5-fold2/config.toml").exists() and process.poll() is None:
            time.sleep(.01)
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=600)
        self.assertEqual((process.returncode, out), (0, ""), err)
        self.assertIn("stopped by a signal; the same command with --run", err)
        kept = (self.folder / "stopped/seed5-fold1/summary.json").stat().st_mtime_ns
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("median", done.stdout)
        self.assertEqual((self.folder / "stopped/seed5-fold1/summary.json").stat().st_mtime_ns, kept)

    def test_settings_may_change_until_a_run_starts(self):
        good = (self.folder / "a.txt").read_text()
        (self.folder / "a.txt").write_text("no ratings\n")
        self.assertIn("run the same command again", self.bench(BENCH, status=2))
        (self.folder / "a.txt").write_text(good)
        settings = ("--set", "model.dim=5", "--set", "run.threads=2")
        self.assertEqual(self.bench(BENCH, *settings).splitlines()[-1], "Settings of the command line: model.dim=5")
        self.assertIn("with other settings", self.bench(BENCH, status=2))

    def test_rejects_what_cannot_be_measured(self):
        def reject(words, section, *options):
            self.assertIn(words, self.bench(section, *options, status=2))

        reject("has no section [bench]", "")
        reject("bench.metrics is missing", '[bench]\ndata = "x"\n')
        reject("did you mean 'seeds'", BENCH.replace("seeds", "seed"))
        reject("bench.seeds is -1", BENCH.replace("[5,", "[-1,"))
        reject("'mrr' is not a number of bench.metrics", BENCH.replace("rmse = 0.25", "mrr = 0.25"))
        reject("the test has no metric 'auc'", BENCH.replace('"mae"', '"auc"'))
        reject("a.txt is missing (the benchmark needs it; the data is: made up)", BENCH, "--set", "data.folder=/none")
        reject("model.n3 has no effect here", BENCH, "--set", "model.n3=1")


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
