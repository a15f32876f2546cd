# SPDX-License-Identifier: Apache-2.0
"""Selects the runs of a measurement in which the cores were fastest, so that other programs disturbed them least.

A core of a virtual machine can be slower for seconds, because of its clock or because of other virtual machines that
share its units; counters of the machine need not show it. The measured program must not slow down the probe itself, as
it would if two of its cores were hyperthreads of one core.
"""
import contextlib
import json
import statistics
import subprocess

from goal import CannotMeasure

UNDISTURBED = 1.2  # in units of the shortest probe; without disturbance, 1.14 to 1.15 was measured on one machine


@contextlib.contextmanager
def watch(bench, found):
    """Runs core_speed on the cores of the bench during the context, and appends its output to `found`."""
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
    """Returns the mean time of a probe in each run, in units of the shortest of all probes."""
    least = min(probe["least_us"] for probe in probes)
    return [statistics.mean(probe["median_us"]) / least for probe in probes]


def runs(bench, measure, *, wanted, least, most):
    """Calls measure() at least `least` times, until `wanted` runs were undisturbed, but at most `most` times. Returns
    the results of the `wanted` runs in which the cores were fastest, all results, and the slowness of each run."""
    results, probes = [], []
    while len(results) < least or (len(results) < most and
                                   sum(slow <= UNDISTURBED for slow in slowness(probes)) < wanted):
        with watch(bench, probes):
            results.append(measure())
    slow = slowness(probes)
    fastest = sorted(range(len(results)), key=lambda run: slow[run])[:wanted]
    return [results[run] for run in sorted(fastest)], results, slow
