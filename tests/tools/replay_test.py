#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs replay as a user does: on keys with a Zipf distribution, and on the trace of a run of gpu_train.

usage: replay_test.py REPLAY GPU_TRAIN
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

REPLAY, GPU_TRAIN = None, None
SMALL = ("--batch", "16", "--features", "4", "--values", "1000", "--dim", "8", "--steps", "4", "--warm-up", "3")
CONFIG = """[model]
dim = 16
[train]
steps = 24
batch_size = 32
lookahead = 24
prefetch_thread = false
[placement]
policy = "adaptive"
bytes_min = 0
[run]
device = "host"
threads = 1
ranks = 4
"""


def replay(*arguments):
    done = subprocess.run([REPLAY, *map(str, arguments)], text=True, capture_output=True)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


class ZipfKeys(unittest.TestCase):
    def lines(self, *arguments):
        code, lines, errors = replay(*SMALL, *arguments)
        self.assertEqual(code, 0, errors)
        return lines

    def test_prints_a_line_for_each_policy(self):
        lines = self.lines("--ranks", 4, "--policy", "static", "relocate", "adaptive")
        self.assertEqual([line["policy"] for line in lines], ["static", "relocate", "adaptive"])
        static, relocate, adaptive = lines
        self.assertEqual((static["moves"], static["mb_moves"], static["planning_ms"]), (0, 0, 0))
        self.assertEqual(static["memory_mb"]["directory"], min(line["memory_mb"]["directory"] for line in lines))
        for line in (relocate, adaptive):
            self.assertGreater(line["moves"], 0)
            self.assertGreater(line["planning_ms"], 0)
            self.assertGreater(line["memory_mb"]["directory"], static["memory_mb"]["directory"])
            self.assertLess(line["mb"], static["mb"])
        for line in lines:
            parts = sum(line[kind] for kind in ("mb_values", "mb_gradients", "mb_moves", "mb_keys"))
            self.assertAlmostEqual(line["mb"], parts)
            for use in ("rows", "replicas"):
                self.assertGreater(line["memory_mb"][use], 0)
            self.assertEqual(line["memory_mb"]["uses"] > 0, line["policy"] != "static")

    def test_time_is_the_sum_of_its_parts(self):
        for line in self.lines("--ranks", 4, "--message-us", 50):
            self.assertAlmostEqual(line["messages_ms"], 2 * 3 * 50 / 1e3)
            step = line["link_ms"] + line["messages_ms"] + line["planning_ms"]
            self.assertAlmostEqual(line["samples_per_s"], 4 * 16 / step * 1e3, places=3)

    def test_a_rank_with_a_larger_batch_receives_more(self):
        for equal, larger in zip(self.lines("--ranks", 4), self.lines("--ranks", 4, "--first-batch", 64)):
            self.assertGreater(larger["keys"], equal["keys"])
            self.assertGreater(larger["imbalance_received"], 1.1)
            step = larger["link_ms"] + larger["messages_ms"] + larger["planning_ms"]
            self.assertAlmostEqual(larger["samples_per_s"], (64 + 3 * 16) / step * 1e3, places=3)

    def test_names_the_longest_part(self):
        slow = {"node": ("--ranks-of-node", 4, "--node-gb-per-s", 0.001),
                "network": ("--ranks-of-node", 1, "--network-gb-per-s", 0.001),
                "messages": ("--message-us", 1e5)}
        for limit, options in slow.items():
            self.assertEqual({line["limit"] for line in self.lines("--ranks", 4, *options)}, {limit})
        fast = ("--node-gb-per-s", 1e5, "--network-gb-per-s", 1e5, "--message-us", 0)
        self.assertEqual(self.lines("--ranks", 4, "--policy", "adaptive", *fast)[0]["limit"], "planning")

    def test_names_the_number_of_ranks_where_scaling_ends(self):
        # Messages take a time that grows with the number of ranks, so samples/s hardly grow from the start.
        ends = self.lines("--ranks", 4, 8, 2, "--policy", "static", "--message-us", 1e5)
        self.assertEqual([line["ranks"] for line in ends[:3]], [2, 4, 8])
        self.assertEqual(ends[3:], [{"policy": "static", "scales_to": 2}])
        goes_on = ("--node-gb-per-s", 1e-2, "--ranks-of-node", 64, "--message-us", 0, "--own", 1)
        self.assertEqual(self.lines("--ranks", 4, 8, "--policy", "static", *goes_on)[2:],
                         [{"policy": "static", "scales_to": None}])

    def test_rejects_what_it_cannot_do(self):
        for words, arguments in (("'lazy'", ("--policy", "lazy")), ("exponent", ("--exponent", 1)),
                                 ("use one of sgd, ", ("--optimizer", "lazy")), ("--ranks", ("--ranks", 1)),
                                 ("rank-0.trace", ("--trace", "nowhere")),
                                 *((name, (name, "nan")) for name in ("--own", "--exponent", "--message-us"))):
            code, _, errors = replay(*arguments)
            self.assertEqual(code, 2)
            self.assertIn(words, errors)
            self.assertRegex(errors, r"^replay: error: .* \(.*\): ")


