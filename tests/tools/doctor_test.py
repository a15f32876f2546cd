#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs gpu_train doctor as a user does, alone and as a rank of a job, and checks its findings.

usage: doctor_test.py PROGRAM
"""
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
CONFIG = """[model]
dim = 16
[run]
device = "host"
threads = 1
"""
TOKEN = "0123456789abcdef0123456789abcdef\n"
# Variables of a launcher that started these tests must not reach the programs that they start.
LAUNCHERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_", "GPUPS_", "UCX_", "PMI", "OMPI_", "SLURM_", "PRTE_",
             "TORCHELASTIC_")


class DoctorTest(unittest.TestCase):
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

    def environment(self, variables):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHERS)}
        return {**kept, **{name: str(value) for name, value in variables.items()}}

    def start(self, *arguments, **variables):
        return subprocess.Popen([PROGRAM, "doctor", *map(str, arguments)], cwd=self.folder, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment(variables))

    def end(self, process, status):
        out, err = process.communicate(timeout=300)
        self.assertEqual(process.returncode, status, out + err)
        return out

    def doctor(self, status, *arguments, **variables):
        out = self.end(self.start(*arguments, **variables), status)
        for line in out.splitlines():
            self.assertRegex(line, "^(ok|note|warning|problem): ")
            if not line.startswith(("ok", "note")):
                self.assertRegex(line, r"^[a-z]+: .* \(.*\): ", "not in the form of errors")
        self.assertEqual(status != 0, "problem: " in out, out)
        levels = [line[:line.index(":")] for line in out.splitlines()]
        worst = max(levels, key=("ok", "note", "warning", "problem").index)
        self.assertEqual(levels[-1], worst, out)  # the last line is about all
        self.assertIn("the checks have found", out.splitlines()[-1])
        return out

    def token(self, text=TOKEN, mode=0o600):
        path = self.folder / "token"
        path.write_text(text)
        path.chmod(mode)
        return path


class Alone(DoctorTest):
    def test_reports_no_problem_on_this_machine(self):
        out = self.doctor(0)
        for word in ("ok: gpups 0.", "cores can be used", "files can be open", "it is the only one of the job"):
            self.assertIn(word, out.replace("core can", "cores can"))

    def test_probe_leaves_no_files(self):
        before = sorted(self.folder.iterdir())
        out = self.doctor(0, self.config)
        self.assertIn("60 entities", out)
        self.assertIn("trains on host", out)
        self.assertIn("a checkpoint needs", out)
        self.assertEqual(sorted(self.folder.iterdir()), before)

    def test_prints_notices_of_the_data_as_notes(self):
        self.assertNotIn("note: ", self.doctor(0, self.config))
        (self.folder / "test.txt").write_text((self.folder / "train.txt").read_text())
        out = self.doctor(0, self.config)
        self.assertRegex(out, "(?m)^note: 170 .* test ")
        self.assertRegex(out.splitlines()[-1], "^(note|warning): the checks have found no problem")

    def test_reports_errors_of_the_run(self):
        self.assertIn("none.toml cannot be read", self.doctor(2, "none.toml"))
        self.assertIn("there is no key", self.doctor(2, self.config, "--set", "model.dimension=3"))
        (self.folder / "train.txt").unlink()
        (self.folder / "file").write_text("in the way")
        out = self.doctor(2, self.config, "--run", "file", "--device", "cuda:99")
        for word in ("train.txt", "the run's folder", "cuda:99"):
            self.assertRegex(out, f"(?m)^problem: .*{word}")

    def test_rejects_options_without_effect(self):
        done = subprocess.run([PROGRAM, "doctor", "--run", "x"], cwd=self.folder, text=True, capture_output=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--run x has no effect without a configuration", done.stderr)

    def test_checks_the_token(self):
        self.assertIn("has 32 bytes", self.doctor(0, GPUPS_TOKEN_FILE=self.token()))
        self.assertIn("warning: the token file", self.doctor(0, GPUPS_TOKEN_FILE=self.token(mode=0o644)))
        self.assertIn("it can be guessed", self.doctor(0, GPUPS_TOKEN_FILE=self.token("abc\n")))

    def test_reports_unknown_network_devices(self):
        out = self.doctor(0, UCX_NET_DEVICES="no_such_device")
        if "no UCX" not in out:
            self.assertRegex(out, "(?m)^warning: UCX_NET_DEVICES contains no_such_device")


class InAJob(DoctorTest):
    """Runs the doctor as a rank of a job that environment variables describe."""

    def job(self, rank, size, port, address="127.0.0.1", **more):
        return {"RANK": rank, "WORLD_SIZE": size, "MASTER_ADDR": address, "MASTER_PORT": port, **more}

    def free_port(self):
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            return one.getsockname()[1]

    def test_reports_occupied_port(self):
        with socket.socket() as listener:
            listener.bind(("", 0))
            listener.listen()
            port = listener.getsockname()[1]
            out = self.doctor(2, **self.job(0, 2, port))
        self.assertIn(f"problem: rank 0: port {port} is in use", out)

    def test_rejects_inconsistent_environment(self):
        self.doctor(2, RANK=0)
        self.doctor(2, **self.job(3, 2, 29500))

    def test_reports_unresolvable_address(self):
        out = self.doctor(2, **self.job(1, 2, 29500, "no.such.host.invalid", GPUPS_TOKEN_FILE=self.token()))
        self.assertIn("problem: rank 1: no.such.host.invalid has no address", out)

    def test_reports_missing_token_on_a_network(self):
        out = self.doctor(2, **self.job(1, 2, 29500, "192.0.2.1"))
        self.assertIn("GPUPS_TOKEN_FILE", out)

    def ranks(self, *arguments, size=3, configs=None):
        """Returns the output of each rank, the exit statuses, and all output."""
        if "no UCX" in self.doctor(0):
            self.skipTest("this build has no UCX: processes cannot join")
        job = {"size": size, "port": self.free_port(), "GPUPS_TOKEN_FILE": self.token()}
        started = [self.start(*(arguments if configs is None else (configs[rank],)), **self.job(rank, **job))
                   for rank in range(size)]
        outs = [process.communicate(timeout=300) for process in started]
        return [out for out, _ in outs], [process.returncode for process in started], outs

    def test_rank_0_reports_findings_of_all_ranks(self):
        outs, statuses, all_of_it = self.ranks(self.config, "--run", "out")
        self.assertEqual(statuses, [0, 0, 0], all_of_it)
        self.assertEqual(outs[1:], ["", ""])  # rank 0 prints for all
        self.assertIn("the checks have found no problem", outs[0].splitlines()[-1])
        for word in ("ok: rank 0: gpups 0.", "ok: ranks 1-2: gpups 0.", "ok: rank 2: local rank 2 of 3",
                     "all ranks have access to the run's folder",
                     "from rank 0 to rank 1: ", "from rank 0 to rank 2: "):
            self.assertIn(word, outs[0])
        self.assertFalse((self.folder / "out").exists())

    def test_reports_setting_that_differs(self):
        other = self.folder / "other.toml"
        other.write_text(CONFIG.replace("16", "32"))
        outs, statuses, all_of_it = self.ranks(configs=[self.config, other, self.config])
        self.assertEqual(statuses, [2, 2, 2], all_of_it)
        self.assertIn("problem: rank 0: rank 1 has model.dim = 32 where rank 0 has model.dim = 16", outs[0])

    def test_rank_0_reports_its_findings_before_others_join(self):
        if "no UCX" in self.doctor(0):
            self.skipTest("this build has no UCX: processes cannot join")
        job = self.job(0, 2, self.free_port(), GPUPS_TOKEN_FILE=self.token())
        process = self.start(self.config, "--set", "cluster.join_timeout_s=1", **job)
        out = self.end(process, 2)
        self.assertRegex(out, "(?s)^ok: rank 0: gpups 0.*problem: rank 0: rank 1 of 2 did not join within 1 s")
        self.assertEqual(out.count("rank 0: gpups 0."), 1, out)

    def test_reports_error_of_one_rank(self):
        outs, statuses, all_of_it = self.ranks(configs=[self.config, self.config, "none.toml"])
        self.assertEqual(statuses, [2, 2, 2], all_of_it)
        self.assertIn("problem: rank 2: none.toml cannot be read", outs[0])
        self.assertTrue(outs[0].splitlines()[-1].startswith("problem: the checks have found a problem"), outs[0])

    def test_reports_ranks_with_other_data(self):
        other = self.folder / "other"
        other.mkdir()
        for name in ("train.txt", "valid.txt", "test.txt", "small.toml"):
            (other / name).write_text((self.folder / name).read_text())
        with (other / "train.txt").open("a") as train:
            train.write("e1\tby2\te3\n")
        outs, statuses, all_of_it = self.ranks(configs=[self.config, self.config, other / "small.toml"])
        self.assertEqual(statuses, [2, 2, 2], all_of_it)
        self.assertIn("problem: rank 0: rank 2 has other data than rank 0", outs[0])


if __name__ == "__main__":
    PROGRAM = os.path.abspath(sys.argv.pop(1))
    unittest.main()
