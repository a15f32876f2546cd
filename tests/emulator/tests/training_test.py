#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains small models on emulated devices. The tables have the same bits on one rank, on two ranks as threads, on two
processes with a device each, which NCCL connects, and with lazy streams and random interleavings. The loss is that of
the host.

usage: training_test.py GPU_TRAIN [unittest's arguments]
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clusters"))
from processes import free_port  # noqa: E402

GPU_TRAIN = None
LOSS_ERROR = 1e-6  # relative, from the loss of the host
IN_ORDER, INTERLEAVED = "devices=2", "devices=2,lazy=1,seed=3,resident=4,nccl_polls=2"

GRAPH = """[model]
dim = 16
[train]
steps = 3
batch_size = 32
microbatches = 4
"""
CLICKS = """[data]
reader = "clicks"
train = "data.txt"
numeric_columns = 2
categorical_columns = 3
[model]
name = "dcnv2"
dim = 8
top = [64, 64]
[train]
steps = 3
batch_size = 64
microbatches = 2
"""
RATINGS = """[data]
reader = "ratings"
train = "data.txt"
[model]
dim = 16
[train]
steps = 3
batch_size = 64
microbatches = 2
"""


def triples(draw):
    return "".join(f"e{draw.randrange(200)}\tr{draw.randrange(3)}\te{draw.randrange(200)}\n" for _ in range(600))


def clicks(draw):
    return "".join(f"{draw.randrange(2)}\t{draw.randrange(9)}\t{draw.random():.3f}\t{draw.randrange(50)}\t"
                   f"{draw.randrange(20)}\t{draw.randrange(7)}\n" for _ in range(600))


def ratings(draw):
    return "".join(f"{draw.randrange(60)}\t{draw.randrange(40)}\t{draw.randrange(1, 6)}\n" for _ in range(600))


class Training(unittest.TestCase):
    def setUp(self):
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)
        self.runs = 0

    def write(self, config, data):
        (self.folder / "run.toml").write_text(config)
        (self.folder / "data.txt").write_text(data(random.Random(1)))

    def train(self, settings, device, ranks=1, processes=1, emulator=IN_ORDER):
        """Returns the summary of a run. processes: each is a rank with a device of its own."""
        self.runs += 1
        run = f"run{self.runs}"
        command = [GPU_TRAIN, "train", "run.toml", "--run", run, "--device", device, "--threads", "1", "--ranks",
                   str(ranks), *[word for setting in settings for word in ("--set", setting)]]
        environment = {**os.environ, "GPUPS_EMULATOR": emulator}
        if processes > 1:
            environment.update(WORLD_SIZE=str(processes), LOCAL_WORLD_SIZE=str(processes), MASTER_ADDR="127.0.0.1",
                               MASTER_PORT=str(free_port()))
        started = [subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                    text=True, env={**environment, "RANK": str(rank), "LOCAL_RANK": str(rank)}
                                    if processes > 1 else environment) for rank in range(processes)]
        outputs = [process.communicate(timeout=300)[0] for process in started]
        for process, output in zip(started, outputs):
            self.assertEqual(process.returncode, 0, output)
            self.assertNotIn("emulator: ", output)
        if processes > 1:
            self.assertIn("NCCL", outputs[0])
        return json.loads((self.folder / run / "summary.json").read_text())

    def expect_equal_runs(self, *settings, rounds=False):
        """rounds: ranks round what they send, so only runs of equally many ranks have the same bits."""
        settings = ("data.train=data.txt", "data.valid=", "data.test=", *settings)
        threads = self.train(settings, "cuda", ranks=2)
        others = [self.train(settings, "cuda", ranks=2, emulator=INTERLEAVED),
                  self.train(settings, "cuda", processes=2),
                  self.train(settings, "cuda", processes=2, emulator=INTERLEAVED)]
        if not rounds:
            others += [self.train(settings, "cuda"), self.train(settings, "cuda", emulator=INTERLEAVED)]
        for other in others:
            self.assertEqual(other["table_hash"], threads["table_hash"])
            self.assertEqual(other.get("dense_hash"), threads.get("dense_hash"))
        of_host = self.train(settings, "host", ranks=2)["loss"]
        error = abs(threads["loss"] / of_host - 1)
        print(f"{self.id().split('.')[-1]}: relative error of the loss {error:.1e}", flush=True)
        self.assertLessEqual(error, LOSS_ERROR)

    def test_graph(self):
        self.write(GRAPH, triples)
        self.expect_equal_runs()

    def test_graph_of_each_model(self):
        self.write(GRAPH, triples)
        for model in ("transe", "distmult", "rotate"):
            with self.subTest(model):
                self.expect_equal_runs(f"model.name={model}")

    def test_graph_with_rows_of_16_bits(self):
        self.write(GRAPH, triples)
        for value_type in ("bfloat16", "float16"):
            with self.subTest(value_type):
                self.expect_equal_runs(f"model.value_type={value_type}")

    def test_graph_with_codecs(self):
        self.write(GRAPH, triples)
        for codec in ("float16", "bfloat16", "int8", "int4"):
            with self.subTest(codec):
                self.expect_equal_runs(f"gradient_compression.codec={codec}", f"refresh_compression.codec={codec}",
                                       rounds=True)

    def test_graph_with_largest_columns_and_row_filter(self):
        self.write(GRAPH, triples)
        self.expect_equal_runs("gradient_compression.top_k=4", "gradient_compression.age_max=2",
                               "refresh_compression.age_max=2", rounds=True)

    def test_clicks(self):
        self.write(CLICKS, clicks)
        self.expect_equal_runs()

    def test_clicks_of_each_precision(self):
        self.write(CLICKS, clicks)
        hashes = {}
        for precision in ("fp32", "tf32", "bfloat16"):
            settings = ("data.train=data.txt", "data.valid=", "data.test=", f"dense.precision={precision}")
            runs = [self.train(settings, "cuda"), self.train(settings, "cuda", ranks=2),
                    self.train(settings, "cuda", processes=2)]
            hashes[precision] = {run["dense_hash"] for run in runs}
            self.assertEqual(len(hashes[precision]), 1, precision)
            self.assertEqual(len({run["table_hash"] for run in runs}), 1, precision)
        self.assertEqual(len(set.union(*hashes.values())), 3)

    def test_says_why_it_trains_on_the_host(self):
        self.write(CLICKS, clicks)
        done = subprocess.run([GPU_TRAIN, "train", "run.toml", "--device", "auto", "--threads", "1"], cwd=self.folder,
                              text=True, capture_output=True, env={**os.environ, "GPUPS_EMULATOR": "devices=0"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("not on a GPU, because CUDA reports 'no CUDA-capable device is detected'", done.stderr)

    def test_clicks_with_largest_gradients_of_layers(self):
        self.write(CLICKS, clicks)
        self.expect_equal_runs("dense.compression=top_k", "dense.density=0.05", "dense.codec=bfloat16", rounds=True)

    def test_clicks_with_codecs_and_rows_of_16_bits(self):
        self.write(CLICKS, clicks)
        self.expect_equal_runs("gradient_compression.codec=int8", "model.value_type=bfloat16", rounds=True)

    def test_ratings(self):
        self.write(RATINGS, ratings)
        self.expect_equal_runs()

    def test_ratings_with_codecs_and_rows_of_16_bits(self):
        self.write(RATINGS, ratings)
        self.expect_equal_runs("gradient_compression.codec=int8", "model.value_type=float16", rounds=True)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    GPU_TRAIN = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
