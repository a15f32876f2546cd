# SPDX-License-Identifier: Apache-2.0
"""Ranks that are lost during work of all ranks: how soon all other ranks report them.

The program is work_until_lost: it repeats one kind of work, and when a rank is lost prints which one, and when.
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
WITHIN_S = 40  # far above PEER_TIMEOUT_S, for slow machines; below the store's wait_timeout_s
LOST = 3  # the program's exit status if a rank was lost
# A connection over TCP whose peer ends in the middle of a large message: UCX 1.13 may fail one of its own assertions.
ABORTED_BY_UCX = re.compile(r"\b(tcp_ep\.c|uct_iface\.h):\d+ +Assertion ")
MUST_BE_LISTED = {"integers", "reduce_scatter", "top_k", "rows", "lookup", "lookups", "save", "restore", "gather"}


@dataclasses.dataclass(frozen=True)
class Way:
    """How a rank is lost. shift: an offset of the victim's rank, different for each way."""
    name: str
    by_network: bool  # each rank on its own host; else all on one host, with every transport of the kernel
    timeout_s: float  # seconds of silence until the loss is detected; 0: a closed connection shows it
    shift: int

    def harness(self):
        """Returns the module that starts its jobs."""
        return namespaces if self.by_network else environment

    def lose(self, job, network, victim):
        if self is CUT:
            network.cut(victim)
        else:
            job.signal(victim, signal.SIGSTOP if self is STOP else signal.SIGKILL)

    def reporters(self, victim):
        """Returns the ranks that must report a loss. A rank that is cut off must report one too."""
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
    reported_s: list  # seconds from just before the loss, for each rank that reports it
    aborted_by_ucx: int = 0  # ranks that UCX has ended, which can't report anything
    ended_s: float = WITHIN_S  # seconds from just before the loss until all these ranks have ended
    problems: list = dataclasses.field(default_factory=list)
    output: str = ""  # of all ranks, if there are problems

    def late_s(self):
        """Returns the seconds from the time at which the loss could be detected to the last report."""
        return round(max(self.reported_s) - self.timeout_s, 3)

    def line(self):
        """Returns the outcome as a line of JSON."""
        shown = {name: value for name, value in dataclasses.asdict(self).items() if name != "output"}
        return json.dumps({**shown, "late_s": self.late_s()})


def works(program):
    """Returns the names of all kinds of work."""
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()


def all_losses(program, ways=WAYS):
    """Loses a rank in each kind of work in each way, and yields the outcomes."""
    for way in ways:
        for number, work in enumerate(works(program)):
            # A checkpoint is restored only once, in a short time.
            moment_s = 0.05 if work == "restore" else 0.05 + 0.07 * (number % 10)
            yield lose_in_job(program, work, way, (number + way.shift) % RANKS, moment_s)


def lose_in_job(program, work, way, victim, moment_s):
    """Starts a job and loses a rank `moment_s` after the work has begun. Returns the outcome."""
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
    begin = time.monotonic()  # the program prints times of the same clock
    way.lose(job, network, victim)
    reporters = way.reporters(victim)
    job.wait(WITHIN_S, but=set(range(RANKS)) - set(reporters))
    outcome.ended_s = round(time.monotonic() - begin, 3)
    judged = [judge(outcome, job, rank, begin, way.by_network) for rank in reporters]
    outcome.reported_s = [seconds for seconds in judged if seconds is not None]
    if not outcome.reported_s:
        outcome.problems.append("UCX has ended all ranks that had to report the loss")
        outcome.reported_s = [WITHIN_S]
    if way is STOP:
        job.signal(victim, signal.SIGCONT)  # it detects that the others have ended
    expected = -signal.SIGKILL if way in (KILL, KILL_OF_HOST) else LOST
    if (code := job.wait(WITHIN_S)[victim]) != expected:
        outcome.problems.append(f"rank {victim}, which was lost, ended with status {code}")


def judge(outcome, job, rank, begin, by_network):
    """Returns the seconds at which a rank that has ended reported the loss; None if UCX has ended it. Adds problems to
    the outcome."""
    if by_network and job.codes()[rank] == -signal.SIGABRT and ABORTED_BY_UCX.search(job.output(rank)):
        outcome.aborted_by_ucx += 1
        return None
    if (code := job.codes()[rank]) != LOST:
        outcome.problems.append(f"rank {rank} ended with status {code}")
    report = re.search(r"^lost at ([\d.]+): rank (\d+): (.*)$", job.output(rank), re.MULTILINE)
    if not report:
        outcome.problems.append(f"rank {rank} reports no lost rank")
        return WITHIN_S
    # The rank that is cut off receives nothing, and may report any rank.
    if rank != outcome.victim and int(report[2]) != outcome.victim:
        outcome.problems.append(f"rank {rank} reports rank {report[2]}: {report[3]}")
    return round(float(report[1]) - begin, 3)
