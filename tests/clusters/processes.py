# SPDX-License-Identifier: Apache-2.0
"""The processes of a job: their output, their exit codes, and their end.

No process that is started here outlives the program that started it, even if that is killed: each process gets a
signal from the kernel at the death of its parent. Start jobs from the main thread: for the kernel the thread is the
parent.
"""
import os
import random
import shutil
import signal
import socket
import subprocess
import time

import folders

LAUNCHERS_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
LAUNCHERS_PREFIXES = ("GPUPS_", "PMIX_", "PMI_", "OMPI_", "ORTE_", "PRTE_", "SLURM_", "SBATCH_", "SRUN_",
                      "TORCHELASTIC_")


def missing(*programs):
    """Returns those of the programs that are not installed."""
    return [name for name in programs if shutil.which(name) is None]


def clean_environment(**more):
    """Returns the environment of this process without the variables of launchers, and with `more`."""
    kept = {name: value for name, value in os.environ.items()
            if name not in LAUNCHERS_VARIABLES and not name.startswith(LAUNCHERS_PREFIXES)}
    return {**kept, **{name: str(value) for name, value in more.items()}}


def leashed(command, signal_name="KILL"):
    """Returns a command that runs `command`, and gets this signal when its parent ends."""
    return ["setpriv", "--pdeathsig", signal_name, "--", *map(str, command)]


def free_port():
    """Returns a port below those of outgoing connections, one of which could take it before its server does."""
    while True:
        with socket.socket() as taken:
            try:
                taken.bind(("", random.randint(10_000, 32_000)))
                return taken.getsockname()[1]
            except OSError:
                pass  # it is occupied


def wait_until(condition, timeout_s, what):
    """Waits for a true value and returns it. `what`: a text for the error, or a function that returns one."""
    end = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {timeout_s} s: {what() if callable(what) else what}")
        time.sleep(0.05)
    return value


def end_on_sigterm():
    """Makes SIGTERM end the program as Ctrl-C does, so that folders are removed; unittest would catch SystemExit."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


class Job:
    """A job of some ranks; the output of each goes to its own file. A context manager: at its end all are killed.

    Either every rank is a child process, or one child process is the launcher (mpirun, srun) of all ranks.
    """

    def __init__(self, ranks):
        self.ranks = ranks
        self.processes, self._launchers = [], []
        self._held = folders.Temporary("job")
        self.folder = self._held.path

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for process in self.processes:
            self._end(process)
        self._held.remove()

    def _end(self, process):
        if process in self._launchers:  # a launcher that is killed leaves its ranks behind
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                pass
        process.kill()  # ends stopped processes too
        process.wait()

    def start_rank(self, rank, command, env, cwd=None):
        self._start(f"rank.{rank}", leashed(command), env, cwd)

    def start_launcher(self, command, env, cwd=None):
        self._start("launcher", leashed(command, "TERM"), env, cwd)
        self._launchers.append(self.processes[-1])

    def _start(self, name, command, env, cwd):
        with open(self.folder / f"{name}.txt", "wb") as output:
            self.processes.append(subprocess.Popen(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=output,
                                                   stderr=subprocess.STDOUT))

    def in_rank_files(self, command, rank_variable):
        """For a launcher: returns a command that writes output and pid of `command` to the files of its rank."""
        script = f'at="{self.folder}/rank.${rank_variable}"; echo $$ > "$at.pid"; exec "$@" > "$at.txt" 2>&1'
        return ["sh", "-c", script, "sh", *leashed(command)]

    def output(self, rank):
        """Returns the output of a rank so far, of both streams."""
        return self._text(f"rank.{rank}.txt")

    def _text(self, name):
        path = self.folder / name
        return path.read_text(errors="replace") if path.exists() else ""

    def all_output(self):
        """Returns the end of the output of each rank and of the launcher, for messages."""
        parts = [(name, self._text(f"{name}.txt")) for name in ["launcher", *map("rank.{}".format, range(self.ranks))]]
        return "".join(f"--- {name}\n{text[-2000:]}\n" for name, text in parts if text)

    def wait_for(self, rank, text, timeout_s=120):
        """Waits until the output of a rank contains this. Fails at once if the job has ended without it."""
        def has_printed():
            ended = None not in self.codes()
            found = text in self.output(rank)
            if ended and not found:
                raise RuntimeError(f"the job ended before rank {rank} printed '{text}'\n{self.all_output()}")
            return found
        wait_until(has_printed, timeout_s, lambda: f"'{text}' from rank {rank}\n{self.all_output()}")

    def codes(self):
        """Returns the exit codes of the ranks or of the launcher: None for a running process, -9 for a killed one."""
        return [process.poll() for process in self.processes]

    def wait(self, timeout_s=300, but=()):
        """Waits until all, `but` these ranks, have ended, and returns codes()."""
        def ended():
            return all(code is not None for rank, code in enumerate(self.codes()) if rank not in but)
        wait_until(ended, timeout_s, lambda: f"all end; exit codes are {self.codes()}\n{self.all_output()}")
        return self.codes()

    def signal(self, rank, number):
        """Sends a signal to a rank. It must have started, on this machine and in this pid namespace."""
        by_launcher = self._text(f"rank.{rank}.pid")
        os.kill(int(by_launcher) if by_launcher else self.processes[rank].pid, number)

    def signal_launcher(self, number):
        self._launchers[0].send_signal(number)
