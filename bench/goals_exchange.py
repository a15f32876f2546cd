# SPDX-License-Identifier: Apache-2.0
"""The goals of the exchange: bytes and time of sums over processes beside MPI_Allreduce, the load of owners."""
import json
import re
import shlex
import time

import exchange_grid as grid
import goals_end_to_end
import goals_robust
import goals_rows
import links
import undisturbed
from goal import CannotMeasure, Goal, at_least, at_most, each_at_most, reported

RUNS = 3
LEAST, MOST = 12, 120  # runs of what the cores bind; RUNS of them count, in which the cores were fastest
LARGE = 16  # 2^20 elements
AUTOMATIC_MOST = 1.15
GRID_MINUTES = 30
AGAIN_FROM, AGAIN = 1.1, 4  # cells above it are measured so often again; the median counts
FIT_MS = 200
LOSSLESS_WAYS = ["sparse_gather", "sparse_doubling", "sparse_owners"]
HALF_WAYS = [f"{way}_half" for way in LOSSLESS_WAYS]
RESPARSIFIED_WAYS = ["top_k_half"]


def lines_of(bench, link_name, ranks, millions, densities, ways, run=grid.run):
    """What bench_exchange measures of these, or nothing can be measured."""
    if missing := links.missing():
        raise CannotMeasure(f"missing: {', '.join(missing)}")
    program = bench.program("bench_exchange")
    found = []
    for part in grid.parts([link_name], [ranks], millions, densities, ways, grid.SECONDS):
        command = shlex.join(map(str, part.command(program)))
        bench.commands.append(f"mpirun -n {ranks} {command}, across {part.link.text}")
        with bench.on_cores():
            found += run(part, program, timeout_s=1800)
    return found


def large(bench, link_name, density, ways):
    """{way: its lines}, of 16 M elements on 4 ranks."""
    found = {}
    for line in lines_of(bench, link_name, 4, [LARGE], [density], ways):
        found.setdefault(line["way"], []).append(line)
    return found


def wire_bytes(bench):
    """Re-sparsified, those of a run after others, when elements have been waiting."""
    lines = large(bench, "tcp", .01, [*HALF_WAYS, *LOSSLESS_WAYS, *RESPARSIFIED_WAYS])
    return {name: [min(lines[way][0]["wire_bytes"] for way in ways) / 1e6]
            for name, ways in (("MB, 16 bits", HALF_WAYS), ("MB, lossless", LOSSLESS_WAYS),
                               ("MB, 16 bits, re-sparsified", RESPARSIFIED_WAYS))}


def fit(bench):
    """Before the first sum of a job, once its ranks are connected, where nothing is known of the links."""
    found = {}
    for link in links.LINKS:
        said = [line for ranks in grid.RANKS
                for line in lines_of(bench, link.name, ranks, [1], [.01], [grid.AUTOMATIC], grid.output_of)]
        found[f"ms, {link.name}"] = [int(ms) for ms in re.findall(r"\(measured in (\d+) ms\)", "\n".join(said))]
        if len(found[f"ms, {link.name}"]) != len(grid.RANKS):
            raise CannotMeasure(f"bench_exchange does not say how long it measured the links: {said}")
    return found


def beside_mpi(bench):
    """How many times faster than MPI_Allreduce of all elements the best of ours is."""
    found = {}
    for density in (.01, .1):
        lines = large(bench, "1gbit", density, [grid.REFERENCE, *HALF_WAYS, grid.AUTOMATIC])
        mpi = lines[grid.REFERENCE][0]["ms"]
        found[f"times, {density:.0%}"] = [mpi / min(lines[way][0]["ms"] for way in HALF_WAYS)]
        found[f"times, {density:.0%}, lossless"] = [mpi / lines[grid.AUTOMATIC][0]["ms"]]
    return found


