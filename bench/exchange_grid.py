# SPDX-License-Identifier: Apache-2.0
"""The grid that bench/exchange goes through, and running a part of it."""
import dataclasses
import json

import links
from cluster_jobs import mpirun, wait_well

RANKS = (2, 4)
MILLIONS = (1, 4, 16, 64)  # of 2^20 elements
DENSITIES = (.001, .01, .05, .1, .3, .6)
MILLIONS_MAX = {"1gbit": 16}  # what is longer takes too long
REFERENCE = "mpi_dense"
AUTOMATIC = "auto"
# What "auto" cannot select: integers, the sum of one slice only, another input, sums of which a part waits, and fewer
# bits.
OTHERS = ("exact", "push", "auto_list", "top_k_half")
FEWER_BITS = "_half"
NEAR_BEST = 1.5
SECONDS = .2  # that a way is run for in a cell


@dataclasses.dataclass
class Part:
    """What one mpirun measures."""
    link: links.Link
    ranks: int
    millions: list
    densities: list
    ways: list  # names; none: all
    seconds: float  # for a way and a cell

    def command(self, program):
        def listed(values):
            return ",".join(map(str, values))
        ways = ["--way", listed(self.ways)] if self.ways else []
        return [program, "--link", self.link.name, "--elements", listed(m << 20 for m in self.millions),
                "--density", listed(self.densities), "--seconds", self.seconds,
                "--pause-ms", self.link.pause_ms, *ways]


def parts(link_names, ranks, millions, densities, ways, seconds):
    """The parts of these cells that the grid has."""
    found = []
    for link in links.LINKS:
        for count in ranks:
            lengths = [m for m in millions if m <= MILLIONS_MAX.get(link.name, m)]
            if link.name in link_names and lengths:
                found.append(Part(link, count, lengths, densities, ways, seconds))
    return found


def output_of(part, program, timeout_s):
    """All lines that it prints."""
    with links.inside(part.link) as where:
        return wait_well(mpirun.job(part.command(program), part.ranks, **where), timeout_s)[0].splitlines()


def run(part, program, timeout_s):
    """What it measures, each line a dict."""
    return [json.loads(line) for line in output_of(part, program, timeout_s) if line.startswith("{")]


def cells(lines):
    """{(link, ranks, elements, density): {way: line}}, in the order of the lines."""
    found = {}
    for line in lines:
        found.setdefault((line["link"], line["ranks"], line["elements"], line["density"]), {})[line["way"]] = line
    return found


def is_fixed(name):
    """Whether a way is an algorithm, or MPI's, that does the same as "auto"."""
    return name not in (AUTOMATIC, *OTHERS) and not name.endswith(FEWER_BITS)


def best(ways):
    """The fastest of the fixed ways; none where none was measured."""
    return min((line for name, line in ways.items() if is_fixed(name)), key=lambda line: line["ms"], default=None)


def ratio(ways):
    """How much longer "auto" takes than the best fixed way, by medians; none where one of them was not measured."""
    fastest = best(ways)
    return ways[AUTOMATIC]["ms"] / fastest["ms"] if fastest and AUTOMATIC in ways else None


def ways_near_best(lines):
    """Names of the fixed ways that take up to NEAR_BEST times the best of them in some cell, and all other ways."""
    found = {line["way"] for line in lines if not is_fixed(line["way"])}
    for ways in cells(lines).values():
        if fastest := best(ways):
            found |= {name for name, line in ways.items() if line["ms"] <= NEAR_BEST * fastest["ms"]}
    return found
