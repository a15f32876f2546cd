# SPDX-License-Identifier: Apache-2.0
"""The goals of kernels: comparisons with alternatives or with a plain copy (races), and complete training."""
import shlex

from goal import CORES, CannotMeasure, Goal, all_equal, at_least, at_most
from goals_slice import early_quality, kge100k

RACE_RUNS, TRAIN_RUNS = 3, 5


def race(name):
    """Returns a function that measures the ratio of the speeds of a race, in several processes."""
    def measure(bench):
        runs = [bench.output([bench.program("bench_against"), "--json", "--threads", CORES, name])
                for _ in range(RACE_RUNS)]
        return {"ratio": [run["ratio"] for run in runs]}
    return measure


def race_goal(name, text, ratio):
    return Goal(name, text, race(name), {"ratio": at_least(ratio)})


def kge_speed(bench):
    """Uses the configuration whose quality the goal `kge-quality` measures."""
    settings = {**kge100k(bench), "data.valid": "", "data.test": "", "train.epochs": 20, "train.checkpoint_every": 0}
    runs = [bench.train("kge100k.toml", f"kernels/kge/{i}", {**settings, "run.threads": CORES})
            for i in range(TRAIN_RUNS)]
    alone = bench.train("kge100k.toml", "kernels/kge/1-thread", {**settings, "run.threads": 1})
    return {"triples/s": [run["samples_per_s"] for run in runs],
            "table hash": [run["table_hash"] for run in [*runs, alone]]}


def mf1m(bench):
    """Returns settings for the synthetic ratings mf1m, and generates these at the first call."""
    folder = bench.work / "mf1m"
    if not (folder / "test.mmc").exists():
        if bench.mf_generator is None:
            raise CannotMeasure("mf1m is missing: use --mf-generator COMMAND, which writes it")
        folder.mkdir(parents=True, exist_ok=True)
        bench.run([*shlex.split(bench.mf_generator), 20000, 2000, 1000000, 20000, 16, 7, folder])
    return {"data.folder": folder}


def mf_speed(bench):
    runs = [bench.train("mf1m.toml", f"kernels/mf/{i}", {**mf1m(bench), "run.threads": CORES})
            for i in range(TRAIN_RUNS)]
    alone = bench.train("mf1m.toml", "kernels/mf/1-thread", {**mf1m(bench), "run.threads": 1})
    return {"ratings/s": [run["samples_per_s"] for run in runs],
            "test MSE": [run["test"]["mse"] for run in runs],
            "table hash": [run["table_hash"] for run in [*runs, alone]]}


GOALS = [
    race_goal("find_hits",
              "finding keys among 32 million, load .75, all exist: 2.4 x the speed of absl::flat_hash_map", 2.4),
    race_goal("find_half_missing", "the same if half of the keys do not exist: 1.5 x", 1.5),
    race_goal("find_or_insert", "finding or inserting keys, half of them new: 5 x the speed of absl::flat_hash_map", 5),
    race_goal("unique_keys_absl",
              "distinct keys of 1 M keys, Zipf 1.05: 3.7 x the speed of absl::flat_hash_map in two shards", 3.7),
    race_goal("unique_keys_sort", "the same: 12 x the speed of sort, unique and binary search", 12),
    race_goal("gather", "gathering random rows of 256 bytes: .75 of the copy bandwidth", .75),
    race_goal("find_gather_pooled", "finding and pooling rows of 26 tables: at most 1.3 x the time of pooling alone",
              1 / 1.3),
    race_goal("push", "exact sums and row-wise Adagrad, Zipf 1.05: .6 of the copy bandwidth", .6),
    race_goal("exact_sums", "exact sums cost at most 10 % of a step", 1 / 1.1),
    race_goal("quantize_int8", "rows to int8 with residual: .7 of the copy bandwidth", .7),
    race_goal("top_k", "the largest 1 % of 16 M floats, with indices: .5 of the read bandwidth", .5),
    Goal("kge-speed", "kge100k, ComplEx, dim 100, batches of 4,096: 1.5 M triples/s on two cores", kge_speed,
         {"triples/s": at_least(1_500_000), "table hash": all_equal()}),
    Goal("kge-quality", "the same settings on FB15k-237, 5 epochs: filtered MRR of .175 on the first 2,000 validation "
         "triples", early_quality, {"valid MRR": at_least(.175)}),
    Goal("mf-speed", "mf1m, rank 32, 5 epochs: 20 M ratings/s on two cores at a test MSE of .12", mf_speed,
         {"ratings/s": at_least(20_000_000), "test MSE": at_most(.12), "table hash": all_equal()}),
]
