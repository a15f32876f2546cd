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
KEYS = ("--batch", "16", "--features", "4", "--values", "1000", "--dim", "8")
SMALL = (*KEYS, "--steps", "4", "--warm-up", "3")
NARROW = ("--bytes-min", "0")  # narrow rows move, too
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
        lines = self.lines("--ranks", 4, "--policy", "static", "relocate", "adaptive", "static", *NARROW)
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

    def test_adaptive_leaves_narrow_rows_at_home(self):
        # A value and a gradient take 8 x 8 bytes.
        for moves, options in ((False, ()), (False, ("--bytes-min", 65)), (True, ("--bytes-min", 64)),
                               (True, ("--ranks-of-node", 2)), (False, ("--ranks-of-node", 2, "--bytes-min", 65))):
            adaptive, relocate = self.lines("--policy", "adaptive", "relocate", *options)
            self.assertEqual(adaptive["moves"] > 0, moves, options)
            self.assertGreater(relocate["moves"], 0)

    def test_names_the_longest_part(self):
        slow = {"node": ("--ranks-of-node", 4, "--node-gb-per-s", 0.001),
                "network": ("--ranks-of-node", 1, "--network-gb-per-s", 0.001),
                "messages": ("--message-us", 1e5)}
        for limit, options in slow.items():
            self.assertEqual({line["limit"] for line in self.lines("--ranks", 4, *options)}, {limit})
        fast = ("--node-gb-per-s", 1e5, "--network-gb-per-s", 1e5, "--message-us", 0)
        self.assertEqual(self.lines("--ranks", 4, "--policy", "adaptive", *NARROW, *fast)[0]["limit"], "planning")

    def test_names_the_number_of_ranks_where_scaling_ends(self):
        # Messages take a time that grows with the number of ranks, so samples/s hardly grow from the start.
        ends = self.lines("--ranks", 4, 8, 2, "--policy", "static", "--message-us", 1e5)
        self.assertEqual([line["ranks"] for line in ends[:3]], [2, 4, 8])
        self.assertEqual(ends[3:], [{"policy": "static", "scales_to": 2}])
        goes_on = ("--node-gb-per-s", 1e-2, "--ranks-of-node", 64, "--message-us", 0, "--own", 1)
        self.assertEqual(self.lines("--ranks", 4, 8, "--policy", "static", *goes_on)[2:],
                         [{"policy": "static", "scales_to": None}])

    def test_rejects_what_it_cannot_do(self):
        for words, arguments in (("static, relocate, adaptive, random, het)", ("--policy", "lazy")),
                                 ("'HET'", ("--policy", "HET")), ("auto was given", ("--policy", "auto")),
                                 ("1.5 is not in 0 to 1", ("--own", 1.5)), ("exponent", ("--exponent", 1)),
                                 ("no folder nowhere", ("--trace", "nowhere")),
                                 ("use one of sgd, ", ("--optimizer", "lazy")), ("--ranks", ("--ranks", 1)),
                                 *((name, (name, "nan")) for name in ("--own", "--exponent", "--message-us"))):
            code, _, errors = replay(*arguments)
            self.assertEqual(code, 2)
            self.assertIn(words, errors)
            self.assertRegex(errors, r"^replay: error: .* \(.*\): ")


