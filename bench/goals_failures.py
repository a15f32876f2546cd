# SPDX-License-Identifier: Apache-2.0
"""Goals about a rank that is lost: all others know soon, say which one it is, and can go on from a checkpoint."""
import contextlib
import dataclasses
import random
import re
import shutil
import signal
import time

from cluster_jobs import environment, last_error, namespaces, need, note, small_graph, wait_ends, wait_well
from goal import CannotMeasure, Goal, each_at_most, none, reported

RANKS, PEER_TIMEOUT_S, SLACK_S, JOIN_TIMEOUT_S = 4, 2, 2, 5
# During the join rank 0 may owe a rank an answer for 10 s, and who has been rejected has 2 s to hear why.
JOIN_BOUND_S = 10 + 2 + SLACK_S
GIVE_UP_S = 30
RESTARTS = 5
# Every epoch, of a few milliseconds, ends with a validation and a checkpoint.
SETTINGS = {"cluster__peer_timeout_s": PEER_TIMEOUT_S, "cluster__join_timeout_s": JOIN_TIMEOUT_S,
            "train__checkpoint_every": 1, "train__validate_every": 1}


@dataclasses.dataclass
class Loss:
    number: int
    kind: str  # kill, stop, cut
    victim: int
    after_s: float
    by_network: bool  # each rank on a host of its own

    def __str__(self):
        where = "four hosts" if self.by_network else "one host"
        return f"loss {self.number}: {self.kind} of rank {self.victim}, {self.after_s:.3f} s after the start, {where}"


def losses_of(count, seed):
    """Kinds in turn. A fifth of the moments is before all ranks have met, or soon after."""
    chance, made = random.Random(seed), []
    for number in range(count):
        kind = ("kill", "stop", "cut")[number % 3]
        after_s = chance.uniform(0, 0.25) if chance.random() < 0.2 else chance.uniform(0.15, 2)
        by_network = kind == "cut" or chance.random() < 0.5
        made.append(Loss(number, kind, chance.randrange(RANKS), after_s, by_network))
    return made


def inflict(loss, job, network):
    if loss.kind == "cut":
        network.cut(loss.victim)
    else:
        job.signal(loss.victim, {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}[loss.kind])


def wrong_name(line, victim, joined):
    """What is wrong with a survivor's last line, if anything."""
    during_join = "" if joined else (rf"|\branks? [\d, ]*\b{victim}\b[\d, ]* of {RANKS} did not join"
                                     + r"|\brank 0 could not be reached|\bis not rank 0 of this job" * (victim == 0))
    if re.search(rf"\brank {victim} is lost\b{during_join}", line):
        return ""
    return f"says '{line}'" if line else "says no error"


def judge(loss, job, joined, ends):
    """What is wrong with how the processes have ended."""
    bound_s, problems, codes = PEER_TIMEOUT_S + SLACK_S if joined else JOIN_BOUND_S, [], job.codes()
    for rank in range(RANKS):
        judged = rank != loss.victim or loss.kind == "cut"
        if judged and rank not in ends:
            problems.append(f"rank {rank} runs after {GIVE_UP_S} s")
        elif judged and ends[rank] > bound_s:
            problems.append(f"rank {rank} ended after {ends[rank]:.2f} s")
        if codes[rank] is not None and codes[rank] <= 0 and not (rank == loss.victim and loss.kind == "kill"):
            problems.append(f"rank {rank} ended with status {codes[rank]} and says first '{job.output(rank)[:500]}'")
        if rank != loss.victim and (wrong := wrong_name(last_error(job.output(rank)), loss.victim, joined)):
            problems.append(f"rank {rank} {wrong}")
    return problems


