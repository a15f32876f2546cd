#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the NumPy programs of the pages in docs on exports of small models: they compute what gpu_train computes.
Skipped (exit status 77) without NumPy.

usage: export_programs_test.py GPU_TRAIN DOCS
"""
import importlib.util
import json
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

PROGRAM = DOCS = None
COMMON = """
[run]
device = "host"
threads = 1
"""


class ExportPrograms(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)
        self.draw = random.Random(1)

    def write(self, name, lines):
        (self.folder / name).write_text("".join(f"{line}\n" for line in lines))

    def call(self, *command):
        done = subprocess.run([*map(str, command)], cwd=self.folder, capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def export(self, name, config):
        """Trains in the folder `name`, and exports to the folder `name`-export, which it returns."""
        (self.folder / f"{name}.toml").write_text(config + COMMON)
        self.call(PROGRAM, "train", f"{name}.toml", "--run", name)
        self.call(PROGRAM, "export", name, f"{name}-export")
        return f"{name}-export"

    def documented(self, page, name):
        """Writes the program that begins with the line "# NAME" on a page to a file, and returns its name."""
        [text] = re.findall(f"^```python\n(# {re.escape(name)}\n.*?)^```$", (DOCS / page).read_text(), re.M | re.S)
        (self.folder / name).write_text(text)
        return name

    def run_documented(self, page, name, *arguments):
        return self.call(sys.executable, self.documented(page, name), *arguments)

    def assert_near(self, found, wanted):
        found, wanted = ([float(word) for word in text.split()] for text in (found, wanted))
        self.assertEqual(len(found), len(wanted))
        self.assertTrue(wanted)
        for i, (a, b) in enumerate(zip(found, wanted)):
            self.assertLess(abs(a - b), 1e-4 * abs(b) + 1e-6, f"line {i}: {a}, not {b}")


class Graphs(ExportPrograms):
    def test_ranks_as_eval(self):
        triples = [f"e{s}\tr{r}\te{(s * (r + 2) + r) % 40}" for s in range(40) for r in range(4)]
        self.draw.shuffle(triples)
        for name, part in (("train", triples[:120]), ("valid", triples[120:140]), ("test", triples[140:])):
            self.write(f"{name}.txt", part)
        for model, more in (("complex", ""), ("distmult", ""), ("rescal", ""), ("transe", "norm = 1"),
                            ("transe", "norm = 2"), ("rotate", ""),
                            ("complex", 'sampling = "shared"\nreciprocal = true')):
            name = re.sub("[^a-z0-9]", "", model + more)
            out = self.export(name, f'[model]\nname = "{model}"\ndim = 8\n{more}\n[train]\nepochs = 20\n'
                                    'batch_size = 32\n')
            mrr = json.loads(self.call(PROGRAM, "eval", name))["mrr"]
            with self.subTest(model=model, settings=more):
                self.assert_near(self.run_documented("graphs.md", "graphs.py", out, "."), str(mrr))
                self.assertGreater(mrr, 0.05)


class Words(ExportPrograms):
    def test_answers_as_eval(self):
        self.write("text.txt", (" ".join(f"w{(i * 7 + j) % 30}" for j in range(20)) for i in range(300)))
        questions = (f"w{a} w{(a + 3) % 30} W{b} w{(b + 3) % 30}" for a in range(0, 30, 2) for b in range(1, 30, 4))
        self.write("questions.txt", [": of some kind", *questions, "w1 w2 w3 unknown"])
        out = self.export("words", '[data]\nreader = "text"\ntrain = "text.txt"\ntest = "questions.txt"\n[model]\n'
                                   'dim = 16\nmin_count = 1\nsubsample = 1\nwindow = 2\n[train]\nepochs = 10\n'
                                   'batch_size = 16\n[eval]\nwords_max = 28\n')
        metrics = json.loads(self.call(PROGRAM, "eval", "words"))
        self.assertGreater(metrics["left_out"], 1)
        self.assertGreater(metrics["accuracy"], 0)
        self.assert_near(self.run_documented("words.md", "words.py", out, "questions.txt"), str(metrics["accuracy"]))
        out = self.export("no-questions", '[data]\nreader = "text"\ntrain = "text.txt"\n[model]\ndim = 16\n'
                                          'min_count = 1\n[train]\nepochs = 2\n')
        self.assertGreaterEqual(float(self.run_documented("words.md", "words.py", out, "questions.txt")), 0)

    def test_words_without_vectors_are_left_out(self):
        self.write("text.txt", (" ".join([*(f"w{(i * 7 + j) % 30}" for j in range(20)), f"once{i}"])
                                for i in range(300)))
        self.write("questions.txt", ["w1 w2 w3 w4", "once1 once2 once3 once4"])
        out = self.export("held-out", '[data]\nreader = "text"\ntrain = "text.txt"\ntest_share = 0.3\n[model]\n'
                                      'dim = 16\nmin_count = 1\nsubsample = 1\n[train]\nepochs = 2\n')
        names = [line.split("\t")[1] for line in (self.folder / out / "words.tsv").read_text().splitlines()]
        self.assertLess(len(names), 300)
        self.call(PROGRAM, "export", "held-out", "vectors", "--format", "word2vec")
        vectors = (self.folder / "vectors" / "vectors.txt").read_text().splitlines()
        self.assertEqual([line.split()[0] for line in vectors[1:]], names)
        self.assertGreaterEqual(float(self.run_documented("words.md", "words.py", out, "questions.txt")), 0)


class Nodes(ExportPrograms):
    def test_finds_the_neighbours_of_nearest(self):
        self.write("edges.txt", (f"n{i} n{(i + step) % 30}" for i in range(30) for step in (1, 2)))
        out = self.export("nodes", '[data]\nreader = "edges"\ntrain = "edges.txt"\n[model]\ndim = 8\nwalks = 4\n'
                                   'walk_length = 10\n[train]\nepochs = 5\nbatch_size = 16\n')
        nearest = [line.split() for line in self.call(PROGRAM, "nearest", "nodes", "n5", "--count", 8).splitlines()]
        found = [line.split() for line in self.run_documented("nodes.md", "nodes.py", out, "n5").splitlines()]
        self.assertEqual(len(found), 29)
        wanted = [line for line in nearest if len(line) == 2]
        self.assertEqual(len(wanted), 8, nearest)
        self.assertEqual({name for _, name in found[:8]}, {name for _, name in wanted})
        for (one, _), (other, _) in zip(found, wanted):  # three digits, of which the last may be rounded
            self.assertLess(abs(float(one) - float(other)), 0.0015)

    def test_nodes_without_vectors_are_left_out(self):
        self.write("edges.txt", [*(f"n{i} n{(i + step) % 30}" for i in range(30) for step in (1, 2)),
                                 *(f"n0 leaf{i}" for i in range(20))])
        out = self.export("leaves", '[data]\nreader = "edges"\ntrain = "edges.txt"\ntest_share = 0.4\n[model]\n'
                                    'dim = 8\nwalks = 4\nwalk_length = 10\n[train]\nepochs = 3\nbatch_size = 16\n')
        names = {line.split("\t")[1] for line in (self.folder / out / "nodes.tsv").read_text().splitlines()}
        self.assertLess(len(names), 49)
        near = self.call(PROGRAM, "nearest", "leaves", "n5", "--count", 100).split()
        self.assertEqual({name for name in near if not name.replace(".", "").replace("-", "").isdigit()}, names)
        found = self.run_documented("nodes.md", "nodes.py", out, "n5").split()[1::2]
        self.assertEqual({*found, "n5"}, names)


class Ratings(ExportPrograms):
    def test_predicts_as_predict(self):
        pairs = [(r, c) for r in range(40) for c in range(20)]
        self.write("ratings.txt", (f"{r} {c * 10} {1 + (r * c) % 5}" for r, c in pairs if (r + c) % 3))
        self.write("pairs.txt", [*(f"{r} {c * 10}" for r, c in pairs), "99 10", "3 7", "99 7"])
        for biases in ("true", "false"):
            out = self.export(biases, '[data]\nreader = "ratings"\ntrain = "ratings.txt"\n[model]\ndim = 6\n'
                                      f'biases = {biases}\n[train]\nepochs = 10\nbatch_size = 64\n')
            with self.subTest(biases=biases):
                self.assert_near(self.run_documented("ratings.md", "ratings.py", out, "pairs.txt"),
                                 self.call(PROGRAM, "predict", biases, "pairs.txt"))


class Interactions(ExportPrograms):
    def test_names_without_rows_are_candidates_as_in_eval(self):
        items = {u: [f"i{(u + 3 * k * (1 + u % 2)) % 30}" for k in range(8)] for u in range(60)}
        self.write("train.txt", (" ".join([f"u{u}", *chosen[:6]]) for u, chosen in items.items()))
        # Every user has an item that training has not seen: its score is about 0.
        self.write("test.txt", (" ".join([f"u{u}", *chosen[6:], f"new{u % 3}"]) for u, chosen in items.items()))
        out = self.export("new", '[data]\nreader = "interactions"\ntrain = "train.txt"\ntest = "test.txt"\n'
                                 '[model]\nname = "ials"\ndim = 8\ninit_scale = 1e-6\n[train]\nepochs = 5\n'
                                 'batch_size = 64\n[eval]\nhits = [5]\n')
        metrics = json.loads(self.call(PROGRAM, "eval", "new"))
        self.assertLess(metrics["recall@5"], 0.9)
        self.assertGreater(metrics["recall@5"], 0.2)
        self.assert_near(self.run_documented("interactions.md", "interactions.py", out, "train.txt", "test.txt", 5),
                         f'{metrics["recall@5"]} {metrics["ndcg@5"]}')
        self.write("test.txt", ["nobody i1 i2", "u1 i5"])  # a user without a row
        out = self.export("nobody", '[data]\nreader = "interactions"\ntrain = "train.txt"\ntest = "test.txt"\n'
                                    '[model]\nname = "ials"\ndim = 8\n[train]\nbatch_size = 64\n')
        self.run_documented("interactions.md", "interactions.py", out, "train.txt", "test.txt", 5)

    def test_recommends_as_eval(self):
        items = {u: [f"i{(u + 3 * k * (1 + u % 2)) % 30}" for k in range(8)] for u in range(60)}
        self.write("train.txt", (" ".join([f"u{u}", *chosen[:6]]) for u, chosen in items.items()))
        self.write("test.txt", (" ".join([f"u{u}", *chosen[4:]]) for u, chosen in items.items()))
        for model in ("bpr", "ials"):
            out = self.export(model, f'[data]\nreader = "interactions"\ntrain = "train.txt"\ntest = "test.txt"\n'
                                     f'valid_share = 0\n[model]\nname = "{model}"\ndim = 8\n[train]\nepochs = 3\n'
                                     f'batch_size = 64\n[eval]\nhits = [5]\n')
            metrics = json.loads(self.call(PROGRAM, "eval", model))
            with self.subTest(model=model):
                self.assertGreater(metrics["recall@5"], 0)
                found = self.run_documented("interactions.md", "interactions.py", out, "train.txt", "test.txt", 5)
                self.assert_near(found, f'{metrics["recall@5"]} {metrics["ndcg@5"]}')


def sample(draw):
    """A line of two numbers, two categories, one of several values, and one of weighted values."""
    numbers = (draw.choice(["", "0.5", "-3", str(draw.randrange(1000))]) for _ in range(2))
    first, second = draw.randrange(5), draw.randrange(4)
    several = "|".join(draw.choice(["a", "b", "", "c"]) for _ in range(draw.randrange(1, 4)))
    weighted = "|".join(draw.choice(["x:0.5", "y", "z:-2", "x:3"]) for _ in range(draw.randrange(1, 4)))
    label = int(draw.random() < (0.8 if (first + second) % 2 else 0.2))
    return "\t".join([str(label), *numbers, f"v{first}", f"{second:08x}", several, draw.choice(["", weighted])])


@unittest.skipUnless(importlib.util.find_spec("xxhash"), "the keys need the package xxhash")
class Clicks(ExportPrograms):
    def test_predicts_as_predict(self):
        self.write("clicks.tsv", (sample(self.draw) for _ in range(400)))
        self.documented("recommender.md", "click_key.py")
        data = '[data]\nreader = "clicks"\ntrain = "clicks.tsv"\nnumeric_columns = 2\ncategorical_columns = 4\n' \
               'multi_hot = ["C3"]\nweighted = ["C4"]\ntest_share = 0\n'
        top = 'top = [7, 5]\ndim = 4'
        for number, (model, more) in enumerate([
                ("logistic", ""), ("logistic", 'numeric_features = "both"\nbuckets = 2\npooling = "mean"'),
                ("fm", "dim = 4"), ("fm", 'dim = 20\nnumeric_features = "buckets"\nmin_count = 30'),
                ("deepfm", top + '\npooling = "mean"'), ("deepfm", top + '\nnumeric_features = "both"'),
                ("dlrm", top + '\nbottom = [6]'),
                ("dlrm", top + '\nbottom = [6]\nwide = true\nnumeric_features = "both"'),
                ("dlrm", 'top = [5]\nbottom = []\ndim = 17\nnumeric_features = "none"'),
                ("dcnv2", top + '\ncross_layers = 2'),
                ("dcnv2", top + '\ncross_layers = 1\nwide = true\ndims = ["C2:6"]\nshared = ["C3,C1"]')]):
            name = f"{model}{number}"
            out = self.export(name, f'{data}[model]\nname = "{model}"\n{more}\n[train]\nepochs = 3\nbatch_size = 32\n')
            with self.subTest(model=model, settings=more):
                self.assert_near(self.run_documented("recommender.md", "clicks.py", out, "clicks.tsv"),
                                 self.call(PROGRAM, "predict", name, "clicks.tsv"))

    def test_biases_begin_with_the_share_of_clicks(self):
        import math
        import numpy
        self.write("clicks.tsv", (f"{int(i % 5 == 0)}\t{i}\t{'ab'[i % 2]}\t{i % 3}" for i in range(100)))
        for model, layer in (("logistic", "numbers"), ("fm", "numbers"), ("dlrm", "top.1"), ("dcnv2", "top.1")):
            deep = 'top = [4]\n[dense]\nlearning_rate = 0\n' if layer == "top.1" else "[dense]\nlearning_rate = 0\n"
            out = self.export(model, f'[data]\nreader = "clicks"\ntrain = "clicks.tsv"\nnumeric_columns = 1\n'
                                     f'categorical_columns = 2\ntest_share = 0\n[train]\nsteps = 1\n[model]\n'
                                     f'name = "{model}"\n{deep}')
            for path in sorted((self.folder / out / "dense").glob("*.bias.npy")):
                wanted = math.log(0.2 / 0.8) if path.name == f"{layer}.bias.npy" else 0
                with self.subTest(model=model, bias=path.name):
                    self.assertLess(abs(numpy.load(path) - wanted).max(), 1e-6)


if __name__ == "__main__":
    if importlib.util.find_spec("numpy") is None:
        print("skipped: NumPy is not installed (Debian: python3-numpy)")
        sys.exit(77)
    PROGRAM, DOCS = sys.argv.pop(1), pathlib.Path(sys.argv.pop(1))
    unittest.main()
