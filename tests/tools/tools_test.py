#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of tools that evaluate results: counts of tests, verdicts of bench/goals, comparisons of benchmarks, resource
use of kernels; and of the corpora of fuzz targets."""
import contextlib
import io
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench"), str(ROOT / "tests" / "fuzz")]
import corpus  # noqa: E402
import count_tests  # noqa: E402
import goal  # noqa: E402
import goals_device  # noqa: E402
import goals_slice  # noqa: E402


class CountTests(unittest.TestCase):
    def test_outcomes(self):
        lines, well = count_tests.report(ElementTree.fromstring("""<testsuite>
            <testcase name="a" status="run"/>
            <testcase name="b" status="fail"><failure message=""/></testcase>
            <testcase name="c" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
              <system-out>no clang-format-14</system-out></testcase>
            <testcase name="d" status="notrun"><skipped message="Unable to find executable"/></testcase>
            </testsuite>"""))
        self.assertEqual(lines, ["failed: b", "skipped: c: no clang-format-14", "failed: d",
                                 "1 passed, 2 failed, 1 skipped"])
        self.assertFalse(well)

    def of_program(self, status, *lines):
        """Returns the report of an entry of ctest whose cases were recorded in these lines."""
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "p.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
            root = ElementTree.fromstring(f'<testsuite><testcase name="p" status="{status}"/></testsuite>')
            return count_tests.report(root, pathlib.Path(folder))

    def test_each_case_of_a_program_counts(self):
        passed = [{"started": "S.a"}, {"case": "S.a", "outcome": "passed", "why": ""}]
        cases = {"cases": ["S.a", "S.b", "S.c"]}
        self.assertEqual(self.of_program("run", {"cases": ["S.a"]}, *passed), (["1 passed, 0 failed, 0 skipped"], True))
        self.assertEqual(
            self.of_program("fail", cases, *passed, {"case": "S.b", "outcome": "failed", "why": "it was killed"},
                            {"case": "S.c", "outcome": "skipped", "why": "there is no CUDA device"}),
            (["failed: S.b: it was killed", "skipped: S.c: there is no CUDA device", "1 passed, 1 failed, 1 skipped"],
             False))

    def test_unrecorded_cases_fail(self):
        passed = [{"started": "S.a"}, {"case": "S.a", "outcome": "passed", "why": ""}]
        self.assertEqual(
            self.of_program("fail", {"cases": ["S.a", "S.b", "S.c"]}, *passed, {"started": "S.b"}),
            (["failed: S.b: it was running when its program was ended", "failed: S.c: it did not run",
              "1 passed, 2 failed, 0 skipped"], False))
        self.assertEqual(
            self.of_program("fail", {"cases": ["S.a"]}, *passed),
            (["failed: p: it failed, although none of its cases failed", "1 passed, 1 failed, 0 skipped"], False))

    def test_empty_suite_fails(self):
        self.assertFalse(count_tests.report(ElementTree.fromstring("<testsuite/>"))[1])


class Corpora(unittest.TestCase):
    def test_the_same_files_give_the_same_archive(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            archives = [folder / "1.zip", folder / "2.zip"]
            for archive, order in zip(archives, ("ab", "ba")):
                files = folder / f"of {archive.stem}"
                files.mkdir()
                for file in order:
                    (files / file).write_bytes(b"\0" * 99 + file.encode())
                corpus.pack(archive, files)
            self.assertEqual(archives[0].read_bytes(), archives[1].read_bytes())
            corpus.unpack(archives[0], folder / "unpacked")
            self.assertEqual({file.name: file.read_bytes()[99:] for file in (folder / "unpacked").iterdir()},
                             {"a": b"a", "b": b"b"})

    def test_each_target_has_a_corpus(self):
        targets = re.findall(r"^gpups_fuzz\((\w+)", (ROOT / "tests/fuzz/CMakeLists.txt").read_text(), re.MULTILINE)
        self.assertEqual(sorted(targets), sorted(path.stem for path in corpus.CORPORA.iterdir()))


class Goals(unittest.TestCase):
    def judge(self, measure, limit, build="/nowhere"):
        """Returns whether a goal with a limit on `x` holds, and the output."""
        with contextlib.redirect_stdout(io.StringIO()) as out:
            holds = goal.judge(goal.Goal("g", "text", measure, {"x": limit}), goal.Bench(build, None, None))
        return holds, out.getvalue()

    def test_limits(self):
        for limit, values, holds in [
                (goal.at_least(3), [1, 3, 9], True), (goal.at_least(3), [1, 2, 9], False),
                (goal.at_most(3), [1, 3, 9], True), (goal.at_most(3), [1, 4, 4], False),
                (goal.all_equal(), ["a", "a"], True), (goal.all_equal(), ["a", "b"], False),
                (goal.all_equal(), ["a"], False)]:
            self.assertEqual(self.judge(lambda bench: {"x": values}, limit)[0], holds, f"{limit.text} of {values}")

    def test_goal_without_measurement_fails(self):
        self.assertFalse(self.judge(lambda bench: {}, goal.at_least(0))[0])
        self.assertFalse(self.judge(lambda bench: {"x": [bench.program("gpu_train")]}, goal.at_least(0))[0])
        holds, text = self.judge(lambda bench: {"x": [bench.run(["false"])]}, goal.at_least(0))
        self.assertFalse(holds)
        self.assertIn("status 1 from false", text)

    def test_train_passes_settings_and_returns_summary(self):
        with tempfile.TemporaryDirectory() as folder:
            program = pathlib.Path(folder, "gpu_train")
            program.write_text("""#!/usr/bin/env bash