def suffer(graph, loss):
    """Has a job lose a rank. Returns whether all had met, the largest delay, and what went wrong."""
    with contextlib.ExitStack() as held:
        network = held.enter_context(namespaces.Network(RANKS)) if loss.by_network else None
        command = graph.command(f"loss-{loss.number}", small_graph.LONG, **SETTINGS)
        job = held.enter_context(network.job(command, cwd=graph.folder) if network else
                                 environment.job(command, RANKS, cwd=graph.folder))
        time.sleep(loss.after_s)
        ended_before = [rank for rank, code in enumerate(job.codes()) if code is not None]
        begin = time.monotonic()
        if loss.victim not in ended_before:
            inflict(loss, job, network)
        judged = [rank for rank in range(RANKS) if rank != loss.victim or loss.kind == "cut"]
        ends = wait_ends(job, judged, GIVE_UP_S, begin)
        if loss.kind == "stop" and job.codes()[loss.victim] is None:
            job.signal(loss.victim, signal.SIGCONT)
            if not wait_ends(job, [loss.victim], GIVE_UP_S, time.monotonic()):
                ends.pop(loss.victim, None)
        joined = f"{RANKS} ranks on host" in job.output(0)
        problems = [f"rank {rank} ended before that" for rank in ended_before] + judge(loss, job, joined, ends)
        if None in job.codes():
            problems.append(f"exit codes are {job.codes()}: something is left")
        if problems:
            print(f"failed    {loss}: {'; '.join(problems)}\n{job.all_output()}", flush=True)
        return joined, max(ends.values(), default=GIVE_UP_S), problems


def losses(bench):
    need(environment)
    need(namespaces)
    graph = small_graph.SmallGraph(bench.program("gpu_train"))
    note(bench, "RANK=0..3 WORLD_SIZE=4", graph.command("RUN", small_graph.LONG, **SETTINGS))
    delays, failed = {True: [], False: []}, 0
    try:
        for loss in losses_of(bench.losses, bench.seed):
            joined, delay_s, problems = suffer(graph, loss)
            delays[joined].append(delay_s)
            failed += bool(problems)
            shutil.rmtree(graph.folder / f"loss-{loss.number}", ignore_errors=True)
    finally:
        graph.remove()
    return {"losses": [bench.losses], "that failed": [failed], "seconds after a loss": delays[True] or [0.0],
            "seconds after one during the join": delays[False] or [0.0]}


def run_alone(graph, run, steps, *more):
    wait_well(graph.alone(run, steps, *more))
    return graph.summary(run)


def restart(bench):
    need(environment)
    graph, chance, right = small_graph.SmallGraph(bench.program("gpu_train")), random.Random(bench.seed), []
    try:
        for number in range(RESTARTS):
            victim, run = chance.randrange(RANKS), f"run-{number}"
            command = graph.command(run, small_graph.LONG, **SETTINGS)
            note(bench, "RANK=0..3 WORLD_SIZE=4", command)
            with environment.job(command, RANKS, cwd=graph.folder) as job:
                job.wait_for(0, "epoch 2:")
                time.sleep(chance.uniform(0, 1))
                job.signal(victim, signal.SIGKILL)
                if len(wait_ends(job, range(RANKS), GIVE_UP_S, time.monotonic())) < RANKS:
                    raise CannotMeasure(f"after the loss of rank {victim} somebody runs\n{job.all_output()}")
            for copy in ("look", "2", "4"):
                shutil.copytree(graph.folder / run, graph.folder / f"{run}-{copy}")
            # This trains nothing, and says how far the run had come when it was saved last.
            steps = run_alone(graph, f"{run}-look", 1, "--resume")["steps"] + 50
            hashes = [run_alone(graph, f"{run}-whole", steps)["table_hash"]]
            for ranks in (2, 4):
                command = graph.command(f"{run}-{ranks}", steps, "--resume")
                wait_well(environment.job(command, ranks, cwd=graph.folder))
                hashes.append(graph.summary(f"{run}-{ranks}")["table_hash"])
            print(f"restart   {number}: rank {victim} killed, saved at step {steps - 50}, then {', '.join(hashes)}")
            right.append(len(set(hashes)) == 1)
    except (RuntimeError, TimeoutError) as problem:
        raise CannotMeasure(str(problem)) from None
    finally:
        graph.remove()
    return {"restarts with the same bits": [sum(right)], "with others": [len(right) - sum(right)]}


GOALS = [
    Goal("losses", "four processes, one of them killed, stopped or cut off at a random moment (--losses of them): all "
         f"others end with an error that names it within {PEER_TIMEOUT_S} s (cluster.peer_timeout_s) + {SLACK_S} s, "
         f"and where they have not all met yet within {JOIN_BOUND_S} s", losses,
         {"losses": reported(), "that failed": none(), "seconds after a loss": each_at_most(PEER_TIMEOUT_S + SLACK_S),
          "seconds after one during the join": each_at_most(JOIN_BOUND_S)}),
    Goal("restart", f"{RESTARTS} jobs of four processes that lost one go on from the last checkpoint, with two and "
         "with four, and end with the bits of a run that lost nobody", restart,
         {"restarts with the same bits": reported(), "with others": none()}),
]
