# SPDX-License-Identifier: Apache-2.0
"""The goals of host code on any processor: each level of kernels is fast, and all give the same bits. A level is forced
by GPUPS_HOST_LEVEL. Speeds of levels are compared in one run, alternately."""
import json
import re

from goal import CORES, CannotMeasure, Goal, all_equal, at_least
from goals_kernels import mf1m
from goals_slice import kge100k

RUNS, EPOCHS = 5, 20


def levels(bench):
    """Returns the levels of the build that this processor has, from slow to fast."""
    text = bench.run_for_output([bench.program("gpu_train"), "--version"], 60)[1]
    return re.search(r"host code for: \S+ \((.*); in use: \S+\)", text).group(1).split(", ")


def slow_and_fast(bench):
    found = levels(bench)
    if len(found) < 2:
        raise CannotMeasure(f"the only level is {found[0]}: build with GPUPS_HOST_ARCH=portable, on a processor with "
                            "AVX-512")
    return found[0], found[-1]


def at_level(level):
    return {"GPUPS_HOST_LEVEL": level}


def training(config, settings_of):
    """Returns a function that trains at the slowest and the fastest level, alternately."""
    def measure(bench):
        speeds, hashes = {level: [] for level in slow_and_fast(bench)}, []
        settings = {**settings_of(bench), "run.threads": CORES, "train.epochs": EPOCHS, "train.checkpoint_every": 0}
        for i in range(RUNS):
            for level in speeds:
                run = bench.train(config, f"host/{config}-{level}-{i}", settings, env=at_level(level))
                speeds[level].append(run["samples_per_s"])
                hashes.append(run["table_hash"])
        slow, fast = speeds.values()
        return {"of the fastest level": [a / b for a, b in zip(slow, fast)], "table hash": hashes}
    return measure


def race(name):
    """Returns a function that measures the ratio of a race at the slowest level."""
    def measure(bench):
        level = levels(bench)[0]
        command = [bench.program("bench_against"), "--json", "--threads", CORES, name]
        runs = [bench.run_for_output(command, 1800, at_level(level))[1] for _ in range(3)]
        return {"ratio": [json.loads(run.splitlines()[-1])["ratio"] for run in runs]}
    return measure


def race_goal(name, text, ratio):
    return Goal(name, text, race(name), {"ratio": at_least(ratio)})


def kernels(bench):
    """Runs the tests of kernels at each level. Returns the number of those that passed."""
    passed = []
    for level in levels(bench):
        text = bench.run_for_output([bench.program("kernels_tests"), "--gtest_brief=1"], 1800, at_level(level))[1]
        passed.append(int(re.search(r"PASSED\s*\] (\d+) tests", text).group(1)))
    return {"tests": passed}


def without_evaluation(bench):
    return {**kge100k(bench), "data.valid": "", "data.test": ""}


GOALS = [
    Goal("kge", "kge100k with AVX2: .7 of the speed with AVX-512, with equal hashes",
         training("kge100k.toml", without_evaluation),
         {"of the fastest level": at_least(.7), "table hash": all_equal()}),
    Goal("mf", "mf1m with AVX2: .85 of the speed with AVX-512, with equal hashes", training("mf1m.toml", mf1m),
         {"of the fastest level": at_least(.85), "table hash": all_equal()}),
    race_goal("gather", "gathering random rows of 256 bytes with AVX2: .6 of the copy bandwidth", .6),
    Goal("kernels", "the tests of kernels at each level: all pass", kernels, {"tests": all_equal()}),
]
