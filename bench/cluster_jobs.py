# SPDX-License-Identifier: Apache-2.0
"""Jobs of several processes for goals: the harness of tests/clusters, and what goals add to it."""
import shlex
import sys
import time

from goal import ROOT, CannotMeasure

sys.path.insert(0, str(ROOT / "tests" / "clusters"))
import environment  # noqa: E402,F401  (goals take it from here)
import folders  # noqa: E402,F401
import mpirun  # noqa: E402,F401
import namespaces  # noqa: E402,F401
import processes  # noqa: E402,F401
import slurm  # noqa: E402,F401
import small_graph  # noqa: E402,F401


def need(module):
    if missing := module.missing():
        raise CannotMeasure(f"missing: {', '.join(missing)}")


def note(bench, launcher, command):
    """For the goal's last line: how a job was started."""
    bench.commands.append(f"{launcher} {shlex.join(map(str, command))}")


def wait_well(job, timeout_s=1800):
    """All end well, or nothing can be measured."""
    with job:
        try:
            codes = job.wait(timeout_s)
        except TimeoutError as problem:
            raise CannotMeasure(str(problem)) from None
        if set(codes) != {0}:
            raise CannotMeasure(f"exit codes are {codes}\n{job.all_output()}")
        return [job.output(rank) for rank in range(job.ranks)]


def wait_ends(job, which, timeout_s, begin):
    """Seconds from `begin` until each of these processes has ended; without those that have not by then."""
    ends = {}
    while len(ends) < len(which) and time.monotonic() < begin + timeout_s:
        for index, code in enumerate(job.codes()):
            if code is not None and index in which and index not in ends:
                ends[index] = time.monotonic() - begin
        time.sleep(0.01)
    return ends


def last_error(output):
    """The line by which gpu_train says why it ended."""
    errors = [line for line in output.splitlines() if line.startswith("gpu_train: error: ")]
    return errors[-1] if errors else ""
