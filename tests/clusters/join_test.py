#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes join several groups of one job, beside MPI, for every way to start them.

usage: join_test.py PROGRAM [unittest's arguments]    PROGRAM: join_steps
"""
import pathlib
import subprocess
import sys
import unittest

import as_ctest
import environment
import mpirun
import slurm

PROGRAM = None
RANKS = 3
WITHOUT_MPI = {
    "one after another": "join= sum leave= join= sum leave= join=a sum",
    "together": "join=a join=b sum leave=a sum join=a sum leave=b sum",
    "in threads": "threads=a,b sum",
    "cores are kept": "join_only=a join_only=b sum",
}
WITH_MPI = {
    "MPI first": "mpi_init sum join= sum leave= sum mpi_finalize",
    "MPI first and last": "mpi_init join= sum join=b sum leave= leave=b mpi_finalize",
    "MPI ends while joined": "mpi_init sum join= mpi_finalize sum",
    "MPI is over": "mpi_init mpi_finalize join= sum leave= join= sum",
    "MPI second": "join= sum mpi_init sum mpi_finalize sum",
    "MPI between groups": "join= sum leave= mpi_init sum join= sum leave= mpi_finalize",
    "MPI after groups": "join=a leave=a join=b leave=b mpi_init sum mpi_finalize",
}


class Joins(unittest.TestCase):
    def check(self, start, orders):
        """start: starts a job of a command and returns it."""
        for what, steps in orders.items():
            steps = [f"ranks={RANKS}", *steps.split()]
            with self.subTest(what), start([PROGRAM, *steps]) as job:
                self.assertEqual(set(job.wait(120)), {0}, job.all_output())
                for rank in range(job.ranks):
                    self.assertEqual(job.output(rank).count(": done\n"), len(steps), job.all_output())

    def orders_with_mpi(self):
        if subprocess.run([PROGRAM], capture_output=True, text=True, check=True).stdout != "MPI\n":
            self.skipTest("this build has no MPI: install libopenmpi-dev")
        return WITH_MPI

    def by_environment(self, orders):
        as_ctest.need(self, environment)
        # Where no launcher of MPI has started the processes, MPI has one rank in each.
        self.check(lambda command: environment.job(command, RANKS, env=self.env()), orders)

    def by_mpirun(self, orders):
        as_ctest.need(self, mpirun)
        self.check(lambda command: mpirun.job(command, RANKS, env=self.env()), orders)

    def by_srun(self, orders):
        as_ctest.need(self, slurm)
        with slurm.Cluster() as cluster:
            self.check(lambda command: cluster.srun(command, RANKS, env=self.env()), orders)

    def env(self):
        """MPI and PMIx leak some bytes."""
        return {"ASAN_OPTIONS": "detect_leaks=0", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def test_environment(self):
        self.by_environment(WITHOUT_MPI)

    def test_environment_with_mpi(self):
        self.by_environment(self.orders_with_mpi())

    def test_mpirun(self):
        self.by_mpirun(WITHOUT_MPI)

    def test_mpirun_with_mpi(self):
        self.by_mpirun(self.orders_with_mpi())

    def test_srun(self):
        self.by_srun(WITHOUT_MPI)

    def test_srun_with_mpi(self):
        self.by_srun(self.orders_with_mpi())


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    as_ctest.main()
