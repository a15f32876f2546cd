#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The clusters of other tests work as documented, and leave no processes or folders behind."""
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock
import uuid

import as_ctest
import environment
import folders
import mpirun
import namespaces
import processes
import slurm

HERE = pathlib.Path(__file__).resolve().parent
WHO = ["sh", "-c", "echo rank ${RANK:-$PMIX_RANK} on $(hostname)"]

# Rank 0 answers each line with the same line in capitals. Rank 1 sends "one" and, once the file exists, "two".
TALK = """
import os, pathlib, socket, sys, time
if os.environ["RANK"] == "0":
    listener = socket.create_server(("", int(os.environ["MASTER_PORT"])))
    print("listening", flush=True)
    lines = listener.accept()[0].makefile("rw")
    for line in lines:
        lines.write(line.upper()); lines.flush()
else:
    while True:
        try:
            lines = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))).makefile("rw")
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    for word in ("one", "two"):
        while word == "two" and not pathlib.Path(sys.argv[1]).exists():
            time.sleep(0.05)
        lines.write(word + "\\n"); lines.flush()
        print("sent", word, flush=True)
        print("received", lines.readline().strip(), flush=True)
"""

# Rank 1 sends bytes to rank 0 and prints the seconds until rank 0 has acknowledged all of them.
SEND = """
import os, socket, time
size = 4 << 20
if os.environ["RANK"] == "0":
    with socket.create_server(("", int(os.environ["MASTER_PORT"]))) as listener:
        connection, left = listener.accept()[0], size
        while left:
            left -= len(connection.recv(min(left, 1 << 16)))
        connection.sendall(b"!")
else:
    start = time.monotonic()
    while True:
        try:
            connection = socket.create_connection((os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])))
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
    connection.sendall(bytes(size))
    connection.recv(1)
    print("seconds", time.monotonic() - start)
"""

# Starts a job of each kind and prints "up"; then the test ends it with a signal.
VICTIM = """
import sys, time
import environment, mpirun, namespaces, processes, slurm
processes.end_on_sigterm()
sleep = ["sh", "-c", "trap '' HUP INT TERM; while :; do sleep 1; done"]
held = [environment.job(sleep, 2), mpirun.job(["sleep", "1000"], 2)]
if "root" in sys.argv[1:]:
    network = namespaces.Network(2)
    with network, network.job(sleep), slurm.Cluster() as cluster, cluster.srun(sleep, 2) as job:
        processes.wait_until(lambda: list(job.folder.glob("rank.*")), 60, "srun")
        print("up", flush=True)
        time.sleep(1000)
else:
    print("up", flush=True)
    time.sleep(1000)
"""


class Processes(unittest.TestCase):
    def test_mpirun(self):
        as_ctest.need(self, mpirun)
        with mpirun.job(WHO, 3) as job:
            self.assertEqual(job.wait(), [0], job.all_output())
            for rank in range(3):
                self.assertIn(f"rank {rank} on ", job.output(rank))
        with mpirun.job(["sh", "-c", "exit $PMIX_RANK"], 2) as job:
            self.assertNotEqual(job.wait(), [0])

    def test_environment(self):
        as_ctest.need(self, environment)
        check = 'test $(stat -c %a "$GPUPS_TOKEN_FILE") = 600; echo $? $WORLD_SIZE $MASTER_ADDR; exit $RANK'
        with environment.job(["sh", "-c", check], 3) as job:
            self.assertEqual(job.wait(), [0, 1, 2])
            self.assertEqual([job.output(rank) for rank in range(3)], ["0 3 127.0.0.1\n"] * 3)

    def test_signals_reach_the_rank(self):
        as_ctest.need(self, mpirun)
        for module in (mpirun, environment):
            with module.job(["sh", "-c", "echo up; exec sleep 1000"], 2) as job:
                job.wait_for(1, "up")
                job.signal(1, signal.SIGKILL)
                if module is environment:
                    self.assertEqual(job.wait(but=[0]), [None, -signal.SIGKILL])
                else:
                    self.assertNotEqual(job.wait(), [0])


