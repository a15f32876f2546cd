#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a GoogleTest program in several processes at a time, with a time limit for all.

usage: run_shards.py [--shards N] [--seconds N] [--results FOLDER] PROGRAM

Each process is a run_cases.py with a share of the cases; GTEST_FILTER and GPUPS_CASE_SECONDS apply. Prints the output
of failed cases, then failed and skipped cases with reasons, then "N passed, N failed, N skipped". Cases that have no
outcome at the end of the time have failed. The exit status is 1 if a case failed or none passed.
"""
import argparse
import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import count_tests

RUN_CASES = pathlib.Path(__file__).resolve().parent / "run_cases.py"
END_SECONDS = 5  # until a process that was asked to end is killed


def start(program, shard, shards, results):
    """Starts a run_cases.py, and returns it with the files of its results and of its output."""
    environment = {**os.environ, "GTEST_TOTAL_SHARDS": str(shards), "GTEST_SHARD_INDEX": str(shard)}
    written = results / f"{program.name}.{shard + 1}.jsonl"
    written.unlink(missing_ok=True)
    output = open(written.with_suffix(".txt"), "w", encoding="utf-8")
    process = subprocess.Popen([sys.executable, RUN_CASES, written, program], stdin=subprocess.DEVNULL, stdout=output,
                               stderr=subprocess.STDOUT, env=environment)
    return process, written, output


def wait_all(processes, seconds):
    """Waits for processes until `seconds` have passed, then ends those that are left. Returns whether all ended in
    time. A process that no signal ends, since it waits for a GPU that hangs, is left behind."""
    deadline = time.monotonic() + seconds
    in_time = True
    for process in processes:
        try:
            process.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            in_time = False
            process.terminate()  # so that run_cases.py ends the process of the cases
    deadline = time.monotonic() + END_SECONDS
    for process in processes:
        try:
            process.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(1)
    return in_time


def outcomes(program, shards):
    """Returns (name, outcome, why) of each case. A process that failed without a failed case is one more."""
    cases = []
    for process, written, output in shards:
        output.close()
        lines = written.read_text(encoding="utf-8").splitlines() if written.exists() else []
        of_shard = count_tests.of_program(lines)
        if process.returncode != 0 and all(outcome != "failed" for _, outcome, _ in of_shard):
            of_shard.append((program.name, "failed", f"status {process.returncode}, although none of its cases failed"))
        cases += of_shard
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--shards", type=int, default=os.cpu_count(), help="processes; default: one for each core")
    parser.add_argument("--seconds", type=float, default=600, help="time limit")
    parser.add_argument("--results", type=pathlib.Path, default=pathlib.Path("."), help="folder for results")
    arguments = parser.parse_args()
    arguments.results.mkdir(parents=True, exist_ok=True)

    shards = [start(arguments.program, shard, arguments.shards, arguments.results)
              for shard in range(arguments.shards)]
    signal.signal(signal.SIGTERM, lambda number, frame: wait_all([process for process, _, _ in shards], 0))
    in_time = wait_all([process for process, _, _ in shards], arguments.seconds)
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    cases = outcomes(arguments.program, shards)
    for _, written, _ in shards:
        text = written.with_suffix(".txt").read_text(encoding="utf-8", errors="replace").splitlines()
        print("\n".join(text[:-1]), end="\n" if text[:-1] else "")  # the last line has the counts of the shard
    for name, outcome, why in cases:
        counts[outcome] += 1
        if outcome != "passed":
            print(f"{outcome}: {name}" + (f": {why}" if why else ""))
    if not in_time:
        print(f"{arguments.program.name} took longer than {arguments.seconds:g} s")
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    return 0 if counts["passed"] and not counts["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