while [ "$1" != --run ]; do shift; done
mkdir -p "$2"
echo "{\\"table_hash\\": \\"$*\\"}" > "$2/summary.json"
""")
            program.chmod(0o755)
            bench = goal.Bench(folder, None, None)
            bench.work = pathlib.Path(folder, "work")
            for resume in (False, True):
                seen = bench.train("a.toml", "run", {"train.seed": 3}, resume=resume)["table_hash"]
                self.assertIn("--set train.seed=3", seen)
                self.assertEqual("--resume" in seen, resume)

    def test_goal_names_are_unique(self):
        names = [g.name for g in goals_slice.GOALS]
        self.assertEqual(len(names), len(set(names)))


class DeviceGoals(unittest.TestCase):
    """The goals of device code count what commands print, also if they fail."""

    @staticmethod
    def bench(output, status):
        """Returns a bench, and a replacement of run_to_end(), for commands with this output."""
        return goal.Bench("/nowhere", None, None), unittest.mock.patch.object(
            goals_device, "run_to_end", lambda *arguments: (status, 1.5, output))

    def test_counts_of_tests(self):
        bench, replaced = self.bench("failed: A.b\n7 passed, 1 failed, 2 skipped\n", 1)
        with replaced, contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(goals_device.tests(bench), {"passed": [7], "failed": [1], "skipped": [2]})
        self.assertIn("failed: A.b", out.getvalue())

    def test_mutations(self):
        build = unittest.mock.patch.object(goals_device, "built", lambda *arguments: pathlib.Path("tests/program"))
        bench, replaced = self.bench("MISSED: mask find_keys\n7 caught, 1 missed\n", 1)
        with build, replaced, contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(goals_device.mutations(bench), {"caught": [7], "missed": [1], "status": [1]})
        self.assertIn("MISSED: mask find_keys", out.getvalue())
        bench, replaced = self.bench("an error\n", 1)
        with build, replaced, self.assertRaises(goal.CannotMeasure):
            goals_device.mutations(bench)

    def test_losses_and_failed_training(self):
        text = ("test_a: relative error of the loss 2e-09\n.test_b: relative error of the loss 3e-05\nF\n"
                "FAIL: test_b (__main__.Training.test_b)\nRan 2 tests in 1s\n")
        bench, replaced = self.bench(text, 1)
        with replaced, unittest.mock.patch.object(goals_device, "built", lambda *arguments: "gpu_train"), \
                contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(goals_device.trainer(bench), {
                "runs compared with the host": [2], "relative difference": [2e-9, 3e-5], "failed tests": [1]})
        self.assertIn("table hashes and losses are right in 1 of 2 tests", out.getvalue())


class GpuCheck(unittest.TestCase):
    def run_tool(self, *arguments):
        return subprocess.run([ROOT / "tools" / "gpu_check", *arguments], capture_output=True, text=True)

    def test_id_is_a_hash_of_the_sources(self):
        ids = {self.run_tool("id").stdout for _ in range(2)}
        self.assertEqual(len(ids), 1)
        self.assertRegex(ids.pop(), "^sources-[0-9a-f]{12}\n$")

    def test_rejects_invalid_options(self):
        for arguments, error in [(("--preset", "dev"), "--preset is dev"), (("--seconds", "0"), "--seconds is 0"),
                                 (("nonsense",), "usage:")]:
            done = self.run_tool(*arguments)
            self.assertEqual(done.returncode, 2)
            self.assertIn(error, done.stderr)


class Compare(unittest.TestCase):
    def run_on(self, *files):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for number, text in enumerate(files):
                paths.append(pathlib.Path(folder) / f"{number}.jsonl")
                paths[-1].write_text(text)
            return subprocess.run([sys.executable, ROOT / "tools" / "compare", *paths], capture_output=True, text=True)

    @staticmethod
    def line(case, nanoseconds, **other):
        return json.dumps({"case": case, **other, "device": "host", "threads": 2, "entries": 10, "dim": 3,
                           "ns_per_entry": nanoseconds}) + "\n"

    def test_ratios(self):
        done = self.run_on(self.line("a", 9) + self.line("a", 4) + self.line("gone", 1), self.line("a", 2))
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row.split()[0]: row.split() for row in done.stdout.splitlines()}
        self.assertEqual(rows["a"][-3:], ["4.00", "2.00", "0.50"])
        self.assertEqual(rows["gone"][-3:], ["1.00", "-", "-"])

    def test_peers_have_separate_rows(self):
        done = self.run_on(self.line("a", 4) + self.line("a", 8, peer="torch"), self.line("a", 2))
        rows = {row.split()[0]: row.split() for row in done.stdout.splitlines()}
        self.assertEqual(rows["a"][-3:], ["4.00", "2.00", "0.50"])
        self.assertEqual(rows["a:torch"][-3:], ["8.00", "-", "-"])

    def test_rejects_invalid_result_line(self):
        done = self.run_on(self.line("a", 1), "nonsense\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("1.jsonl:1 is not a result", done.stderr)


class ResourceUse(unittest.TestCase):
    OURS = ("_ZN5gpups7kernels15each_row_kernelIZNS0_15combine_rows_ofINS0_10RealNumberIfEELNS0_5SpaceE1EEEvNS0_4ExecI"
            "XT0_EEERKNS0_11CombineRowsEEUlmNS0_11DeviceLanesEE_EEvmT_")
    NAME = "combine_rows_of<RealNumber<float>>(CombineRows) each_row 1"
    CUB = "_ZN3cub17CUB_300001_SM_9006detail4scan20DeviceScanInitKernelINS0_13ScanTileStateIjLb1EEEEEvT_i"

    @staticmethod
    def report(name, stores=0):
        return f"""ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '{name}' for 'sm_90'
