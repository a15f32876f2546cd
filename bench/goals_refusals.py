# SPDX-License-Identifier: Apache-2.0
"""The goal that ranks with different data, versions or settings do not train together: they end soon with an error that
names the rank and the reason."""
import contextlib
import dataclasses
import re
import socket
import subprocess
import time

from cluster_jobs import environment, last_error, need, note, processes, small_graph, wait_ends
from goal import CannotMeasure, Goal, each_at_most, none, reported

RANKS, BOUND_S, GIVE_UP_S = 3, 5, 20
ALL = frozenset(range(RANKS))


@dataclasses.dataclass
class Rejection:
    what: str
    at_fault: int
    ending: frozenset  # the processes that must end: those at fault, and those that can detect it
    error: str  # pattern of the last error of each of these processes
    rank_0_prints: tuple = ()  # patterns of further output of rank 0
    first_listens: bool = False  # the others start when the first process listens


def rejections():
    for at in range(RANKS):
        # A process without the token must not end a job: rank 0 prints which rank it rejected, and waits.
        strangers = [at] if at else [1, 2]
        yield Rejection("token", at, frozenset(strangers), "its token differs",
                      tuple(rf"gpups: rejected .* rank {rank} \(its token differs.*\)" for rank in strangers))
        one = rf"\brank {at}\b" if at else r"\brank [12]\b"
        yield Rejection("version", at, ALL, one + r" runs version \S+ where rank 0 runs \S+")
        yield Rejection("configuration", at, ALL, one + r" has .*seed.* where rank 0 has")
        yield Rejection("data", at, ALL, one + " has other data than rank 0")
        yield Rejection("world size", at, ALL, one + r" belongs to a job of \d ranks where rank 0 belongs to one of \d")
        yield Rejection("same rank", at, ALL, rf"two processes have rank {at}") if at else \
            Rejection("same rank", 0, frozenset([1]), "in use by another gpu_train .*rank 0", first_listens=True)
    yield Rejection("port", 0, ALL, r"\brank 0\b")


class Ground:
    """Programs and graphs that differ between ranks."""

    def __init__(self, program):
        self.graph, self.other_graph = small_graph.SmallGraph(program), small_graph.SmallGraph(program)
        with open(self.other_graph.folder / "train.txt", "a") as file:
            file.write("e1\tby1\te3\n")
        self.other_program = self.graph.folder / "other_version"
        self._make_other_version(program)
        self.runs = 0

    def _make_other_version(self, program):
        """Copies the program and changes its version, the first part of which is in its instructions."""
        version = output_of([program, "--version"]).split()[1].encode()
        self.other_program.write_bytes(program.read_bytes().replace(version[:4], b"9" + version[1:4]))
        self.other_program.chmod(0o755)
        if output_of([self.other_program, "--version"]).split()[1].encode() != b"9" + version[1:]:
            raise CannotMeasure("the version of a copy of gpu_train could not be changed")

    def remove(self):
        self.graph.remove()
        self.other_graph.remove()

    def commands(self, rejection):
        """Returns (command, folder) of each process."""
        self.runs += 1
        run = self.graph.folder / f"run-{self.runs}"
        made = [(self.graph.command(run, small_graph.LONG), self.graph.folder)] * RANKS
        other, folder = made[rejection.at_fault]
        if rejection.what == "version":
            other = [self.other_program, *other[1:]]
        elif rejection.what == "configuration":
            other = [*other, "--set", "train.seed=77"]
        elif rejection.what == "data":
            folder = self.other_graph.folder
        made[rejection.at_fault] = (other, folder)
        return made


def output_of(command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def listens(port):
    with socket.socket() as other:
        other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            other.bind(("127.0.0.1", port))
            return False
        except OSError:
            return True


def start(job, ground, rejection, port):
    token, other_folder = environment.write_token(job.folder), job.folder / "other"
    other_folder.mkdir()
    other_token = environment.write_token(other_folder)
    numbers = {"same rank": ([0, 0, 2], [0, 1, 1], [0, 2, 2])[rejection.at_fault]}.get(rejection.what, range(RANKS))
    for index, (command, folder) in enumerate(ground.commands(rejection)):
        at_fault = index == rejection.at_fault
        size = RANKS + 1 if at_fault and rejection.what == "world size" else RANKS
        env = environment.variables(numbers[index], size, "127.0.0.1", port,
                                    other_token if at_fault and rejection.what == "token" else token)
        job.start_rank(index, command, processes.clean_environment(**env), folder)
        if rejection.first_listens and index == 0:
            processes.wait_until(lambda: listens(port), 60, "rank 0 listens")


def reject(ground, rejection):
    """Runs a job with one rejection. Returns the seconds until it ended, and what went wrong."""
    with contextlib.ExitStack() as held:
        port = processes.free_port()
        if rejection.what == "port":
            taken = held.enter_context(socket.socket())
            taken.bind(("", port))
            taken.listen()
        job = held.enter_context(processes.Job(RANKS))
        start(job, ground, rejection, port)
        ends = wait_ends(job, rejection.ending, GIVE_UP_S, time.monotonic())
        problems, codes = [], job.codes()
        for index in sorted(rejection.ending):
            if codes[index] is None or codes[index] <= 0:
                problems.append(f"the exit status of process {index} is {codes[index]}")
            if not re.search(rejection.error, last_error(job.output(index))):
                problems.append(f"process {index} prints '{last_error(job.output(index))}'")
        problems += [f"rank 0 does not print {pattern}" for pattern in rejection.rank_0_prints
                     if not re.search(pattern, job.output(0))]
        seconds = max(ends.values()) if len(ends) == len(rejection.ending) else GIVE_UP_S
        if seconds > BOUND_S:
            problems.append(f"it took {seconds:.1f} s")
        if problems:
            what = f"{rejection.what}, {rejection.at_fault}"
            print(f"failed    {what}: {'; '.join(problems)}\n{job.all_output()}", flush=True)
        return seconds, problems


def measure(bench):
    need(environment)
    ground, seconds, failed = Ground(bench.program("gpu_train")), {}, 0
    try:
        note(bench, "RANK=0..2 WORLD_SIZE=3", ground.graph.command("RUN", small_graph.LONG))
        for rejection in rejections():
            took_s, problems = reject(ground, rejection)
            seconds.setdefault(f"seconds, {rejection.what}", []).append(took_s)
            failed += bool(problems)
    finally:
        ground.remove()
    return {"rejections": [sum(map(len, seconds.values()))], "failed rejections": [failed], **seconds}


KINDS = dict.fromkeys(rejection.what for rejection in rejections())
GOALS = [
    Goal("rejections", "different token, version, configuration, data or number of ranks, a duplicate rank, a port in "
         "use: the ranks at fault and those that can detect it end within "
         f"{BOUND_S} s, with an error that names the rank and the reason", measure,
         {"rejections": reported(), "failed rejections": none(),
          **{f"seconds, {what}": each_at_most(BOUND_S) for what in KINDS}}),
]
