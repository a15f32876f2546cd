# SPDX-License-Identifier: Apache-2.0
"""Which runs of a measurement others disturbed least, by how fast the cores were meanwhile.

Neighbours of a virtual machine that share its cores' units show in no counter of it: a core is just slower while they
work. What is measured must not slow the probe down itself, as it would if two of our cores were hyperthreads of one.
"""
import contextlib
import json
import statistics
import subprocess

from goal import CannotMeasure


@contextlib.contextmanager
def watch(bench, found):
    """Appends to `found` what core_speed says of the bench's cores meanwhile."""
    with bench.on_cores():
        probe = subprocess.Popen([bench.program("core_speed")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 text=True)
    try:
        yield
    finally:
        printed = probe.communicate()[0]
    if probe.returncode != 0:
        raise CannotMeasure(f"core_speed ended with status {probe.returncode}")
    found.append(json.loads(printed))


def runs(bench, measure, *, wanted, of):
    """Calls measure() `of` times. Returns the results of the `wanted` runs in which the cores were fastest, all
    results, and how long a probe took in each run, in units of the shortest of all probes."""
    results, probes = [], []
    for _ in range(of):
        with watch(bench, probes):
            results.append(measure())
    least = min(probe["least_us"] for probe in probes)
    slow = [statistics.mean(probe["median_us"]) / least for probe in probes]
    fastest = sorted(range(of), key=lambda run: slow[run])[:wanted]
    return [results[run] for run in sorted(fastest)], results, slow
