#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs gpu_train as a user does, and checks its output, its exit status, and its reaction to signals.

usage: gpu_train_test.py PROGRAM
"""
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
# Variables of a launcher that started these tests must not reach the programs that they start.
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_", "GPUPS_", "UCX_", "PMI", "OMPI_", "SLURM_", "PRTE_",
             "TORCHELASTIC_")
CONFIG = """[model]
dim = 16
[train]
epochs = 2
batch_size = 32
[run]
device = "host"
threads = 1
"""


class GpuTrain(unittest.TestCase):
    def setUp(self):
        self.held = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.held.name)
        facts = [f"e{s}\tby{r}\te{(s + r) % 60}\n" for s in range(60) for r in (1, 7, 20)]
        (self.folder / "train.txt").write_text("".join(facts[10:]))
        (self.folder / "valid.txt").write_text("".join(facts[:5]))
        (self.folder / "test.txt").write_text("".join(facts[5:10]))
        self.config = self.folder / "small.toml"
        self.config.write_text(CONFIG)

    def tearDown(self):
        self.held.cleanup()

    def run_it(self, *arguments, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **options}
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.folder, text=True, **options)

    def expect_error(self, words, *arguments, **options):
        done = self.run_it(*arguments, **options)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn(words, done.stderr)
        last = done.stderr.splitlines()[-1]
        self.assertRegex(last, r"^gpu_train: error: .* \(.*\): ", done.stderr)
        return done.stderr

    def expect_one_line_error(self, words, *arguments):
        self.assertEqual(self.expect_error(words, *arguments).count("\n"), 1)

    def train(self, *arguments, **options):
        done = self.run_it("train", self.config, *arguments, **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def test_prints_version_and_help(self):
        done = self.run_it("--version")
        self.assertEqual(done.returncode, 0)
        for word in ("gpu_train 0.", "host code for: ", "CUDA: ", "CUDA devices: "):
            self.assertIn(word, done.stdout)
        done = self.run_it("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("train", "eval", "nearest", "Examples:", "Exit status: 0", "training data again"):
            self.assertIn(word, done.stdout)
        for command, words in (("train", ("default: run.ranks, else 1", "default: run.device, else auto",
                                          "CONFIG REQUIRED", "--set SECTION.KEY=VALUE ... Overrides",
                                          "--set train.epochs=5 --set")),
                               ("eval", ("default: test", "--split valid|test")),
                               ("nearest", ("default: 10", "--count N", "NAME ... REQUIRED")),
                               ("predict", ("FILE REQUIRED", "--out FILE")), ("export", ("--format npy|flat",)),
                               ("report", ("RUN_FOLDER REQUIRED", "default: report.html in the folder")),
                               ("convert", ("TEXT REQUIRED", "--multi-hot NAMES ...")),
                               ("doctor", ("--run FOLDER", "CONFIG Configuration"))):
            done = self.run_it(command, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertNotRegex(done.stdout, r"\w TEXT\b(?! BINARY)", "an argument has no description")
            for word in words:
                self.assertIn(word, " ".join(done.stdout.split()))

    def test_trains_evaluates_and_finds_neighbours(self):
        done = self.train("--run", "out", "--ranks", 2, "--set", "train.seed=3")
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"(?s)\nmemory:\n +\d.*; training took 0:\d\d, this process 0:\d\d in all")
        self.assertNotIn("\r", done.stderr)
        summary = json.loads((self.folder / "out" / "summary.json").read_text())
        self.assertRegex(summary["table_hash"], "^[0-9a-f]{16}$")
        self.assertEqual(summary["ranks"], 2)
        for split in ("valid", "test"):
            done = self.run_it("eval", "out", "--split", split)
            self.assertEqual(json.loads(done.stdout), summary["best"][split], done.stderr)
        done = self.run_it("nearest", "out", "e1", "e2", "--count", 3)
        self.assertEqual(len(done.stdout.splitlines()), 8, done.stderr)

    def test_writes_a_report_of_a_run(self):
        self.train("--run", "out")
        printed = [self.run_it("report", "out", *file).stdout for file in ((), ("mine.html",), ("-",))]
        self.assertEqual(printed, ["out/report.html\n", "mine.html\n", (self.folder / "mine.html").read_text()])
        self.expect_one_line_error("nothing.html cannot be written", "report", "out", "missing/nothing.html")

    def test_converts_click_data(self):
        (self.folder / "clicks.tsv").write_text("1\t5\t\ta|b\tx\nbad\n0\t-1\t2\t\ty\n")
        shape = ("--numeric-columns", 2, "--categorical-columns", 2, "--multi-hot", "C1")
        done = self.run_it("convert", "clicks.tsv", "clicks.bin", *shape, "--bad-share-max", 0.5)
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual((report["samples"], report["bad"]), (2, 1))
        self.assertEqual(report["bytes"], (self.folder / "clicks.bin").stat().st_size)
        self.assertGreater(report["seconds"], 0)
        self.assertIn("skipped 1 bad line of 3 in clicks.tsv: clicks.tsv:2 has 1 field", done.stderr)

        convert = ("convert", "clicks.tsv", "new.bin")
        self.expect_one_line_error("allow a share of bad lines with --bad-share-max", *convert, *shape)
        self.expect_one_line_error("3 bad lines of 3", *convert)  # Criteo's columns
        self.expect_one_line_error("'C9' is not a category", *convert, "--categorical-columns", 2, "--weighted", "C9")
        self.expect_one_line_error("--numeric-columns is '-1'", *convert, "--numeric-columns=-1")
        self.expect_one_line_error("--bad-share-max is 'nan'", *convert, "--bad-share-max", "nan")
        self.expect_one_line_error("--threads is 'all'", *convert, "--threads", "all")
        self.expect_one_line_error("no option --multi-hot-of", *convert, "--multi-hot-of", "C1")
        self.expect_one_line_error("BINARY is missing", "convert", "clicks.tsv")
        self.expect_one_line_error("exists and is not a binary file", "convert", "clicks.bin", "clicks.tsv")
        self.assertFalse({"new.bin", "new.bin.new"} & set(self.names()))

    def test_creates_folder_if_none_is_given(self):
        self.assertEqual(self.run_it("train", self.config).returncode, 0)
        [made] = (self.folder / "runs").iterdir()
        self.assertRegex(made.name, r"^small-\d{8}-\d{6}$")

    def test_errors_are_one_line_with_status_2(self):
        expect = self.expect_one_line_error
        before = self.names()
        expect("none.toml cannot be read", "train", "none.toml")
        expect("did you mean 'dim'?", "train", self.config, "--set", "model.dimm=3")
        expect("device 'tpu' is unknown", "train", self.config, "--device", "tpu")
        expect("error: --ranks two: run.ranks is 'two' (the key needs an integer)",
               "train", self.config, "--ranks", "two")
        expect("error: --threads -1: ", "train", self.config, "--threads", "-1")
        expect("cannot be created", "train", self.config, "--run", "train.txt/out")
        expect("--resume has no folder", "train", self.config, "--resume")
        expect("has no checkpoint", "eval", "nowhere")
        expect("File name too long", "eval", "x" * 300)
        (self.folder / "train.txt").write_text("one field\n")
        expect("train.txt:1 has 1 field", "train", self.config)
        self.assertEqual(self.names(), before)

    def test_failed_start_leaves_no_folder(self):
        before = self.names()
        self.expect_error("9 ranks and 8 microbatches", "train", self.config, "--ranks", 9, "--set",
                          "train.microbatches=8")
        self.expect_error("device 'tpu' is unknown", "train", self.config, "--run", "a/b", "--device", "tpu")
        self.assertEqual(self.names(), before)

    def test_rejects_invalid_command_lines(self):
        expect = self.expect_one_line_error
        expect("no command was given", "--set", "a.b=c")
        expect("no command was given")
        expect("did you mean 'train'?", "trian", self.config)
        expect("train has no option --unknown (it would have no effect): see ", "train", self.config, "--unknown")
        expect("has no option --rank (it would have no effect): did you mean --ranks?",
               "train", self.config, "--rank=2")
        expect("no option --resum ", "train", "--resum")
        expect("CONFIG is missing", "train")
        expect("RUN_FOLDER is missing", "eval")
        expect("NAME is missing", "nearest", "out")
        expect("'more' is one argument too many", "train", self.config, "more")
        expect("write --set before each setting", "train", self.config, "--set", "train.epochs=1", "train.batch_size=8")
        expect("--ranks has no value", "train", self.config, "--ranks")
        expect("--run is given 2 times", "train", self.config, "--run", "a", "--run", "b")
        expect("--split is 'tset'", "eval", "out", "--split", "tset")
        for count in ("0", "-1", "1000001", "ten", "1.5", ""):
            expect(f"--count is '{count}'", "nearest", "out", "e1", "--count", count)

    def test_overwrites_no_files_of_the_user(self):
        text = "# mine\n" + CONFIG + '[data]\nfolder = ".."\n'
        mine = self.folder / "mine" / "config.toml"
        mine.parent.mkdir()
        mine.write_text(text)
        self.expect_error("choose another folder", "train", mine, "--run", "mine")
        self.expect_error("not written by gpu_train", "train", self.config, "--run", "mine")
        self.assertEqual([path.name for path in mine.parent.iterdir()], ["config.toml"])
        self.assertEqual(mine.read_text(), text)
        (self.folder / "metrics.jsonl").write_text("{}\n")
        self.expect_error("does not belong to a run", "train", self.config, "--run", ".")
        self.assertEqual((self.folder / "metrics.jsonl").read_text(), "{}\n")

    def test_unwritable_stderr_does_not_stop_a_run(self):
        with open("/dev/full", "w") as full:
            self.train("--run", "full", stderr=full)
            self.assertEqual(self.run_it("train", self.config, "--run", "full", stderr=full).returncode, 2)
        for streams in ((2,), (0, 1, 2)):
            name = f"closed{len(streams)}"
            self.train("--run", name, stdin=None, stdout=None, stderr=None, close_fds=False,
                       preexec_fn=lambda: [os.close(stream) for stream in streams])
            lines = (self.folder / name / "metrics.jsonl").read_text().splitlines()
            self.assertTrue(all(json.loads(line) for line in lines))
        reader, writer = os.pipe()
        os.close(reader)
        self.train("--run", "gone", stderr=writer)
        os.close(writer)

    def test_unwritable_stdout_is_an_error(self):
        self.train("--run", "out")
        for command in (("eval", "out"), ("nearest", "out", "e1"), ("--help",)):
            with open("/dev/full", "w") as full:
                done = self.run_it(*command, stdout=full)
            self.assertEqual(done.returncode, 1, command)
            self.assertIn("cannot be written", done.stderr)
        done = self.run_it("eval", "out", stdout=None, preexec_fn=lambda: os.close(1))
        self.assertEqual(done.returncode, 1)

    def test_file_size_limit_is_an_error(self):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3000, 3000))
        self.expect_error("File too large", "train", self.config, "--run", "out", preexec_fn=limit)

    def test_full_disk_at_start_leaves_no_files(self):
        """A limit on file sizes stands for a full disk: config.toml does not fit."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
        before = self.names()
        self.expect_error("File too large", "train", self.config, "--run", "out", preexec_fn=limit)
        self.assertEqual(self.names(), before)
        (self.folder / "out").mkdir()
        self.expect_error("File too large", "train", self.config, "--run", "out", preexec_fn=limit)
        self.assertEqual(list((self.folder / "out").iterdir()), [])
        self.train("--run", "out")

    def test_removed_run_folder_is_an_error(self):
        command = [PROGRAM, "train", str(self.config), "--run", "out", "--set", "train.epochs=100000"]
        with subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE, text=True) as running:
            try:
                self.wait_for(running, "epoch 1:")
                (self.folder / "out").rename(self.folder / "gone")
                running.send_signal(signal.SIGTERM)
                rest = running.stderr.read()
            finally:
                running.kill()
        self.assertEqual(running.returncode, 2, rest)
        self.assertNotIn("results in", rest)
        self.assertRegex(rest.splitlines()[-1], r"^gpu_train: error: .* \(.*\): ")

    def test_checkpoint_without_manifest_is_kept(self):
        self.train("--run", "out")
        checkpoint = self.folder / "out" / "checkpoint"
        manifest = checkpoint / "manifest.json"
        text = manifest.read_text()
        manifest.unlink()
        before = sorted(checkpoint.iterdir())
        self.expect_error("has no manifest.json", "train", self.config, "--run", "out", "--resume")
        self.expect_error("has no manifest.json", "train", self.config, "--run", "out")
        self.assertEqual(sorted(checkpoint.iterdir()), before)
        manifest.write_text(text)
        self.assertIn("training is already complete", self.train("--run", "out", "--resume").stderr)

    def write_entities(self, count):
        (self.folder / "train.txt").write_text("".join(f"e{s}\tby1\te{s + 1}\n" for s in range(count - 1)))

    def expect_planned(self, *settings, ranks=1):
        """Expects that planned memory is within 30 % of peak memory, which includes about 20 MB of program code."""
        set_all = [f"--set={setting}" for setting in ("train.steps=6", "train.validate_every=0", *settings)]
        done = self.train("--run", "planned", "--ranks", ranks, *set_all)
        total = re.search(r"^ +([0-9.]+) MiB  total on the host", done.stderr, re.MULTILINE)
        self.assertIsNotNone(total, done.stderr)
        taken = json.loads((self.folder / "planned" / "summary.json").read_text())["peak_memory"]["process"] / 2**20
        shutil.rmtree(self.folder / "planned")
        self.assertGreater(taken, 150)
        self.assertGreater(float(total[1]), .7 * (taken - 20), done.stderr)
        self.assertLess(float(total[1]), 1.3 * taken, done.stderr)

    def test_memory_plan_matches_peak_memory(self):
        if b"__asan_init" in pathlib.Path(PROGRAM).read_bytes():
            self.skipTest("the address sanitizer takes memory of its own: use another preset")
        self.config.write_text(CONFIG.replace("epochs = 2\n", ""))
        self.write_entities(100000)
        self.expect_planned("model.negatives=20000")
        self.expect_planned("model.negatives=20000", "train.lookahead=2", "train.batch_size=128", ranks=2)
        self.expect_planned("model.name=transe", "model.negatives=8000", "model.dim=64")
        self.expect_planned("model.sampling=shared", "model.negatives=100000", "train.lookahead=1")
        self.expect_planned("model.sampling=kvsall", "model.reciprocal=true", "model.entity_dropout=.1")

    def test_rejects_plan_that_does_not_fit(self):
        before = self.names()
        self.write_entities(20000)
        text = self.expect_error("of memory on the host", "train", self.config, "--run", "out", "--set",
                                 "model.negatives=20000", "--set", "train.lookahead=1024", "--set",
                                 "train.batch_size=16384", "--set", "train.epochs=2000")
        self.assertRegex(text, r"TiB for 1025 prepared batches \(lower train.batch_size or model.negatives, or train")
        self.assertEqual(self.names(), before)

    def test_rejects_second_run_in_a_folder(self):
        command = [PROGRAM, "train", str(self.config), "--run", "out", "--set", "train.epochs=100000"]
        with subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE, text=True) as running:
            self.wait_for(running, "epoch 1:")
            self.expect_error("in use by another gpu_train", "train", self.config, "--run", "out", "--resume")
            running.send_signal(signal.SIGHUP)
            rest = running.stderr.read()
        self.assertEqual(running.returncode, 0, rest)
        self.assertRegex(rest.splitlines()[-1], r"^stopped at step \d+ by a signal; resume with --resume --run .*/out$")
        self.assertNotIn("lock", [path.name for path in (self.folder / "out").iterdir()])

    def test_ignores_hang_up_under_nohup(self):
        """A signal that was ignored when the program started stays ignored, although UCX sets a handler when loaded."""
        command = [PROGRAM, "train", str(self.config), "--run", "out", "--set", "train.epochs=100000"]
        with subprocess.Popen(command, cwd=self.folder, stderr=subprocess.PIPE, text=True,
                              preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)) as running:
            try:
                self.wait_for(running, "epoch 1:")
                for epoch in (2, 3):
                    self.assertTrue(self.ignores_hangup(running.pid))
                    running.send_signal(signal.SIGHUP)
                    self.wait_for(running, f"epoch {epoch}:")
                running.send_signal(signal.SIGTERM)
                rest = running.stderr.read()
            finally:
                running.kill()
        self.assertEqual(running.returncode, 0, rest)
        self.assertGreater(json.loads((self.folder / "out" / "summary.json").read_text())["epochs"], 3)

    def ignores_hangup(self, pid):
        """Returns whether the process ignores SIGHUP (signal 1)."""
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        return bool(int(status.split("SigIgn:")[1].split()[0], 16) & 1)

    def join_alone(self, number):
        """Starts rank 0 of 2, sends it a signal while it waits for rank 1, and returns its exit status and stderr."""
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
        job = {"RANK": "0", "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        token = self.folder / "token"
        token.write_text("0123456789abcdef0123456789abcdef\n")
        token.chmod(0o600)
        with subprocess.Popen([PROGRAM, "train", str(self.config), "--run", "out"], cwd=self.folder, text=True,
                              stderr=subprocess.PIPE, env={**kept, **job, "GPUPS_TOKEN_FILE": str(token)}) as running:
            try:
                while running.poll() is None:  # until it listens for other ranks
                    try:
                        socket.create_connection(("127.0.0.1", port)).close()
                        break
                    except ConnectionRefusedError:
                        pass
                running.send_signal(number)
                text = running.communicate(timeout=100)[1]  # cluster.join_timeout_s is 120
            finally:
                running.kill()
        return running.returncode, text

    def test_signal_ends_the_join(self):
        if "no UCX" in self.run_it("doctor").stdout:
            self.skipTest("this build has no UCX: processes cannot join")
        before = [*self.names(), "token"]
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
            status, text = self.join_alone(number)
            self.assertEqual(status, 2, text)
            self.assertRegex(text, r"(?m)^gpu_train: error: stopped by a signal before .* \(.*\): ")
            self.assertEqual(self.names(), sorted(before))

    def wait_for(self, running, beginning):
        for line in running.stderr:
            if line.startswith(beginning):
                return
        self.fail(f"no line begins with '{beginning}'")

    def test_run_resumes_after_a_signal(self):
        long_run = ["train", str(self.config), "--run", "out", "--set", "train.epochs=100000"]
        running = subprocess.Popen([PROGRAM, *long_run], cwd=self.folder, stderr=subprocess.PIPE, text=True)
        self.wait_for(running, "epoch 1:")
        running.send_signal(signal.SIGTERM)
        rest = running.stderr.read()
        running.stderr.close()
        self.assertEqual(running.wait(), 0, rest)
        self.assertIn("by a signal; resume with --resume", rest)
        steps = json.loads((self.folder / "out" / "summary.json").read_text())["steps"]
        self.expect_error("contains a checkpoint", *long_run)
        more = ["--run", "out", "--resume", "--set", f"train.steps={steps + 5}"]
        self.config.write_text(CONFIG.replace("epochs = 2\n", ""))
        done = self.train(*more)
        self.assertIn(f"resuming from step {steps}", done.stderr)
        self.assertEqual(json.loads((self.folder / "out" / "summary.json").read_text())["steps"], steps + 5)
        done = self.train(*more)
        self.assertIn(f"training is already complete: step {steps + 5} of {steps + 5}", done.stderr)


if __name__ == "__main__":
    PROGRAM = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
