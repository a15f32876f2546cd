# SPDX-License-Identifier: Apache-2.0
"""The goals of jobs of several processes: equal bits with every launcher, speed, losses, rejections."""
import json

import goals_failures
import goals_refusals
from cluster_jobs import mpirun, need, note, slurm, wait_well
from goal import CORES, ROOT, Goal, all_equal, at_least, overrides, reported, summary
from goals_slice import SPEED_RUNS, STEPS, kge100k, short_run

CONFIG = ROOT / "examples" / "configs" / "kge100k.toml"
TCP = {"UCX_TLS": "tcp,self"}


def command_of(bench, run, settings):
    """Returns a command of gpu_train with a new run folder, and that folder."""
    folder = bench.fresh_folder(run)
    return [bench.program("gpu_train"), "train", CONFIG, "--run", folder, *overrides(settings)], folder


def by_mpirun(bench, ranks, command, env=None):
    note(bench, f"mpirun -n {ranks} --bind-to none", command)
    with bench.on_cores():
        return wait_well(mpirun.job(command, ranks, cwd=ROOT, env=env))


def by_slurm(bench, ranks, command):
    note(bench, f"UCX_TLS=tcp,self srun --mpi=pmix -N {ranks} -n {ranks}", command)
    with bench.on_cores(), slurm.Cluster(ranks) as cluster:  # with links of 1 Gbit/s
        return wait_well(cluster.srun(command, ranks, cwd=ROOT, env=TCP))


def bits(bench):
    need(mpirun)
    need(slurm)
    settings = short_run(bench)
    hashes = [bench.train("kge100k.toml", "processes/bits/1", {**settings, "run.ranks": 1})["table_hash"]]
    for start, ranks in ((by_mpirun, 2), (by_mpirun, 3), (by_mpirun, 4), (by_slurm, 2), (by_slurm, 4)):
        command, folder = command_of(bench, f"processes/bits/{start.__name__}-{ranks}", settings)
        start(bench, ranks, command)
        hashes.append(summary(folder)["table_hash"])
    return {"table hash": hashes}


def pull(bench):
    need(mpirun)
    found = {}
    for name, options in (("keys/s", []), ("keys/s, open 1", ["--open", 1]), ("keys/s, open 32", ["--open", 32])):
        command = [bench.program("pull_bench"), "--batch", 256, "--dim", 64, *options]
        found[name] = [json.loads(by_mpirun(bench, 2, command)[0])["keys_per_s"] for _ in range(SPEED_RUNS)]
    return found


def two_processes(bench):
    """Alternates runs with one and two processes, so that changes of the machine's speed affect both."""
    need(mpirun)
    settings = {**kge100k(bench), "data.valid": "", "data.test": "", "train.epochs": 20, "train.checkpoint_every": 0}
    one, two = [], []
    for i in range(SPEED_RUNS):
        alone = {**settings, "run.threads": CORES}
        one.append(bench.train("kge100k.toml", f"processes/speed/1-{i}", alone)["samples_per_s"])
        command, folder = command_of(bench, f"processes/speed/2-{i}", {**settings, "run.threads": 1})
        by_mpirun(bench, 2, command)
        two.append(summary(folder)["samples_per_s"])
    return {"samples/s, 1 process": one, "samples/s, 2 processes": two, "ratio": [b / a for a, b in zip(one, two)]}


GOALS = [
    Goal("bits", f"tables after {STEPS} steps have the same bits in 1 process, in 2, 3, 4 with mpirun, and in 2, 4 "
         "with Slurm, each on a link of 1 Gbit/s", bits, {"table hash": all_equal()}),
    *goals_failures.GOALS,
    *goals_refusals.GOALS,
    Goal("pull", "pulls of 256 rows of 256 bytes from another process: 8,000,000 keys/s on two cores", pull,
         {"keys/s": at_least(8_000_000), "keys/s, open 1": reported(), "keys/s, open 32": reported()}),
    Goal("kge100k-2", "kge100k in two processes with one thread each, compared with one process with two threads",
         two_processes,
         {"samples/s, 1 process": reported(), "samples/s, 2 processes": reported(), "ratio": reported()}),
]
