#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small graph on the emulated device: the tables have the same bits on one rank, on two threads, on two
processes, and with lazy streams and random interleavings. The loss is that of the host.

usage: training_test.py GPU_TRAIN [unittest's arguments]
"""
import os
import pathlib
import socket
import subprocess
import sys
import unittest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[2] / "clusters"))
import small_graph  # noqa: E402

GPU_TRAIN = None
STEPS = 3


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Training(unittest.TestCase):
    def setUp(self):
        self.graph = small_graph.SmallGraph(GPU_TRAIN)
        self.addCleanup(self.graph.remove)
        self.runs = 0

    def train(self, device, *options, processes=1, emulator=""):
        """Returns the summary of a run."""
        self.runs += 1
        run, port = f"run{self.runs}", str(free_port())
        started = []
        for rank in range(processes):
            environment = {**os.environ, "GPUPS_EMULATOR": emulator}
            if processes > 1:
                environment.update(RANK=str(rank), WORLD_SIZE=str(processes), MASTER_ADDR="127.0.0.1",
                                   MASTER_PORT=port)
            started.append(subprocess.Popen(self.graph.command(run, STEPS, "--device", device, *options),
                                            cwd=self.graph.folder, env=environment, stdout=subprocess.PIPE,
                                            stderr=subprocess.STDOUT, text=True))
        for process in started:
            output, _ = process.communicate(timeout=300)
            self.assertEqual(process.returncode, 0, output)
            self.assertNotIn("emulator: ", output)
        return self.graph.summary(run)

    def test_bits_are_equal_and_loss_is_that_of_host(self):
        one = self.train("cuda")
        for other in (self.train("cuda", "--ranks", "2"), self.train("cuda", processes=2),
                      self.train("cuda", emulator="lazy=1,seed=3,resident=4")):
            self.assertEqual(other["table_hash"], one["table_hash"])
        self.assertAlmostEqual(self.train("host")["loss"] / one["loss"], 1, delta=1e-6)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    GPU_TRAIN = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
