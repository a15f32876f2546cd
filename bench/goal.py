# SPDX-License-Identifier: Apache-2.0
"""Goals: their definition, functions that run programs for them, and the output of verdicts."""
import contextlib
import dataclasses
import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import time
from typing import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORES = 2  # all goals are stated for this number of cores


class CannotMeasure(Exception):
    """Data or a program is missing, or a command failed. A goal that cannot be measured is missed."""


@dataclasses.dataclass
class Limit:
    text: str
    holds: Callable[[list], bool]


def at_least(bound):
    return Limit(f"median >= {bound:,}", lambda values: statistics.median(values) >= bound)


def at_most(bound):
    return Limit(f"median <= {bound:,}", lambda values: statistics.median(values) <= bound)


def all_equal():
    return Limit("all equal", lambda values: len(values) > 1 and len(set(values)) == 1)


def each_at_most(bound):
    return Limit(f"each <= {bound:,}", lambda values: max(values) <= bound)


def none():
    return Limit("none", lambda values: values == [0])


def reported():
    """Returns a limit that always holds, for a number that is only printed."""
    return Limit("no promise", lambda values: True)


@dataclasses.dataclass
class Goal:
    name: str
    text: str
    measure: Callable  # (Bench) -> {name of a number: its values}
    limits: dict  # name of a number -> Limit


class Bench:
    """Paths and options of a measurement, and the commands that it ran."""

    def __init__(self, build, data, kge_generator, losses=100, seed=1, mf_generator=None, fuzz_build="build/fuzz",
                 fuzz_seconds=3600):
        self.losses, self.seed = losses, seed
        self.fuzz_build, self.fuzz_seconds = pathlib.Path(fuzz_build).resolve(), fuzz_seconds
        self.build = pathlib.Path(build).resolve()
        self.data = data and pathlib.Path(data).resolve()
        self.kge_generator = kge_generator
        self.mf_generator = mf_generator
        self.work = ROOT / "build" / "goals"
        self.commands = []
        self.cores = set(sorted(os.sched_getaffinity(0))[:CORES])

    def program(self, name):
        found = [path for path in self.build.rglob(name) if path.is_file() and os.access(path, os.X_OK)]
        if not found:
            raise CannotMeasure(f"there is no {name} below {self.build}: build it")
        return found[0]

    def run(self, command, timeout_s=1800, env=None):
        """Runs a command on CORES cores, and returns its seconds."""
        return self.run_for_output(command, timeout_s, env)[0]

    def output(self, command, timeout_s=1800):
        """Runs a command on CORES cores, and returns the JSON of the last line that it printed."""
        return json.loads(self.run_for_output(command, timeout_s)[1].splitlines()[-1])

    @contextlib.contextmanager
    def on_cores(self):
        """Binds this thread, and all that it starts in the context, to CORES cores."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, self.cores)
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)

    def run_for_output(self, command, timeout_s, env=None):
        """Runs a command on CORES cores, and returns its seconds and its output. Raises CannotMeasure if it fails."""
        command = [str(word) for word in command]
        shown = [f"{name}={value}" for name, value in (env or {}).items()] + [shlex.quote(word) for word in command]
        text = " ".join(shown)
        self.commands.append(text)
        begin = time.monotonic()
        try:
            with self.on_cores():
                done = subprocess.run(command, cwd=ROOT, env={**os.environ, **(env or {})}, timeout=timeout_s,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      text=True, errors="replace")
        except subprocess.TimeoutExpired:
            raise CannotMeasure(f"timeout of {timeout_s} s: {text}") from None
        if done.returncode != 0:
            tail = "\n".join(done.stdout.splitlines()[-5:])
            raise CannotMeasure(f"status {done.returncode} from {text}\n{tail}")
        return time.monotonic() - begin, done.stdout

    def fresh_folder(self, name):
        folder = self.work / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        return folder

    def train(self, config, run, settings, resume=False, env=None):
        """Trains into a folder below the work folder: a new one, or with `resume` an existing one. `env` has additional
        environment variables. Returns the summary and `wall_seconds`, the time of the command."""
        folder = self.work / run if resume else self.fresh_folder(run)
        command = [self.program("gpu_train"), "train", ROOT / "examples/configs" / config, "--run", folder]
        seconds = self.run(command + ["--resume"] * resume + overrides(settings), env=env)
        return {**summary(folder), "wall_seconds": seconds}


def overrides(settings):
    return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]


def summary(folder):
    file = folder / "summary.json"
    if not file.exists():
        raise CannotMeasure(f"{file} was not written")
    return json.loads(file.read_text())


def spread(values):
    """Returns 'median (least .. most, number)' of numbers, or the distinct values of anything else."""
    if all(isinstance(value, (int, float)) for value in values):
        middle, least, most = statistics.median(values), min(values), max(values)
        return f"{middle:,.4g} ({least:,.4g} .. {most:,.4g}, n = {len(values)})" if middle < 1000 else \
            f"{middle:,.0f} ({least:,.0f} .. {most:,.0f}, n = {len(values)})"
    return f"{', '.join(sorted(set(map(str, values))))} (n = {len(values)})"


def judge(goal, bench):
    """Measures a goal, prints the results, and returns whether the goal holds."""
    bench.commands = []
    print(f"goal      {goal.name}: {goal.text}", flush=True)
    try:
        numbers = goal.measure(bench)
        verdicts = [goal.limits[name].holds(values) for name, values in numbers.items()]
        for (name, values), holds in zip(numbers.items(), verdicts):
            print(f"measured  {name} {spread(values)}: {goal.limits[name].text} {'holds' if holds else 'IS MISSED'}")
        holds = all(verdicts) and set(numbers) == set(goal.limits)
    except CannotMeasure as problem:
        print(f"measured  nothing: {problem}")
        holds = False
    print(f"verdict   {'holds' if holds else 'MISSED'}")
    if bench.commands:
        print(f"command   {bench.commands[-1]}  (last of {len(bench.commands)})")
    print(flush=True)
    return holds
