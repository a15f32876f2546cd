# SPDX-License-Identifier: Apache-2.0
"""Which runs of a measurement others disturbed least, by how fast the cores were meanwhile.

A core of a virtual machine can be slower for seconds, by its clock or by neighbours that share its units, and no
counter of that machine need show it. What is measured must not slow the probe down itself, as it would if two of our
cores were hyperthreads of one.
"""
import contextlib
import json
import statistics
import subprocess

from goal import CannotMeasure

UNDISTURBED = 1.2  # of the shortest probe; quiet seconds had 1.14 to 1.15 where this was written


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


def slowness(probes):
    """How long a probe took in each run, in units of the shortest of all probes."""
    least = min(probe["least_us"] for probe in probes)
    return [statistics.mean(probe["median_us"]) / least for probe in probes]


def runs(bench, measure, *, wanted, least, most):
    """Calls measure() `least` times, and on until `wanted` runs were undisturbed, but not more than `most` times.
    Returns the results of the `wanted` runs in which the cores were fastest, all results, and the slowness of each."""
    results, probes = [], []
    while len(results) < least or (len(results) < most and
                                   sum(slow <= UNDISTURBED for slow in slowness(probes)) < wanted):
        with watch(bench, probes):
            results.append(measure())
    slow = slowness(probes)
    fastest = sorted(range(len(results)), key=lambda run: slow[run])[:wanted]
    return [results[run] for run in sorted(fastest)], results, slow