class TraceOfARun(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.held = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.held.name)
        facts = [f"e{s}\tby{r}\te{(s + r) % 60}\n" for s in range(60) for r in (1, 7, 20)]
        for name, some in (("train", facts[10:]), ("valid", facts[:5]), ("test", facts[5:10])):
            (cls.folder / f"{name}.txt").write_text("".join(some))
        (cls.folder / "small.toml").write_text(CONFIG)
        subprocess.run([GPU_TRAIN, "train", "small.toml", "--run", "run", "--trace-placement"], cwd=cls.folder,
                       check=True, capture_output=True)
        cls.run_folder = cls.folder / "run"
        cls.summary = json.loads((cls.run_folder / "summary.json").read_text())

    @classmethod
    def tearDownClass(cls):
        cls.held.cleanup()

    def test_replay_counts_what_the_run_sent(self):
        for folder in (self.run_folder, self.run_folder / "placement_trace"):
            code, lines, errors = replay("--trace", folder, "--policy", "adaptive", "--warm-up", 0)
            self.assertEqual(code, 0, errors)
            line, = lines
            self.assertEqual((line["ranks"], line["steps"]), (4, 24))
            rank_steps = 4 * 24
            self.assertEqual(round(line["keys"] * rank_steps), self.summary["distinct_keys"])
            self.assertEqual(round(line["moves"] * rank_steps), self.summary["moved_rows"])
            self.assertEqual(round((line["moves"] + line["reads"]) * rank_steps), self.summary["remote_keys"])
            self.assertGreater(line["moves"], 0)

    def test_more_ranks_have_the_batches_of_consecutive_steps(self):
        code, lines, errors = replay("--trace", self.run_folder, "--ranks", 4, 12, "--warm-up", 0, "--policy", "static")
        self.assertEqual(code, 0, errors)
        four, twelve, _ = lines
        self.assertEqual((four["steps"], twelve["steps"]), (24, 8))
        self.assertAlmostEqual(four["keys"], twelve["keys"])
        self.assertGreater(four["hit_rate"], twelve["hit_rate"])

    def test_has_the_staleness_of_the_run(self):
        subprocess.run([GPU_TRAIN, "train", "small.toml", "--run", "stale", "--trace-placement", "--set",
                        "placement.staleness=3"], cwd=self.folder, check=True, capture_output=True)
        counts = {}
        for given in ((), ("--staleness", 3), ("--staleness", 0)):
            code, lines, errors = replay("--trace", self.folder / "stale", "--policy", "static", "--warm-up", 0, *given)
            self.assertEqual(code, 0, errors)
            counts[given] = (lines[0]["leased"], lines[0]["reads"])
        self.assertEqual(counts[()], counts["--staleness", 3])
        self.assertGreater(counts[()][0], 0)
        self.assertEqual(counts["--staleness", 0][0], 0)

    def test_rejects_policies_for_a_run_with_late_batches(self):
        subprocess.run([GPU_TRAIN, "train", "small.toml", "--run", "late", "--trace-placement", "--set",
                        "train.lookahead=1"], cwd=self.folder, check=True, capture_output=True)
        code, lines, errors = replay("--trace", self.folder / "late")
        self.assertEqual((code, lines), (2, []))
        self.assertRegex(errors, r"train.lookahead of the run is 1 \(.*\): ")
        for given in (("--policy", "static"), ("--lookahead", 2)):
            code, lines, errors = replay("--trace", self.folder / "late", *given)
            self.assertEqual(code, 0, errors)
            self.assertGreater(lines[0]["mb"], 0)

    def test_rejects_what_the_trace_cannot_give(self):
        for words, arguments in (("multiple of 4", ("--ranks", 6)), ("the trace has 24", ("--warm-up", 24)),
                                 ("the trace has 3", ("--ranks", 32, "--warm-up", 4)), ("--batch", ("--batch", 7))):
            code, _, errors = replay("--trace", self.run_folder, *arguments)
            self.assertEqual(code, 2)
            self.assertIn(words, errors)

    def test_number_of_recorded_steps(self):
        subprocess.run([GPU_TRAIN, "train", "small.toml", "--run", "short", "--trace-placement=6"], cwd=self.folder,
                       check=True, capture_output=True)
        _, lines, _ = replay("--trace", self.folder / "short", "--warm-up", 0, "--policy", "static")
        self.assertEqual(lines[0]["steps"], 6)
        self.assertIn("trace_steps = 6", (self.folder / "short" / "config.toml").read_text())
        done = subprocess.run([GPU_TRAIN, "train", "small.toml", "--trace-placement=some"], cwd=self.folder, text=True,
                              capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--trace-placement=some", done.stderr)


if __name__ == "__main__":
    GPU_TRAIN, REPLAY = sys.argv.pop(), sys.argv.pop()
    unittest.main()