class Namespaces(unittest.TestCase):
    def setUp(self):
        as_ctest.need(self, namespaces)
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def python(self, script, *arguments):
        return [sys.executable, "-c", script, *arguments]

    def test_hosts_differ_and_networks_are_separate(self):
        show = ["sh", "-ec", "hostname; touch /dev/shm/$RANK; ls /dev/shm; ip -br address show dev eth0"]
        with namespaces.Network(2) as one, namespaces.Network(2) as two, one.job(show) as job, two.job(show) as other:
            for each in (job, other):
                self.assertEqual(each.wait(), [0, 0], each.all_output())
                for rank in range(2):
                    lines = each.output(rank).splitlines()
                    self.assertEqual(lines[:2], [f"host{rank + 1}", str(rank)])
                    self.assertIn(namespaces.Network.address(rank), lines[2])

    def test_cut_link_drops_packets_without_error(self):
        go_on = self.folder / "go_on"
        with namespaces.Network(2) as network, network.job(self.python(TALK, str(go_on))) as job:
            job.wait_for(1, "received ONE")
            network.cut(1)
            go_on.touch()
            job.wait_for(1, "sent two")
            time.sleep(2)
            self.assertEqual(job.codes(), [None, None], job.all_output())
            self.assertNotIn("received TWO", job.output(1))
            network.restore_link(1)
            job.wait_for(1, "received TWO")
            self.assertEqual(job.wait(), [0, 0], job.all_output())

    def test_links_respect_their_rate(self):
        with namespaces.Network(2, rate="10mbit") as network, network.job(self.python(SEND)) as job:
            self.assertEqual(job.wait(), [0, 0], job.all_output())
            self.assertGreater(float(job.output(1).split()[1]), 2.5)


class Slurm(unittest.TestCase):
    def setUp(self):
        as_ctest.need(self, slurm)

    def test_srun_and_sbatch(self):
        with slurm.Cluster() as cluster:
            with cluster.srun(WHO, 4) as job:
                self.assertEqual(job.wait(), [0], job.all_output())
                self.assertEqual([job.output(rank) for rank in range(4)],
                                 [f"rank {rank} on node{1 + rank // 2}\n" for rank in range(4)])
            with cluster.srun(["sh", "-c", "exit $((PMIX_RANK * 3))"], 2) as job:
                self.assertEqual(job.wait(), [3], job.all_output())
            with tempfile.NamedTemporaryFile("w", suffix=".sh") as script:
                script.write("#!/bin/sh\necho batch $1\nexit 4\n")
                script.flush()
                with cluster.sbatch(script.name, ["x"]) as job:
                    self.assertEqual(job.wait(), [4], job.all_output())
                    self.assertIn("batch x", job.all_output())


class Leftovers(unittest.TestCase):
    def setUp(self):
        as_ctest.need(self, mpirun)
        held = tempfile.TemporaryDirectory()
        self.addCleanup(held.cleanup)
        self.folder = pathlib.Path(held.name)

    def alive(self, mark):
        """Returns the pids of processes that have this in their environment."""
        found = []
        for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
            try:
                if mark in path.read_bytes():
                    found.append(path.parent.name)
            except OSError:
                pass  # the process has ended, or belongs to another user
        return found

    def check(self, number):
        mark = uuid.uuid4().hex
        root = [] if slurm.missing() else ["root"]
        env = {**os.environ, "PYTHONPATH": str(HERE), "MARK": mark, "TMPDIR": str(self.folder)}
        victim = subprocess.Popen([sys.executable, "-c", VICTIM, *root], env=env, stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(victim.stdout.readline(), "up\n")
            self.assertGreater(len(self.alive(mark.encode())), 5)
        finally:
            victim.send_signal(number)
            victim.communicate()
        processes.wait_until(lambda: not self.alive(mark.encode()), 60, lambda: f"{self.alive(mark.encode())} end")

    def test_terminated(self):
        self.check(signal.SIGTERM)

    def test_killed(self):
        self.check(signal.SIGKILL)

    def test_folders_of_killed_program_are_removed(self):
        with unittest.mock.patch.object(tempfile, "tempdir", str(self.folder)):
            held = folders.Temporary("held")
            left = self.folder / (folders.PREFIX + "left")
            fresh = self.folder / (folders.PREFIX + "fresh")
            for path in (left, fresh):
                path.mkdir()
            for path in (left, held.path):
                os.utime(path, (0, 0))
            folders.sweep()
            self.assertEqual(sorted(self.folder.iterdir()), sorted([held.path, fresh]))
            held.remove()


if __name__ == "__main__":
    as_ctest.main()
