#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the PyTorch functions that correspond to kernels of gpups, on the shapes of the cases of bench_kernels.

usage: bench/peers_torch.py [--device cuda:0] [--entries N] [--dim N] [--threads N] [--jsonl FILE] [--commit ID]
                            [CASE...]

Prints a line of JSON for each case, and adds it to FILE: {"case", "peer": "torch", "device", "entries", "dim",
"ns_per_entry", ...}. The cases, their PyTorch functions, and the corresponding cases of bench_kernels:

  gather        index_select of distinct rows             gather
  pooled_sum    embedding_bag, 0 to 8 entries per bag     pooled_sum
  unique_keys   unique with inverse, Zipf keys            unique_keys
  adagrad_step  Adagrad step with a sparse gradient       sum_gradients, then update_adagrad
  top_percent   topk of 1 % of the numbers, unsorted
"""
import argparse
import json
import statistics
import sys
import time

try:
    import torch
except ImportError as missing:
    sys.exit(f"peers_torch: {missing} (PyTorch is what it measures): install PyTorch for this Python")


def zipf(n, limit, device):
    """Returns n draws below `limit`; the probability of k is proportional to 1 / (k + 1)."""
    top = torch.log(torch.tensor(float(limit) + 1, dtype=torch.float64))
    return (torch.exp(top * torch.rand(n, dtype=torch.float64)).long() - 1).clamp_(0, limit - 1).to(device)


def gather(n, dim, device):
    table = torch.rand(2 * n + 1, dim, device=device)
    rows = torch.randperm(2 * n + 1)[:n].to(device)
    out = torch.empty(n, dim, device=device)
    return lambda: torch.index_select(table, 0, rows, out=out)


def pooled_sum(n, dim, device):
    table = torch.rand(n // 3 + 1, dim, device=device)
    rows = torch.randint(n // 3 + 1, (n,)).to(device)
    ends = torch.cumsum(torch.randint(0, 9, (n // 2 + 9,)), 0)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), ends[ends < n]]).to(device)
    return lambda: torch.nn.functional.embedding_bag(rows, table, offsets, mode="sum")


def unique_keys(n, dim, device):
    scramble = -7046029254386353131  # spreads the bits of a key, as a hash does
    keys = zipf(n, n // 3 + 1, "cpu").mul_(scramble).to(device)
    return lambda: torch.unique(keys, return_inverse=True)


def adagrad_step(n, dim, device):
    count = n // 4 + 1
    weight = torch.nn.Parameter(torch.rand(count, dim, device=device))
    optimizer = torch.optim.Adagrad([weight], lr=0.1)
    rows, gradients = zipf(n, count, device), torch.rand(n, dim, device=device)

    def step():
        weight.grad = torch.sparse_coo_tensor(rows[None], gradients, (count, dim), check_invariants=False)
        optimizer.step()
    return step


def top_percent(n, dim, device):
    values = torch.randn(n * dim, device=device)
    return lambda: torch.topk(values, max(1, n * dim // 100), sorted=False)


CASES = (gather, pooled_sum, unique_keys, adagrad_step, top_percent)


def median_seconds(run, device):
    """Returns the median seconds of a call, over at least seven calls and .2 seconds."""
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    for _ in range(2):
        run()
    wait()
    times = []
    while len(times) < 7 or sum(times) < 0.2:
        start = time.perf_counter()
        run()
        wait()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description="Measures PyTorch on the shapes of the cases of bench_kernels")
    parser.add_argument("--device", default="cuda:0" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--entries", type=int, default=61440)
    parser.add_argument("--dim", type=int, default=100)
    parser.add_argument("--threads", type=int, default=0, help="threads on the host; 0: the default of PyTorch")
    parser.add_argument("--jsonl", help="file to which the lines are added")
    parser.add_argument("--commit", default="")
    parser.add_argument("case", nargs="*", help="the cases to run; none: all")
    options = parser.parse_args()
    if unknown := set(options.case) - {case.__name__ for case in CASES}:
        parser.error(f"there is no case {', '.join(sorted(unknown))}: use {', '.join(c.__name__ for c in CASES)}")
    if options.threads:
        torch.set_num_threads(options.threads)
    on_gpu = options.device.startswith("cuda")
    torch.manual_seed(1)
    for case in CASES:
        if options.case and case.__name__ not in options.case:
            continue
        with torch.no_grad():
            seconds = median_seconds(case(options.entries, options.dim, options.device), options.device)
        line = json.dumps({
            "commit": options.commit, "case": case.__name__, "peer": "torch", "version": torch.__version__,
            "device": options.device if on_gpu else "host", "threads": 0 if on_gpu else torch.get_num_threads(),
            "entries": options.entries, "dim": options.dim, "ns_per_entry": seconds * 1e9 / options.entries})
        print(line, flush=True)
        if options.jsonl:
            with open(options.jsonl, "a", encoding="ascii") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
