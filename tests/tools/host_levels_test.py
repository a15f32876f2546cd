#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs kernels and models at each level of the host code that this processor has, by GPUPS_HOST_LEVEL: the tests of
kernels pass, and tables have the same bits.

usage: host_levels_test.py GPU_TRAIN KERNELS_TESTS
"""
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

GPU_TRAIN, KERNELS_TESTS = None, None
NO_OTHERS = {"data.valid": "", "data.test": ""}
GRAPH = {**NO_OTHERS, "data.train": "train.txt", "train.epochs": 3, "train.batch_size": 64}
RATINGS = {**NO_OTHERS, "data.reader": "ratings", "data.train": "ratings.txt", "train.epochs": 3}
CLICKS = {**NO_OTHERS, "data.reader": "clicks", "data.train": "clicks.tsv", "train.epochs": 2, "train.batch_size": 64}
# The settings of each model: row lengths that are and are not multiples of vectors, and the optimizers and formats
# whose kernels have vectors.
MODELS = {
    "complex": {**GRAPH, "model.dim": 100, "model.n3": 0.02, "optimizer.kind": "adagrad"},
    "distmult": {**GRAPH, "model.name": "distmult", "model.dim": 24, "optimizer.kind": "adam"},
    "rescal": {**GRAPH, "model.name": "rescal", "model.dim": 20},
    "rotate": {**GRAPH, "model.name": "rotate", "model.dim": 72, "optimizer.kind": "ftrl"},
    "transe": {**GRAPH, "model.name": "transe", "model.dim": 50, "optimizer.kind": "lamb"},
    "shared negatives": {**GRAPH, "model.sampling": "shared", "model.dim": 40},
    "bfloat16": {**GRAPH, "model.dim": 36, "model.value_type": "bfloat16", "run.ranks": 2},
    "int8": {**GRAPH, "model.dim": 64, "run.ranks": 2, "gradient_compression.codec": "int8"},
    "top k": {**GRAPH, "model.dim": 64, "run.ranks": 2, "gradient_compression.top_k": 16},
    "short": {**GRAPH, "model.dim": 32, "train.epochs": 1},
    "ratings": {**RATINGS, "model.dim": 32, "optimizer.kind": "adagrad"},
    "word vectors": {**NO_OTHERS, "data.reader": "text", "data.train": "words.txt", "model.dim": 40, "train.epochs": 2,
                     "train.batch_size": 16},
    "clicks": {**CLICKS, "model.name": "dlrm", "model.dim": 16, "dense.optimizer": "lamb"},
    "sparse dense layers": {**CLICKS, "model.name": "dcnv2", "model.dim": 12, "model.top": [128, 64], "run.ranks": 2,
                            "dense.compression": "top_k", "dense.codec": "int8"},
}


def levels():
    """Returns the levels that gpu_train --version lists, from slow to fast."""
    text = subprocess.run([GPU_TRAIN, "--version"], check=True, stdout=subprocess.PIPE, text=True).stdout
    return re.search(r"host code for: \S+ \((.*); in use: \S+\)", text).group(1).split(", ")


def write(path, lines):
    path.write_text("".join("\t".join(map(str, line)) + "\n" for line in lines))


def arguments(name, run):
    """Returns the arguments of gpu_train that train a model."""
    sets = [f"{key}={json.dumps(value)}" for key, value in MODELS[name].items()]
    return ["train", "host.toml", "--run", run, *(word for text in sets for word in ("--set", text))]


class HostLevels(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.held.name)
        draw = random.Random(7)
        facts = {(draw.randrange(200), draw.randrange(5), draw.randrange(200)) for _ in range(2000)}
        write(cls.folder / "train.txt", ([f"e{s}", f"r{r}", f"e{o}"] for s, r, o in sorted(facts)))
        ratings = {(draw.randrange(300), draw.randrange(100)) for _ in range(5000)}
        write(cls.folder / "ratings.txt", ([u, i, f"{draw.random():.3f}"] for u, i in sorted(ratings)))
        write(cls.folder / "words.txt", ([f"w{draw.randrange(60)}" for _ in range(20)] for _ in range(300)))
        write(cls.folder / "clicks.tsv", ([draw.randrange(2), *(draw.randrange(99) for _ in range(13)),
                                           *(f"{draw.randrange(50):08x}" for _ in range(26))] for _ in range(1000)))
        (cls.folder / "host.toml").write_text('[run]\ndevice = "host"\nthreads = 1\n')

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    def table_hash(self, level, name, before=(), expected=None):
        """Trains a model, with the words `before` in front of the command. Returns its hashes."""
        run = pathlib.Path(tempfile.mkdtemp(dir=self.folder)) / "run"
        done = subprocess.run([*before, GPU_TRAIN, *arguments(name, run)], cwd=self.folder, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, "GPUPS_HOST_LEVEL": level})
        self.assertEqual(done.returncode, 0, done.stderr)
        summary = json.loads((run / "summary.json").read_text())
        self.assertEqual(summary["versions"]["host_level"], expected or level)
        return [summary["table_hash"], summary.get("dense_hash")]

    def test_tables_have_the_same_bits(self):
        if len(levels()) < 2:
            self.skipTest("this processor has one level")
        for name in MODELS:
            hashes = {level: self.table_hash(level, name) for level in levels()}
            self.assertEqual(len(set(map(tuple, hashes.values()))), 1, f"{name}: {hashes}")

    def test_kernels_pass(self):
        for level in levels():
            environment = {**os.environ, "GPUPS_HOST_LEVEL": level, "UCX_MEM_EVENTS": "no"}
            done = subprocess.run([KERNELS_TESTS, "--gtest_brief=1"], env=environment, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True)
            self.assertEqual(done.returncode, 0, f"{level}:\n{done.stdout[-4000:]}")

    def test_selects_by_the_processor(self):
        emulator = shutil.which("qemu-x86_64-static") or shutil.which("qemu-x86_64")
        if emulator is None or levels()[0] != "x86-64-v3":
            self.skipTest("needs qemu-user, on x86-64, and a build with GPUPS_HOST_ARCH=portable")
        old = subprocess.run([emulator, "-cpu", "Nehalem", GPU_TRAIN, "--version"], text=True, stderr=subprocess.PIPE)
        self.assertEqual(old.returncode, 1, old.stderr)
        self.assertIn("this processor lacks AVX2", old.stderr)
        with_avx2 = self.table_hash("", "short", [emulator, "-cpu", "Haswell"], "x86-64-v3")
        self.assertEqual(with_avx2, self.table_hash(levels()[-1], "short"))

    def test_other_names_are_errors(self):
        for command in (["--version"], arguments("complex", "wrong")):
            done = subprocess.run([GPU_TRAIN, *command], cwd=self.folder, text=True, stderr=subprocess.PIPE,
                                  env={**os.environ, "GPUPS_HOST_LEVEL": "x86-64-v9"})
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertIn('GPUPS_HOST_LEVEL is "x86-64-v9"', done.stderr)
            self.assertIn(levels()[0], done.stderr)


if __name__ == "__main__":
    GPU_TRAIN, KERNELS_TESTS = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=sys.argv[:1], verbosity=2)
