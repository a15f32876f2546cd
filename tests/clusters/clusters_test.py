#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""gpu_train as processes: equal bits for every way to start its ranks, and an error in all ranks if one is lost.

usage: clusters_test.py PROGRAM [unittest's arguments]    PROGRAM: gpu_train
"""
import json
import os
import pathlib
import signal
import sys
import unittest

import as_ctest
import environment
import mpirun
import namespaces
import slurm
from small_graph import LONG, SmallGraph

PROGRAM = None
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Clusters(unittest.TestCase):
    def setUp(self):
        self.graph = SmallGraph(PROGRAM)
        self.addCleanup(self.graph.remove)

    def wait_well(self, job):
        self.assertEqual(set(job.wait()), {0}, job.all_output())

    def hash_alone(self, steps):
        with self.graph.alone("alone", steps, "--ranks", "1") as job:
            self.wait_well(job)
        return self.graph.summary("alone")["table_hash"]

    def expect_same_bits_after_resume(self, saved):
        """Resumes the run "out", which was saved after `saved` steps, on two ranks, and compares the table hash."""
        self.assertGreater(saved, 0)
        with environment.job(self.graph.command("out", saved + 50, "--resume"), 2, cwd=self.graph.folder) as job:
            self.wait_well(job)
            self.assertRegex(job.output(0), rf"resuming from step {saved}\b")
        self.assertEqual(self.graph.summary("out")["table_hash"], self.hash_alone(saved + 50))


class Bits(Clusters):
    """The table hash after some steps equals that of one process with one rank."""
    STEPS = 200

    def command(self, **settings):
        return self.graph.command("out", self.STEPS, **settings)

    def expect_same_bits(self, job, ranks):
        with job:
            self.wait_well(job)
        summary = self.graph.summary("out")
        self.assertEqual(summary["ranks"], ranks)
        self.assertGreater(summary["sent"]["gradients"], 0)
        self.assertEqual(summary["table_hash"], self.hash_alone(self.STEPS))

    def check_mpirun(self, ranks, **options):
        as_ctest.need(self, mpirun)
        self.expect_same_bits(mpirun.job(self.command(), ranks, cwd=self.graph.folder, **options), ranks)

    def test_mpirun_2(self):
        self.check_mpirun(2)

    def test_mpirun_3(self):
        self.check_mpirun(3)

    def test_mpirun_4(self):
        self.check_mpirun(4)

    def test_mpirun_over_tcp(self):
        self.check_mpirun(2, env={"UCX_TLS": "tcp,self"})

    def test_environment(self):
        as_ctest.need(self, environment)
        self.expect_same_bits(environment.job(self.command(), 3, cwd=self.graph.folder), 3)

    def test_srun(self):
        as_ctest.need(self, slurm)
        with slurm.Cluster() as cluster:
            self.expect_same_bits(cluster.srun(self.command(), 2, cwd=self.graph.folder), 2)

    def test_sbatch(self):
        as_ctest.need(self, slurm)
        with slurm.Cluster() as cluster:
            self.expect_same_bits(cluster.sbatch(ROOT / "containers" / "train.sbatch",
                                                 self.graph.arguments("out", self.STEPS)[1:], cwd=self.graph.folder,
                                                 env={"GPU_TRAIN": PROGRAM}), 2)

    def test_eval_of_threads_by_processes(self):
        """A run of two threads is evaluated by three processes: the number of ranks is not part of a run."""
        as_ctest.need(self, environment)
        with self.graph.alone("out", self.STEPS, "--ranks", "2") as job:
            self.wait_well(job)
        with environment.job([PROGRAM, "eval", self.graph.folder / "out"], 3, cwd=self.graph.folder) as job:
            self.wait_well(job)
            metrics = json.loads(job.output(0).splitlines()[-1])
        self.assertEqual(metrics, self.graph.summary("out")["test"])

    def test_namespaces(self):
        as_ctest.need(self, namespaces)
        with namespaces.Network(4, rate="1gbit") as network:
            self.expect_same_bits(network.job(self.command(), cwd=self.graph.folder), 4)


class Loss(Clusters):
    """If a rank is lost, all others end with an error that names it, and the run can be resumed."""
    PEER_TIMEOUT_S = 2
    WITHIN_S = 100  # far above PEER_TIMEOUT_S, for slow machines; below cluster.join_timeout_s and wait_timeout_s

    def command(self):
        return self.graph.command("out", LONG, cluster__peer_timeout_s=self.PEER_TIMEOUT_S)

    def expect_named(self, job, victim, survivors):
        codes = job.wait(self.WITHIN_S, but=[victim])
        for rank in survivors:
            self.assertGreater(codes[rank], 0, job.all_output())  # ended with an error, not by a signal
            errors = [line for line in job.output(rank).splitlines() if line.startswith("gpu_train: error: ")]
            self.assertTrue(errors, job.all_output())
            self.assertRegex(errors[-1], rf"\brank {victim}\b", job.all_output())

    def check_killed(self, victim):
        as_ctest.need(self, environment)
        with environment.job(self.command(), 3, cwd=self.graph.folder) as job:
            job.wait_for(0, "epoch 2:")
            job.signal(victim, signal.SIGKILL)
            self.expect_named(job, victim, {0, 1, 2} - {victim})

    def test_killed(self):
        self.check_killed(2)

    def test_rank_0_killed(self):
        self.check_killed(0)

    def test_killed_while_another_reads(self):
        """Rank 1 reads a file that never ends, so that only the loss can end it."""
        as_ctest.need(self, environment)
        never = self.graph.folder / "never"
        never.mkdir()
        os.mkfifo(never / "train.txt")
        for held_out in ("valid.txt", "test.txt"):
            (never / held_out).touch()
        own = 'if [ "$RANK" = 1 ]; then exec "$@" --set data.folder=never; else exec "$@"; fi'
        with environment.job(["bash", "-c", own, "bash", *self.command()], 3, cwd=self.graph.folder) as job:
            job.wait_for(0, "triples for training")
            job.signal(2, signal.SIGKILL)
            self.expect_named(job, 2, {0, 1})

    def check_stopped(self, victim):
        as_ctest.need(self, environment)
        with environment.job(self.command(), 3, cwd=self.graph.folder) as job:
            job.wait_for(0, "epoch 2:")
            job.signal(victim, signal.SIGSTOP)
            self.expect_named(job, victim, {0, 1, 2} - {victim})
            job.signal(victim, signal.SIGCONT)
            self.assertGreater(job.wait(self.WITHIN_S)[victim], 0, job.all_output())

    def test_stopped(self):
        self.check_stopped(2)

    def test_rank_0_stopped(self):
        self.check_stopped(0)

    def check_cut(self, victim):
        as_ctest.need(self, namespaces)
        with namespaces.Network(4) as network, network.job(self.command(), cwd=self.graph.folder) as job:
            job.wait_for(0, "epoch 2:")
            network.cut(victim)
            self.expect_named(job, victim, {0, 1, 2, 3} - {victim})
            self.assertGreater(job.wait(self.WITHIN_S)[victim], 0, job.all_output())

    def test_cut(self):
        self.check_cut(2)

    def test_rank_0_cut(self):
        self.check_cut(0)

    def test_killed_below_mpirun(self):
        as_ctest.need(self, mpirun)
        with mpirun.job(self.command(), 3, cwd=self.graph.folder) as job:
            job.wait_for(0, "epoch 2:")
            job.signal(2, signal.SIGKILL)
            self.assertNotEqual(job.wait(self.WITHIN_S), [0], job.all_output())

    def test_resumed_with_fewer_ranks(self):
        self.check_killed(1)
        # This trains no steps, and writes the number of steps at the last save.
        with self.graph.alone("out", 1, "--resume") as job:
            self.wait_well(job)
        self.expect_same_bits_after_resume(self.graph.summary("out")["steps"])


class Stop(Clusters):
    """After a signal to any process, all ranks finish the same step, save, and end without an error."""

    def check(self, job, send):
        with job:
            job.wait_for(0, "epoch 2:")
            send(job)
            self.wait_well(job)
        summary = self.graph.summary("out")
        self.assertFalse(summary["finished"])
        self.expect_same_bits_after_resume(summary["steps"])

    def command(self):
        return self.graph.command("out", LONG)

    def test_one_rank(self):
        as_ctest.need(self, environment)
        job = environment.job(self.command(), 3, cwd=self.graph.folder)
        self.check(job, lambda job: job.signal(1, signal.SIGTERM))

    def test_mpirun(self):
        as_ctest.need(self, mpirun)
        # mpirun passes SIGUSR1 on to its ranks; after SIGTERM it would kill them within a second.
        job = mpirun.job(self.command(), 3, cwd=self.graph.folder)
        self.check(job, lambda job: job.signal_launcher(signal.SIGUSR1))

    def test_scancel(self):
        as_ctest.need(self, slurm)
        with slurm.Cluster() as cluster:
            self.check(cluster.srun(self.command(), 2, cwd=self.graph.folder), lambda job: cluster.scancel("TERM"))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    as_ctest.main()
