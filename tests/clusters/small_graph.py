# SPDX-License-Identifier: Apache-2.0
"""A run of gpu_train on a small generated graph, in its own folder, for any way to start it."""
import json
import tempfile
import pathlib

from processes import clean_environment, Job

CONFIG = """[model]
dim = 16
[train]
batch_size = 32
microbatches = 8
[run]
device = "host"
threads = 1
"""
LONG = 10**12  # more steps than any test runs


class SmallGraph:
    def __init__(self, program):
        self._program = program
        self._held = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self._held.name)
        facts = [f"e{s}\tby{r}\te{(s + r) % 500}\n" for s in range(500) for r in (1, 7, 20)]
        (self.folder / "train.txt").write_text("".join(facts[10:]))
        (self.folder / "valid.txt").write_text("".join(facts[:5]))
        (self.folder / "test.txt").write_text("".join(facts[5:10]))
        (self.folder / "small.toml").write_text(CONFIG)

    def remove(self):
        self._held.cleanup()

    def arguments(self, run, steps, **settings):
        """Returns arguments of gpu_train. settings: cluster__peer_timeout_s=2 for --set cluster.peer_timeout_s=2."""
        changed = {"train.steps": steps, **{name.replace("__", "."): value for name, value in settings.items()}}
        return ["train", "small.toml", "--run", run,
                *[word for name, value in changed.items() for word in ("--set", f"{name}={value}")]]

    def command(self, run, steps, *more, **settings):
        return [self._program, *self.arguments(run, steps, **settings), *more]

    def alone(self, run, steps, *more):
        """Starts a job of one process without a launcher, and returns it."""
        job = Job(1)
        job.start_rank(0, self.command(run, steps, *more), clean_environment(), self.folder)
        return job

    def summary(self, run):
        return json.loads((self.folder / run / "summary.json").read_text())