ptxas info    : Function properties for {name}
    8 bytes stack frame, {stores} bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 1024 bytes smem
"""

    def table(self, *reports):
        """Runs the tool on a build with one object for each report. A report of None: the object has none."""
        with tempfile.TemporaryDirectory() as build:
            commands = []
            for number, report in enumerate(reports):
                built = pathlib.Path(build, f"{number}.o")
                built.touch()
                if report is not None:
                    pathlib.Path(f"{built}.ptxas").write_text(report)
                commands.append({"directory": build, "file": f"/x/kernels/score/k{number}.cu",
                                 "command": f"nvcc -c k.cu -o {number}.o"})
            pathlib.Path(build, "compile_commands.json").write_text(json.dumps(commands))
            return subprocess.run([ROOT / "tools" / "resource_use", build], capture_output=True, text=True)

    def test_prints_a_line_for_each_kernel(self):
        done = self.table(self.report(self.OURS), self.report(self.CUB, stores=4))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line.split("\t") for line in done.stdout.splitlines()[1:]],
                         [["sm_90", "score/k0", self.NAME, "40", "1024", "8", "0", "0"],
                          ["sm_90", "cub", "DeviceScanInitKernel", "40", "1024", "8", "4", "0"]])

    def test_spilling_kernel_is_an_error(self):
        done = self.table(self.report(self.OURS, stores=12))
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"score/k0: {self.NAME} spills 12 bytes on sm_90", done.stderr)

    def test_rejects_build_without_reports(self):
        self.assertIn("GPUPS_RESOURCE_USE=ON", self.table(None).stderr)
        self.assertIn("no device objects", self.table().stderr)

    def test_launcher_keeps_reports_and_forwards_other_output(self):
        with tempfile.TemporaryDirectory() as folder:
            compiler, built = pathlib.Path(folder, "nvcc"), pathlib.Path(folder, "a.o")
            compiler.write_text(f"#!/usr/bin/env bash\necho a warning >&2\ncat >&2 <<'END'\n{self.report('f')}END\n"
                                "exit $1\n")
            compiler.chmod(0o755)
            for status in (3, 0):
                command = [compiler, str(status), "-o", built]
                done = subprocess.run([ROOT / "tools" / "resource_use", "--compile", *command],
                                      capture_output=True, text=True)
                self.assertEqual(done.returncode, status)
                self.assertEqual(done.stderr, "a warning\n")
                self.assertEqual(pathlib.Path(f"{built}.ptxas").exists(), status == 0)
            self.assertEqual(pathlib.Path(f"{built}.ptxas").read_text(), self.report("f"))


if __name__ == "__main__":
    unittest.main()
