#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The programs that judge others: counting tests, and the verdicts of bench/goals."""
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "bench")]
import count_tests  # noqa: E402
import goal  # noqa: E402
import goals_slice  # noqa: E402


class CountTests(unittest.TestCase):
    def test_outcomes(self):
        lines, well = count_tests.report(ElementTree.fromstring("""<testsuite>
            <testcase name="a" status="run"/>
            <testcase name="b" status="fail"><failure message=""/></testcase>
            <testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
              <system-out>[ RUN ] c
a_test.cpp:7: Skipped
there is no CUDA device
[  SKIPPED ] c</system-out></testcase>
            <testcase name="d" status="notrun"><skipped message="SKIP_RETURN_CODE=77"/>
              <system-out>no clang-format-14</system-out></testcase>
            <testcase name="e" status="notrun"><skipped message="Unable to find executable"/></testcase>
            </testsuite>"""))
        self.assertEqual(lines, ["failed: b", "skipped: c: there is no CUDA device", "skipped: d: no clang-format-14",
                                 "failed: e", "1 passed, 2 failed, 2 skipped"])
        self.assertFalse(well)

    def test_nothing_ran(self):
        self.assertFalse(count_tests.report(ElementTree.fromstring("<testsuite/>"))[1])


class Goals(unittest.TestCase):
    def judge(self, measure, limit, build="/nowhere"):
        """Whether a goal that limits `x` holds, and what was printed."""
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

    def test_what_was_not_measured_does_not_hold(self):
        self.assertFalse(self.judge(lambda bench: {}, goal.at_least(0))[0])
        self.assertFalse(self.judge(lambda bench: {"x": [bench.program("gpu_train")]}, goal.at_least(0))[0])
        holds, text = self.judge(lambda bench: {"x": [bench.run(["false"])]}, goal.at_least(0))
        self.assertFalse(holds)
        self.assertIn("status 1 from false", text)

    def test_commands_and_summaries(self):
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

    def test_the_slice_is_consistent(self):
        names = [g.name for g in goals_slice.GOALS]
        self.assertEqual(len(names), len(set(names)))


class Compare(unittest.TestCase):
    def run_on(self, *files):
        with tempfile.TemporaryDirectory() as folder:
            paths = []
            for number, text in enumerate(files):
                paths.append(pathlib.Path(folder) / f"{number}.jsonl")
                paths[-1].write_text(text)
            return subprocess.run([sys.executable, ROOT / "tools" / "compare", *paths], capture_output=True, text=True)

    @staticmethod
    def line(case, nanoseconds):
        return json.dumps({"case": case, "device": "host", "threads": 2, "entries": 10, "dim": 3,
                           "ns_per_entry": nanoseconds}) + "\n"

    def test_ratios(self):
        done = self.run_on(self.line("a", 9) + self.line("a", 4) + self.line("gone", 1), self.line("a", 2))
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row.split()[0]: row.split() for row in done.stdout.splitlines()}
        self.assertEqual(rows["a"][-3:], ["4.00", "2.00", "0.50"])
        self.assertEqual(rows["gone"][-3:], ["1.00", "-", "-"])

    def test_what_is_no_result(self):
        done = self.run_on(self.line("a", 1), "nonsense\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("1.jsonl:1 is no result", done.stderr)


if __name__ == "__main__":
    unittest.main()
