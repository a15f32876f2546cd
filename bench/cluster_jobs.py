# SPDX-License-Identifier: Apache-2.0
"""Jobs of several processes for goals: functions on top of the harness of tests/clusters."""
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
    """Records how a job was started, for the last line of the goal's output."""
    bench.commands.append(f"{launcher} {shlex.join(map(str, command))}")


def wait_well(job, timeout_s=1800):
    """Waits for all processes, and returns their outputs. Raises CannotMeasure if one fails or the time is over."""
    with job:
        try:
            codes = job.wait(timeout_s)
        except TimeoutError as problem:
            raise CannotMeasure(str(problem)) from None
        if set(codes) != {0}:
            raise CannotMeasure(f"exit codes are {codes}\n{job.all_output()}")
        return [job.output(rank) for rank in range(job.ranks)]


def wait_ends(job, which, timeout_s, begin):
    """Returns {process: seconds from `begin` until it ended} of the processes `which`, without those still running
    after timeout_s."""
    ends = {}
    while len(ends) < len(which) and time.monotonic() < begin + timeout_s:
        for index, code in enumerate(job.codes()):
            if code is not None and index in which and index not in ends:
                ends[index] = time.monotonic() - begin
        time.sleep(0.01)
    return ends


def last_error(output):
    """Returns the last line with an error of gpu_train, or an empty string."""
    errors = [line for line in output.splitlines() if line.startswith("gpu_train: error: ")]
    return errors[-1] if errors else ""
