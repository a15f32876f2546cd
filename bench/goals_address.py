# SPDX-License-Identifier: Apache-2.0
"""The goals of rows with one address: the counts of a round for many tables and ranks, the memory of batches that are
prepared far ahead, and the bytes of a row between ranks."""
from goal import Goal, at_least, each_at_most, none, reported

# Replicas of different tables are dropped in different steps.
WAITS_MAX, LAUNCHES_MAX = 6, 1.15
# With few batches in turn, all rows exist; with more batches than steps, each step has new rows.
LOOKAHEADS = {"known keys": 4, "new keys": 40}
# The key, its positions in the batch, and its entries in the key dictionaries and lists of both ends.
BYTES_OF_KEY = 64
AHEAD = (16, 1024)
SMALL_BATCH = 128  # samples: 1,024 batches of four ranks have some seven million keys
TRACES = {"shared keys": {"own": 0}, "half own keys": {"own": .5}}
# Sums from 2^-7 on take 4 bytes per number and not 3, and each row has a byte with its width.
LARGE = {"large gradients": {"gradient-max": .05}}


def counts(bench):
    found = {}
    for name, lookahead in LOOKAHEADS.items():
        few, many = (bench.output([bench.program("round_counts"), "--ranks", ranks, "--tables", tables,
                                   "--lookahead", lookahead]) for ranks, tables in ((2, 3), (8, 26)))
        found |= {f"waits, {name}": [many["waits"]], f"launches, {name}": [many["launches"]],
                  f"launches / those of 3 tables on 2 ranks, {name}": [many["launches"] / few["launches"]],
                  f"late keys, {name}": [few["late_keys"] + many["late_keys"]]}
    return found


def memory(bench):
    near, far = (bench.output([bench.program("zipf_steps"), "--batch", SMALL_BATCH, "--lookahead", steps])
                 for steps in AHEAD)
    keys = far["keys_announced"] - near["keys_announced"]
    return {"keys ahead": [keys], "bytes / key ahead": [(far["bytes_of_training"] - near["bytes_of_training"]) / keys],
            "bytes / key ahead, after the last step": [(far["bytes_at_end"] - near["bytes_at_end"]) / keys],
            f"MB, {AHEAD[0]} ahead": [near["bytes_of_training"] / 1e6],
            f"MB, {AHEAD[1]} ahead": [far["bytes_of_training"] / 1e6]}


def row_bytes(bench):
    found = {}
    for name, options in {**TRACES, **LARGE}.items():
        line = bench.output([bench.program("zipf_steps"), *(f"--{key}={value}" for key, value in options.items())])
        found |= {f"bytes / allowed bytes, {name}": [line["ratio"]],
                  f"MB of gradients, {name}": [line["sent"]["gradients"] / 1e6],
                  f"MB of refreshes, {name}": [line["sent"]["refreshes"] / 1e6],
                  f"late keys, {name}": [line["late_keys"]]}
    return found


def counts_limits(name):
    # A step with new keys also waits for their rows, and for the indices that grow.
    waits = each_at_most(WAITS_MAX) if name == "known keys" else reported()
    return {f"waits, {name}": waits, f"launches, {name}": reported(),
            f"launches / those of 3 tables on 2 ranks, {name}": each_at_most(LAUNCHES_MAX),
            f"late keys, {name}": none()}


def row_bytes_limits(name):
    return {f"bytes / allowed bytes, {name}": each_at_most(1) if name in TRACES else reported(),
            f"MB of gradients, {name}": reported(), f"MB of refreshes, {name}": reported(),
            f"late keys, {name}": none()}


GOALS = [
    Goal("counts", f"a rank waits at most {WAITS_MAX} times for a stream in a step with 26 tables on 8 ranks whose "
         f"keys have rows, without the waits of prepare(), and launches at most {LAUNCHES_MAX} x as often as with 3 "
         "tables on 2 ranks", counts,
         {number: limit for name in LOOKAHEADS for number, limit in counts_limits(name).items()}),
    Goal("memory", f"batches prepared {AHEAD[1]:,} steps ahead on 4 ranks take at most {BYTES_OF_KEY} bytes for each "
         f"distinct key more than batches prepared {AHEAD[0]} steps ahead", memory,
         {"keys ahead": at_least(1_000_000), "bytes / key ahead": each_at_most(BYTES_OF_KEY),
          "bytes / key ahead, after the last step": reported(),
          f"MB, {AHEAD[0]} ahead": reported(), f"MB, {AHEAD[1]} ahead": reported()}),
    Goal("bytes", "gradients and refreshes of 4 ranks with 26 x 4,096 keys of a Zipf distribution (1.05, 10 million "
         "values) per step, in rows of 64: at most 4 bytes per number and 1 bit per row, with gradients up to .005",
         row_bytes,
         {number: limit for name in (*TRACES, *LARGE) for number, limit in row_bytes_limits(name).items()}),
]