def automatic(bench):
    """The whole grid, and again what is near the bound; bench/exchange --table makes a page of its lines."""
    file = bench.work / "exchange.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("")
    found = {f"ratio, {link.name}": [] for link in links.LINKS}
    medians = []
    again, grid_s = 0, 0.0
    for link in links.LINKS:
        for ranks in grid.RANKS:
            begin = time.monotonic()
            lines = lines_of(bench, link.name, ranks, grid.MILLIONS, grid.DENSITIES, [])
            grid_s += time.monotonic() - begin
            for cell, ways in grid.cells(lines).items():
                runs = sure_runs(bench, cell, ways)
                again += len(runs) > 1
                median = sorted(runs, key=grid.ratio)[len(runs) // 2]
                found[f"ratio, {link.name}"].append(grid.ratio(median))
                medians.append(grid.ratio_of_medians(median))
                with file.open("a") as out:
                    out.writelines(json.dumps(line) + "\n" for line in median.values())
    return {**found, "of medians, highest": [max(medians)], "cells measured again": [again],
            "minutes of the grid": [grid_s / 60]}


def sure_runs(bench, cell, ways):
    """Of one cell; more than one where the first is near the bound or above it, as what else the machine does can make
    it."""
    runs = [ways]
    if grid.ratio(ways) > AGAIN_FROM:
        link, ranks, elements, density = cell
        names = [name for name in ways if grid.is_fixed(name)] + [grid.AUTOMATIC]
        for _ in range(AGAIN):
            lines = lines_of(bench, link, ranks, [elements >> 20], [density], names)
            runs += [{**ways, **again} for again in grid.cells(lines).values()]
    return runs


def push(bench):
    """Loopback is bound by the cores, which others slow down by up to a half for seconds."""
    ways = {"push": "lossless", "push_half": "16 bits"}
    slow = [large(bench, "1gbit", .01, list(ways)) for _ in range(RUNS)]
    fast, all_fast, probes = undisturbed.runs(bench, lambda: large(bench, "tcp", .01, list(ways)), wanted=RUNS,
                                              least=LEAST, most=MOST)
    found = {}
    for name, runs in (("1 Gbit/s", slow), ("loopback", fast), ("loopback, all", all_fast)):
        for way, text in ways.items():
            found[f"ms, {name}, {text}"] = [run[way][0]["ms"] for run in runs]
    return {**found, "loopback, all, a probe of the cores": probes}


def owners(bench):
    loads = [bench.output([bench.program("owner_load"), "--exponent", exponent]) for exponent in (1.05, 1.2)]
    return {"max / mean": [load["max_over_mean"] for load in loads],
            "max / mean of a step": [load["max_over_mean_of_worst_step"] for load in loads]}


GOALS = [
    Goal("wire", "allreduce of 16 M elements, 1 % on each of 4 ranks: 6.3 MB on the wire, all ranks together, and "
         "re-sparsified 3.2", wire_bytes,
         {"MB, 16 bits": at_most(6.3), "MB, lossless": reported(), "MB, 16 bits, re-sparsified": at_most(3.2)}),
    Goal("fit", f"what links cost is measured in {FIT_MS} ms, for 2 and 4 ranks", fit,
         {f"ms, {link.name}": each_at_most(FIT_MS) for link in links.LINKS}),
    Goal("mpi", "the same at 1 Gbit/s: 45 x faster than MPI_Allreduce at 1 %, 5 x at 10 %", beside_mpi,
         {"times, 1%": at_least(45), "times, 10%": at_least(5), "times, 1%, lossless": reported(),
          "times, 10%, lossless": reported()}),
    Goal("auto", "the automatic choice takes 1.15 x the best of MPI_Allreduce and every algorithm of ours, in the "
         f"whole grid, which takes {GRID_MINUTES} minutes", automatic,
         {"of medians, highest": reported(), "cells measured again": reported(),
          "minutes of the grid": at_most(GRID_MINUTES),
          **{f"ratio, {link.name}": each_at_most(AUTOMATIC_MOST) for link in links.LINKS}}),
    Goal("push", "sums of 16 M elements, 1 % on each of 4 ranks, to their owners: 22 ms at 1 Gbit/s, 15 ms in 16 bits, "
         f"3 ms over loopback ({RUNS} runs with the fastest cores)", push,
         {"ms, 1 Gbit/s, lossless": at_most(22), "ms, 1 Gbit/s, 16 bits": at_most(15),
          "ms, loopback, lossless": at_most(3), "ms, loopback, 16 bits": at_most(3),
          "ms, loopback, all, lossless": reported(), "ms, loopback, all, 16 bits": reported(),
          "loopback, all, a probe of the cores": reported()}),
    Goal("owners", "bytes that owners receive, 4 ranks, 26 features, Zipf 1.05 and 1.2: at most 1.1 x the mean", owners,
         {"max / mean": each_at_most(1.1), "max / mean of a step": each_at_most(1.1)}),
    *goals_rows.GOALS,
    *goals_end_to_end.GOALS,
    *goals_robust.GOALS,
]
