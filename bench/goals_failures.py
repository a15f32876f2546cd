# SPDX-License-Identifier: Apache-2.0
"""Goals about lost ranks: all other ranks end soon with an error that names the lost rank, and the job can continue
from a checkpoint."""
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
# During the join rank 0 may take 10 s to answer a rank, and a rejected rank has 2 s to receive the reason.
JOIN_BOUND_S = 10 + 2 + SLACK_S
GIVE_UP_S = 30
RESTARTS = 5
# Every epoch takes a few milliseconds, and ends with a validation and a checkpoint.
SETTINGS = {"cluster__peer_timeout_s": PEER_TIMEOUT_S, "cluster__join_timeout_s": JOIN_TIMEOUT_S,
            "train__checkpoint_every": 1, "train__validate_every": 1}


@dataclasses.dataclass
class Loss:
    number: int
    kind: str  # kill, stop, cut
    victim: int
    after_s: float
    by_network: bool  # each rank on its own host (network namespace)

    def __str__(self):
        where = "four hosts" if self.by_network else "one host"
        return f"loss {self.number}: {self.kind} of rank {self.victim}, {self.after_s:.3f} s after the start, {where}"


def losses_of(count, seed):
    """Returns losses of all kinds in turn. A fifth of them occur during the join or soon after it."""
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
    """Returns what is wrong with the last error of a surviving rank, or an empty string."""
    during_join = "" if joined else (rf"|\branks? [\d, ]*\b{victim}\b[\d, ]* of {RANKS} did not join"
                                     + r"|\brank 0 could not be reached|\bis not rank 0 of this job" * (victim == 0))
    if re.search(rf"\brank {victim} is lost\b{during_join}", line):
        return ""
    return f"prints '{line}'" if line else "prints no error"


def judge(loss, job, joined, ends):
    """Returns what is wrong with the way the processes have ended."""
    bound_s, problems, codes = PEER_TIMEOUT_S + SLACK_S if joined else JOIN_BOUND_S, [], job.codes()
    for rank in range(RANKS):
        judged = rank != loss.victim or loss.kind == "cut"
        if judged and rank not in ends:
            problems.append(f"rank {rank} still runs after {GIVE_UP_S} s")
        elif judged and ends[rank] > bound_s:
            problems.append(f"rank {rank} ended after {ends[rank]:.2f} s")
        if codes[rank] is not None and codes[rank] <= 0 and not (rank == loss.victim and loss.kind == "kill"):
            problems.append(f"rank {rank} ended with status {codes[rank]}, and its output begins with "
                            f"'{job.output(rank)[:500]}'")
        if rank != loss.victim and (wrong := wrong_name(last_error(job.output(rank)), loss.victim, joined)):
            problems.append(f"rank {rank} {wrong}")
    return problems


def suffer(graph, loss):
    """Runs a job that loses a rank. Returns whether all ranks had joined, the largest delay, and what went wrong."""
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
        problems = [f"rank {rank} ended before the loss" for rank in ended_before] + judge(loss, job, joined, ends)
        if None in job.codes():
            problems.append(f"exit codes are {job.codes()}: a process still runs")
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
    return {"losses": [bench.losses], "failed losses": [failed], "seconds after a loss": delays[True] or [0.0],
            "seconds after a loss during the join": delays[False] or [0.0]}


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
                    raise CannotMeasure(f"after the loss of rank {victim} a process still runs\n{job.all_output()}")
            for copy in ("look", "2", "4"):
                shutil.copytree(graph.folder / run, graph.folder / f"{run}-{copy}")
            # This run trains nothing, and shows the step of the last checkpoint.
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
    return {"restarts with the same bits": [sum(right)], "restarts with other bits": [len(right) - sum(right)]}


GOALS = [
    Goal("losses", "four processes, one of which is killed, stopped or cut off at a random moment (--losses times): "
         f"all others end with an error that names it within {PEER_TIMEOUT_S} s (cluster.peer_timeout_s) + {SLACK_S} "
         f"s, or within {JOIN_BOUND_S} s during the join", losses,
         {"losses": reported(), "failed losses": none(), "seconds after a loss": each_at_most(PEER_TIMEOUT_S + SLACK_S),
          "seconds after a loss during the join": each_at_most(JOIN_BOUND_S)}),
    Goal("restart", f"{RESTARTS} jobs of four processes that lost one continue from the last checkpoint, with two and "
         "with four processes, and end with the bits of a run without a loss", restart,
         {"restarts with the same bits": reported(), "restarts with other bits": none()}),
]
