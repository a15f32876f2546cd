# SPDX-License-Identifier: Apache-2.0
"""The goals of the exchange: bytes and time of sums over processes relative to MPI_Allreduce, the load of owners."""
import re
import shlex

import exchange_grid as grid
import goals_end_to_end
import goals_robust
import goals_rows
import links
import undisturbed
from goal import CannotMeasure, Goal, at_least, at_most, each_at_most, reported

RUNS = 3
LEAST, MOST = 12, 120  # runs if the cores are the bottleneck; the RUNS runs with the fastest cores count
LARGE = 16  # 2^20 elements
FIT_MS = 200
LOSSLESS_WAYS = ["sparse_allgather", "ssar_recursive_doubling", "ssar_split_allgather"]
HALF_WAYS = [f"{way}_half" for way in LOSSLESS_WAYS]
SPARDL_WAYS = ["top_k_half"]


def lines_of(bench, link_name, ranks, millions, densities, ways, run=grid.run):
    """Returns the lines of bench_exchange for these cells. Raises CannotMeasure if links cannot be set up."""
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
    """Returns {way: its lines} of 16 M elements on 4 ranks."""
    found = {}
    for line in lines_of(bench, link_name, 4, [LARGE], [density], ways):
        found.setdefault(line["way"], []).append(line)
    return found


def wire_bytes(bench):
    """The re-sparsified sum is measured in a run after others, when residuals are not empty."""
    lines = large(bench, "tcp", .01, [*HALF_WAYS, *LOSSLESS_WAYS, *SPARDL_WAYS])
    return {name: [min(lines[way][0]["wire_bytes"] for way in ways) / 1e6]
            for name, ways in (("MB, 16 bits", HALF_WAYS), ("MB, lossless", LOSSLESS_WAYS),
                               ("MB, 16 bits, re-sparsified", SPARDL_WAYS))}


def fit(bench):
    """gpups measures the links before the first sum of a job, when its ranks are connected."""
    found = {}
    for link in links.LINKS:
        printed = [line for ranks in grid.RANKS
                   for line in lines_of(bench, link.name, ranks, [1], [.01], [grid.AUTOMATIC], grid.output_of)]
        found[f"ms, {link.name}"] = [int(ms) for ms in re.findall(r"\(measured in (\d+) ms\)", "\n".join(printed))]
        if len(found[f"ms, {link.name}"]) != len(grid.RANKS):
            raise CannotMeasure(f"bench_exchange does not print how long it measured the links: {printed}")
    return found


def beside_mpi(bench):
    """Returns the time of MPI_Allreduce of all elements over that of the best way of gpups."""
    found = {}
    for density in (.01, .1):
        lines = large(bench, "1gbit", density, [grid.REFERENCE, *HALF_WAYS, grid.AUTOMATIC])
        mpi = lines[grid.REFERENCE][0]["ms"]
        found[f"times, {density:.0%}"] = [mpi / min(lines[way][0]["ms"] for way in HALF_WAYS)]
        found[f"times, {density:.0%}, lossless"] = [mpi / lines[grid.AUTOMATIC][0]["ms"]]
    return found


def push(bench):
    """Over loopback the cores are the bottleneck, and other programs slow them down by up to a half for seconds."""
    ways = {"push": "lossless", "push_half": "16 bits"}
    slow = [large(bench, "1gbit", .01, list(ways)) for _ in range(RUNS)]
    fast, all_fast, probes = undisturbed.runs(bench, lambda: large(bench, "tcp", .01, list(ways)), wanted=RUNS,
                                              least=LEAST, most=MOST)
    found = {}
    for name, runs in (("1 Gbit/s", slow), ("loopback", fast), ("loopback, all", all_fast)):
        for way, text in ways.items():
            found[f"ms, {name}, {text}"] = [run[way][0]["ms"] for run in runs]
    return {**found, "probe of the cores, loopback, all": probes}


def owners(bench):
    loads = [bench.output([bench.program("owner_load"), "--exponent", exponent]) for exponent in (1.05, 1.2)]
    return {"max / mean": [load["max_over_mean"] for load in loads],
            "max / mean of a step": [load["max_over_mean_of_worst_step"] for load in loads]}


GOALS = [
    Goal("wire", "allreduce of 16 M elements, 1 % on each of 4 ranks: 6.3 MB on the wire for all ranks together, and "
         "3.2 MB if re-sparsified", wire_bytes,
         {"MB, 16 bits": at_most(6.3), "MB, lossless": reported(), "MB, 16 bits, re-sparsified": at_most(3.2)}),
    Goal("fit", f"the costs of links are measured in {FIT_MS} ms, for 2 and 4 ranks", fit,
         {f"ms, {link.name}": each_at_most(FIT_MS) for link in links.LINKS}),
    Goal("mpi", "allreduce of 16 M elements on 4 ranks at 1 Gbit/s: 45 x faster than MPI_Allreduce at 1 %, 5 x at 10 %",
         beside_mpi,
         {"times, 1%": at_least(45), "times, 10%": at_least(5), "times, 1%, lossless": reported(),
          "times, 10%, lossless": reported()}),
    Goal("push", "reduce-scatter of 16 M elements, 1 % on each of 4 ranks: 22 ms at 1 Gbit/s, 15 ms in 16 bits, "
         f"3 ms over loopback ({RUNS} runs with the fastest cores)", push,
         {"ms, 1 Gbit/s, lossless": at_most(22), "ms, 1 Gbit/s, 16 bits": at_most(15),
          "ms, loopback, lossless": at_most(3), "ms, loopback, 16 bits": at_most(3),
          "ms, loopback, all, lossless": reported(), "ms, loopback, all, 16 bits": reported(),
          "probe of the cores, loopback, all": reported()}),
    Goal("owners", "bytes that owners receive, 4 ranks, 26 features, Zipf 1.05 and 1.2: at most 1.1 x the mean", owners,
         {"max / mean": each_at_most(1.1), "max / mean of a step": each_at_most(1.1)}),
    *goals_rows.GOALS,
    *goals_end_to_end.GOALS,
    *goals_robust.GOALS,
]
