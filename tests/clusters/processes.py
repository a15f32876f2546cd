# SPDX-License-Identifier: Apache-2.0
"""Processes of one job: their output, how they end, and that they do end.

Nothing that is started here outlives the program that started it, even when that is killed: each process asks the
kernel for a signal at the death of its parent. Start jobs from the main thread: the kernel takes the thread for the
parent.
"""
import os
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
    """Those of the programs that are not installed."""
    return [name for name in programs if shutil.which(name) is None]


def clean_environment(**more):
    """Ours, without what a launcher around us has put there, and with `more`."""
    kept = {name: value for name, value in os.environ.items()
            if name not in LAUNCHERS_VARIABLES and not name.startswith(LAUNCHERS_PREFIXES)}
    return {**kept, **{name: str(value) for name, value in more.items()}}


def leashed(command, signal_name="KILL"):
    """The command, as one that gets this signal when its parent ends."""
    return ["setpriv", "--pdeathsig", signal_name, "--", *map(str, command)]


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def wait_until(condition, timeout_s, what):
    """Waits for a true value and returns it. `what`: a text, or a function that makes one, for the error."""
    end = time.monotonic() + timeout_s
    while not (value := condition()):
        if time.monotonic() > end:
            raise TimeoutError(f"not within {timeout_s} s: {what() if callable(what) else what}")
        time.sleep(0.05)
    return value


def end_on_sigterm():
    """Makes SIGTERM end the program as Ctrl-C does, so that folders go too; unittest would catch SystemExit."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


class Job:
    """A job of some ranks; what each says goes to a file of its own. A context manager: at its end all are killed.

    Either every rank is a process of ours, or one process of ours is the launcher (mpirun, srun) of all of them.
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
        if process in self._launchers:  # one that is killed leaves its ranks behind
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                pass
        process.kill()  # ends stopped ones too
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
        """For a launcher: a command that writes what `command` says, and its pid, to the files of its rank."""
        script = f'at="{self.folder}/rank.${rank_variable}"; echo $$ > "$at.pid"; exec "$@" > "$at.txt" 2>&1'
        return ["sh", "-c", script, "sh", *leashed(command)]

    def output(self, rank):
        """What a rank has said so far, on both streams."""
        return self._text(f"rank.{rank}.txt")

    def _text(self, name):
        path = self.folder / name
        return path.read_text(errors="replace") if path.exists() else ""

    def all_output(self):
        """For messages: the end of what each rank, and the launcher, has said."""
        parts = [(name, self._text(f"{name}.txt")) for name in ["launcher", *map("rank.{}".format, range(self.ranks))]]
        return "".join(f"--- {name}\n{text[-2000:]}\n" for name, text in parts if text)

    def wait_for(self, rank, text, timeout_s=120):
        """Waits until a rank has said this. Fails at once where the job has ended without."""
        def said():
            ended = None not in self.codes()
            found = text in self.output(rank)
            if ended and not found:
                raise RuntimeError(f"ended before rank {rank} said '{text}'\n{self.all_output()}")
            return found
        wait_until(said, timeout_s, lambda: f"'{text}' from rank {rank}\n{self.all_output()}")

    def codes(self):
        """Exit codes of the processes, of ranks or of the launcher; None for one that runs, -9 for one killed so."""
        return [process.poll() for process in self.processes]

    def wait(self, timeout_s=300, but=()):
        """Waits until all, `but` these ranks, have ended, and returns codes()."""
        def ended():
            return all(code is not None for rank, code in enumerate(self.codes()) if rank not in but)
        wait_until(ended, timeout_s, lambda: f"all end; exit codes are {self.codes()}\n{self.all_output()}")
        return self.codes()

    def signal(self, rank, number):
        """Sends a signal to a rank. REQUIRES: it has started, on this machine and in our pid namespace."""
        by_launcher = self._text(f"rank.{rank}.pid")
        os.kill(int(by_launcher) if by_launcher else self.processes[rank].pid, number)

    def signal_launcher(self, number):
        self._launchers[0].send_signal(number)
