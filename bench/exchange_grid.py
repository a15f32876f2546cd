# SPDX-License-Identifier: Apache-2.0
"""The grid of bench/exchange: its cells, and functions that run a part of it."""
import dataclasses
import json

import links
from cluster_jobs import mpirun, wait_well

RANKS = (2, 4)
MILLIONS = (1, 4, 16, 64)  # lengths of vectors, in 2^20 elements
DENSITIES = (.001, .01, .05, .1, .3, .6)
MILLIONS_MAX = {"1gbit": 16}  # longer vectors take too long
REFERENCE = "mpi_dense"
AUTOMATIC = "auto"
# Ways that "auto" cannot select: integers, the sum of one slice only, another input, sums that leave a residual, and
# fewer bits.
OTHERS = ("exact", "push", "auto_list", "top_k_half")
FEWER_BITS = "_half"
NEAR_BEST = 1.5
SECONDS = .2  # time for which a way is run in a cell


@dataclasses.dataclass
class Part:
    """The cells that one mpirun measures."""
    link: links.Link
    ranks: int
    millions: list
    densities: list
    ways: list  # names; none: all
    seconds: float  # for each way in each cell

    def command(self, program):
        def listed(values):
            return ",".join(map(str, values))
        ways = ["--way", listed(self.ways)] if self.ways else []
        return [program, "--link", self.link.name, "--elements", listed(m << 20 for m in self.millions),
                "--density", listed(self.densities), "--seconds", self.seconds,
                "--pause-ms", self.link.pause_ms, *ways]


def parts(link_names, ranks, millions, densities, ways, seconds):
    """Returns the parts of the grid that contain these cells."""
    found = []
    for link in links.LINKS:
        for count in ranks:
            lengths = [m for m in millions if m <= MILLIONS_MAX.get(link.name, m)]
            if link.name in link_names and lengths:
                found.append(Part(link, count, lengths, densities, ways, seconds))
    return found


def output_of(part, program, timeout_s):
    """Runs a part, and returns all lines that it prints."""
    with links.inside(part.link) as where:
        return wait_well(mpirun.job(part.command(program), part.ranks, **where), timeout_s)[0].splitlines()


def run(part, program, timeout_s):
    """Runs a part, and returns its measurements, each line as a dict."""
    return [json.loads(line) for line in output_of(part, program, timeout_s) if line.startswith("{")]


def cells(lines):
    """Returns {(link, ranks, elements, density): {way: line}}, in the order of the lines."""
    found = {}
    for line in lines:
        found.setdefault((line["link"], line["ranks"], line["elements"], line["density"]), {})[line["way"]] = line
    return found


def is_fixed(name):
    """Returns whether a way is an algorithm, or MPI, with the same result as "auto"."""
    return name not in (AUTOMATIC, *OTHERS) and not name.endswith(FEWER_BITS)


def best(ways):
    """Returns the line of the fastest fixed way; None if none was measured."""
    return min((line for name, line in ways.items() if is_fixed(name)), key=lambda line: line["ms"], default=None)


def ratio(ways):
    """Returns the median time of "auto" over that of the best fixed way; None if one of them was not measured."""
    fastest = best(ways)
    return ways[AUTOMATIC]["ms"] / fastest["ms"] if fastest and AUTOMATIC in ways else None


def ways_near_best(lines):
    """Returns the names of the fixed ways that take up to NEAR_BEST times the best time in some cell, and of all other
    ways."""
    found = {line["way"] for line in lines if not is_fixed(line["way"])}
    for ways in cells(lines).values():
        if fastest := best(ways):
            found |= {name for name, line in ways.items() if line["ms"] <= NEAR_BEST * fastest["ms"]}
    return found