class Het(unittest.TestCase):
    """The protocol of HET, on keys with a Zipf distribution."""

    def line(self, *arguments):
        code, lines, errors = replay(*KEYS, "--steps", 20, "--policy", "het", *arguments)
        self.assertEqual((code, len(lines)), (0, 1), errors)
        return lines[0]

    def test_prints_a_line_for_each_cache(self):
        code, lines, errors = replay(*SMALL, "--policy", "static", "het", "--cache", "tinylfu", "lru", "lfu", "lru")
        self.assertEqual(code, 0, errors)
        static, *hets = lines
        self.assertEqual([(line["policy"], line.get("cache")) for line in lines],
                         [("static", None), ("het", "tinylfu"), ("het", "lru"), ("het", "lfu")])
        value = gradient = 8 * 4
        for line in hets:
            self.assertEqual((line["read_bound"], line["write_bound"], line["cache_fraction"]), (10, 10, .1))
            self.assertEqual((line["keys"], line["ranks"], line["steps"]), (static["keys"], 4, 4))
            self.assertAlmostEqual(line["mb"], line["mb_values"] + line["mb_gradients"] + line["mb_keys"])
            others = static["reads"]
            self.assertAlmostEqual(line["cached"] + line["reads"], others)
            self.assertAlmostEqual(line["hit_rate"], 1 - line["reads"] / line["keys"])
            self.assertAlmostEqual(line["mb_values"], line["reads"] * value / 1e6)
            self.assertAlmostEqual(line["mb_gradients"], line["updates"] * gradient / 1e6)
            self.assertAlmostEqual(line["mb_keys"], (others + line["reads"] + line["updates"]) * 16 / 1e6)
            self.assertAlmostEqual(line["mb_plain"], static["mb_values"] + static["mb_gradients"] + others * 16 / 1e6)
            self.assertAlmostEqual(line["memory_mb"]["rows"], static["memory_mb"]["rows"])
            self.assertGreater(line["cached"], 0)
            self.assertGreater(line["link_ms"], 0)
            # What HET does not have. The rest has the names of the other policies.
            self.assertEqual(static.keys() - line.keys(), {"mb_moves", "leased", "moves", "keys_planned_per_s",
                                                           "planning_ms"})
            self.assertEqual(line.keys() - static.keys(), {"cache", "cache_fraction", "read_bound", "write_bound",
                                                           "mb_plain", "cached", "updates"})

    def test_each_option_changes_what_is_sent(self):
        usual = self.line("--exponent", .8)
        self.assertGreater(usual["mb_values"], self.line("--exponent", .8, "--read-bound", 1000)["mb_values"])
        self.assertLess(usual["mb_gradients"], self.line("--exponent", .8, "--write-bound", 0)["mb_gradients"])
        for cache in ("lfu", "tinylfu"):
            self.assertNotEqual(usual["cached"], self.line("--exponent", .8, "--cache", cache)["cached"])
        large = self.line("--exponent", .8, "--cache-fraction", 1)
        self.assertGreater(large["hit_rate"], usual["hit_rate"])
        # A line has a value, a gradient and three numbers of 8 bytes, and a cache a tenth of 1000 lines.
        self.assertAlmostEqual(usual["memory_mb"]["cache"], 100 * (8 * 8 + 24) / 1e6)
        self.assertGreater(large["memory_mb"]["cache"], usual["memory_mb"]["cache"])

    def test_without_staleness_it_pushes_every_update(self):
        line = self.line("--read-bound", 0, "--write-bound", 0, "--cache-fraction", 1)
        self.assertAlmostEqual(line["updates"], line["cached"] + line["reads"])

    def test_names_the_number_of_ranks_where_scaling_ends(self):
        code, lines, errors = replay(*SMALL, "--ranks", 2, 4, "--policy", "het", "--cache", "lru", "lfu",
                                     "--message-us", 1e5)
        self.assertEqual(code, 0, errors)
        self.assertEqual([line["cache"] for line in lines[:4]], ["lru", "lfu"] * 2)
        self.assertEqual(lines[4:], [{"policy": "het", "cache": cache, "scales_to": 2} for cache in ("lru", "lfu")])

    def test_rejects_what_does_not_go_together(self):
        het = ("--policy", "het")
        for words, arguments in (*((name, (name, value)) for name, value in (
                                     ("--read-bound", 1), ("--write-bound", 1), ("--cache", "lru"),
                                     ("--cache-fraction", .1))),
                                 ("--staleness was given", (*het, "--staleness", 3)),
                                 ("use one of", (*het, "--cache", "fifo")),
                                 *((name, (*het, name, 5)) for name in ("--lookahead", "--between-nodes",
                                                                        "--bytes-min")),
                                 *((name, (*het, name, value)) for name, value in (
                                     ("--read-bound", -1), ("--write-bound", -1), ("--cache-fraction", 0),
                                     ("--cache-fraction", 1.5), ("--cache-fraction", "nan")))):
            code, lines, errors = replay(*arguments)
            self.assertEqual((code, lines), (2, []))
            self.assertIn(words, errors)
            self.assertRegex(errors, r"^replay: error: .* \(.*\): ")
        code, _, errors = replay(*SMALL, "--policy", "static", "het", "--staleness", 3)
        self.assertEqual(code, 0, errors)


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

    def test_has_the_hosts_and_the_narrow_rows_of_the_run(self):
        for name, *given in (("hosts", "placement.ranks_per_host=2"), ("narrow", "placement.bytes_min=100000"),
                             ("static", "placement.policy=static")):
            settings = [word for setting in given for word in ("--set", setting)]
            subprocess.run([GPU_TRAIN, "train", "small.toml", "--run", name, "--trace-placement", *settings],
                           cwd=self.folder, check=True, capture_output=True)

        def line(name, *arguments):
            code, lines, errors = replay("--trace", self.folder / name, "--policy", "adaptive", "--warm-up", 0,
                                         *arguments)
            self.assertEqual(code, 0, errors)
            return lines[0]

        summary = json.loads((self.folder / "hosts" / "summary.json").read_text())
        hosts = line("hosts")
        self.assertEqual(round(hosts["moves"] * 4 * 24), summary["moved_rows"])
        self.assertGreater(hosts["mb_network"], 0)
        self.assertEqual(line("hosts", "--ranks-of-node", 4)["mb_network"], 0)
        self.assertEqual(line("narrow")["moves"], 0)
        self.assertGreater(line("narrow", "--bytes-min", 0)["moves"], 0)
        # The keys do not depend on the policy of the run.
        self.assertEqual(line("static")["moves"], line("run")["moves"])

    def test_a_run_of_one_rank_needs_ranks(self):
        subprocess.run([GPU_TRAIN, "train", "small.toml", "--run", "alone", "--trace-placement", "--set", "run.ranks=1",
                        "--set", "placement.policy=adaptive"], cwd=self.folder, check=True, capture_output=True)
        code, lines, errors = replay("--trace", self.folder / "alone", "--warm-up", 0)
        self.assertEqual((code, lines), (2, []))
        self.assertRegex(errors, r"a run with one rank \(.*\): give --ranks")
        code, lines, errors = replay("--trace", self.folder / "alone", "--warm-up", 0, "--ranks", 4, "--lookahead", 4)
        self.assertEqual(code, 0, errors)
        self.assertGreater(lines[1]["moves"], 0)

    def test_more_ranks_have_the_batches_of_consecutive_steps(self):
        code, lines, errors = replay("--trace", self.run_folder, "--ranks", 4, 12, "--warm-up", 0, "--policy", "static")
        self.assertEqual(code, 0, errors)
        four, twelve, _ = lines
        self.assertEqual((four["steps"], twelve["steps"]), (24, 8))
        self.assertAlmostEqual(four["keys"], twelve["keys"])
        self.assertGreater(four["hit_rate"], twelve["hit_rate"])

    def test_caches_have_a_fraction_of_the_rows_of_the_trace(self):
        code, lines, errors = replay("--trace", self.run_folder, "--warm-up", 0, "--policy", "static", "het",
                                     "--cache-fraction", .1)
        self.assertEqual(code, 0, errors)
        static, line = lines
        self.assertEqual((line["ranks"], line["steps"]), (4, 24))
        self.assertAlmostEqual(line["cached"] + line["reads"], static["reads"])
        # Tables of 60 entities and 3 relations, all of which are used, with 16 floats or more in a row.
        entities = 6
        self.assertGreaterEqual(line["memory_mb"]["cache"], entities * (2 * 16 * 4 + 24) / 1e6)
        self.assertLess(line["memory_mb"]["cache"], 2 * (entities + 1) * (2 * 32 * 4 + 24) / 1e6)
        # More ranks use the same rows.
        code, lines, errors = replay("--trace", self.run_folder, "--warm-up", 0, "--policy", "het", "--ranks", 12)
        self.assertEqual(code, 0, errors)
        self.assertAlmostEqual(lines[0]["memory_mb"]["cache"], line["memory_mb"]["cache"])

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
