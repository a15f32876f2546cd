#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts faults into kernels while they are loaded, and runs the tests of these kernels, which must fail: a test that
passes with a fault would not find it. The faults are those of tests/emulator/ptx/mutation.hpp.

usage: mutations.py FOLDER    of the test programs of an emulated build

The last line is "N caught, N missed"; the exit status is 1 if any was missed.
"""
import os
import pathlib
import re
import subprocess
import sys

CASES_SECONDS = 300
SEEDS = 3  # interleavings; a race shows in some of them
KERNELS, STORES = "kernels_tests", "cache_device_tests"
# Fault, part of the kernel's name, program, cases.
MUTATIONS = (
    ("barrier", "CountTile", KERNELS, "*OnCuda/top_k"),
    ("barrier", "WriteTile", KERNELS, "*OnCuda/top_k"),
    ("barrier", "CountDigits", KERNELS, "*OnCuda/top_k"),
    ("barrier", "LinearBackward", KERNELS, "*OnCuda/linear_backward"),
    ("barrier", "pair_rows", KERNELS, "*OnCuda/distance_rows_l1"),
    ("barrier", "RadixSort", KERNELS, "*OnCuda/unique_keys"),
    ("mask", "SearchedIndex", KERNELS, "*OnCuda/find_keys"),
    ("mask", "GatherPooled", KERNELS, "*OnCuda/pooled_weighted"),
    ("mask", "SumGradients", KERNELS, "*OnCuda/sum_gradients"),
    ("mask", "TopKRows", KERNELS, "*OnCuda/top_k_rows"),
    ("atomic", "SumGradients", KERNELS, "*OnCuda/sum_gradients"),
    ("atomic", "HashRows", KERNELS, "*OnCuda/hash_rows"),
    ("event", "", STORES, "Threads/StoreRanks.*"),
)


def finds(folder, program, cases, seed, fault=None):
    """Returns whether the cases fail or hang."""
    environment = {**os.environ, "GPUPS_CASE_SEEDS": "1", "UCX_MEM_EVENTS": "no",
                   "GPUPS_EMULATOR": f"lazy=1,seed={seed},resident=4"}
    if fault:
        environment["GPUPS_EMULATOR_MUTATION"] = fault
    try:
        done = subprocess.run([folder / program, f"--gtest_filter={cases}", "--gtest_brief=1"], env=environment,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=CASES_SECONDS)
    except subprocess.TimeoutExpired:
        return True
    if re.search(r"\] 0 tests from", done.stdout) or "SKIPPED" in done.stdout:
        sys.exit(f"{program} runs no cases {cases}")
    if fault and "a fault is put into" not in done.stdout and not fault.startswith("event"):
        sys.exit(f"{cases} run no kernel for {fault}")
    return done.returncode != 0


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1]).resolve()
    caught = missed = 0
    for fault, kernel, program, cases in MUTATIONS:
        if finds(folder, program, cases, 1):
            sys.exit(f"{program} {cases} fails without a fault")
        found = any(finds(folder, program, cases, seed, f"{fault}:{kernel}") for seed in range(1, SEEDS + 1))
        caught, missed = caught + found, missed + (not found)
        print(f"{'caught' if found else 'MISSED'}: {fault} {kernel or 'of all streams'}: {cases}", flush=True)
    print(f"{caught} caught, {missed} missed")
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
