# SPDX-License-Identifier: Apache-2.0
"""Ranks that are lost in the middle of what all ranks do together: how soon all others name them.

The program is work_until_lost: it does one work without end, and when a rank is lost says which, and when.
"""
import contextlib
import dataclasses
import json
import re
import signal
import subprocess
import time

import environment
import folders
import namespaces

RANKS = 4
PEER_TIMEOUT_S = 2
WITHIN_S = 40  # much longer than that, for slow machines; shorter than the store's wait_timeout_s
LOST = 3  # the program's exit status where a rank was lost
MUST_BE_LISTED = {"integers", "reduce_scatter", "top_k", "rows", "lookup", "lookups", "save", "restore", "gather"}


@dataclasses.dataclass(frozen=True)
class Way:
    """How a rank is lost. shift: so that each way meets other ranks in the same work."""
    name: str
    by_network: bool  # each rank on a host of its own; else all on this one, with all ways of the kernel
    timeout_s: float  # of the silence by which it is noticed; 0: by a closed connection
    shift: int

    def harness(self):
        """What starts its jobs."""
        return namespaces if self.by_network else environment

    def lose(self, job, network, victim):
        if self is CUT:
            network.cut(victim)
        else:
            job.signal(victim, signal.SIGSTOP if self is STOP else signal.SIGKILL)

    def reporters(self, victim):
        """Those who have to say that somebody is lost: one that is cut off has lost the others."""
        return [rank for rank in range(RANKS) if rank != victim or self is CUT]


CUT = Way("cut, four hosts", True, PEER_TIMEOUT_S, 2)
KILL_OF_HOST = Way("kill, four hosts", True, 0, 1)
KILL = Way("kill, one host", False, 0, 0)
STOP = Way("stop, one host", False, PEER_TIMEOUT_S, 3)
WAYS = [CUT, KILL_OF_HOST, KILL, STOP]


@dataclasses.dataclass
class Outcome:
    way: str
    work: str
    victim: int
    timeout_s: float
    reported_s: list  # for each who had to, from just before the loss
    ended_s: float = WITHIN_S  # likewise, until all of them had ended
    problems: list = dataclasses.field(default_factory=list)
    output: str = ""  # of all ranks, where there are problems

    def late_s(self):
        """From when the loss could be noticed until the last has said it."""
        return round(max(self.reported_s) - self.timeout_s, 3)

    def line(self):
        """As JSON."""
        shown = {name: value for name, value in dataclasses.asdict(self).items() if name != "output"}
        return json.dumps({**shown, "late_s": self.late_s()})


def works(program):
    """The names of all that ranks can be lost in."""
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()


def all_losses(program, ways=WAYS):
    """Has a rank be lost in each work in each of the ways; yields what came of each."""
    for way in ways:
        for number, work in enumerate(works(program)):
            # A checkpoint is restored once, and is soon read.
            moment_s = 0.05 if work == "restore" else 0.05 + 0.07 * (number % 10)
            yield suffer(program, work, way, (number + way.shift) % RANKS, moment_s)


def suffer(program, work, way, victim, moment_s):
    """Has a job lose a rank, so long after it is in the middle of its work."""
    outcome = Outcome(way.name, work, victim, way.timeout_s, [WITHIN_S] * len(way.reporters(victim)))
    with contextlib.ExitStack() as held:
        folder = folders.Temporary("losses")
        held.callback(folder.remove)
        network = held.enter_context(namespaces.Network(RANKS)) if way.by_network else None
        command = [program, work, PEER_TIMEOUT_S]
        job = held.enter_context(network.job(command, cwd=folder.path) if network else
                                 environment.job(command, RANKS, cwd=folder.path))
        try:
            lose_in_time(outcome, job, network, way, moment_s)
        except (RuntimeError, TimeoutError) as problem:
            outcome.problems.append(str(problem).splitlines()[0])
        if outcome.problems:
            outcome.output = job.all_output()
    return outcome


def lose_in_time(outcome, job, network, way, moment_s):
    victim = outcome.victim
    for rank in range(RANKS):
        job.wait_for(rank, "going")
    time.sleep(moment_s)
    if set(job.codes()) != {None}:
        raise RuntimeError(f"ended before rank {victim} was lost: exit codes are {job.codes()}")
    begin = time.monotonic()  # the clock by which the program says when
    way.lose(job, network, victim)
    reporters = way.reporters(victim)
    job.wait(WITHIN_S, but=set(range(RANKS)) - set(reporters))
    outcome.ended_s = round(time.monotonic() - begin, 3)
    outcome.reported_s = [judge(outcome, job, rank, begin) for rank in reporters]
    if way is STOP:
        job.signal(victim, signal.SIGCONT)  # it finds that the others are gone
    expected = -signal.SIGKILL if way in (KILL, KILL_OF_HOST) else LOST
    if (code := job.wait(WITHIN_S)[victim]) != expected:
        outcome.problems.append(f"rank {victim}, which was lost, ended with status {code}")


def judge(outcome, job, rank, begin):
    """When a rank has said who is lost. It has ended."""
    if (code := job.codes()[rank]) != LOST:
        outcome.problems.append(f"rank {rank} ended with status {code}")
    said = re.search(r"^lost at ([\d.]+): rank (\d+): (.*)$", job.output(rank), re.MULTILINE)
    if not said:
        outcome.problems.append(f"rank {rank} names nobody")
        return WITHIN_S
    # Who is cut off himself hears nobody, and may name any of them.
    if rank != outcome.victim and int(said[2]) != outcome.victim:
        outcome.problems.append(f"rank {rank} names rank {said[2]}: {said[3]}")
    return round(float(said[1]) - begin, 3)
