# SPDX-License-Identifier: Apache-2.0
"""Goals that tests check exactly: runs cases of test programs by name; each must exist and pass."""
import fnmatch
import os
import subprocess
import sys

from goal import ROOT, CannotMeasure

sys.path.append(str(ROOT / "tools"))
import count_tests  # noqa: E402
import run_cases  # noqa: E402


def failures(bench, patterns, timeout_s=3600):
    """Returns [the number of cases matching these patterns that did not pass]. Raises CannotMeasure if a pattern
    matches no case."""
    programs = {program: run_cases.cases_of(program) for program in sorted((bench.build / "tests").glob("*_tests"))}
    chosen = {program: [case for case in cases if any(fnmatch.fnmatchcase(case, pattern) for pattern in patterns)]
              for program, cases in programs.items()}
    for pattern in patterns:
        if not any(fnmatch.filter(cases, pattern) for cases in programs.values()):
            raise CannotMeasure(f"there is no test {pattern} in {bench.build}: build all tests")
    failed = 0
    for program, cases in chosen.items():
        failed += cases != [] and failures_of(bench, program, patterns, timeout_s)
    return [failed]


def failures_of(bench, program, patterns, timeout_s):
    results = bench.work / "tests.jsonl"
    results.parent.mkdir(parents=True, exist_ok=True)
    results.unlink(missing_ok=True)  # results of earlier tests
    command = [sys.executable, run_cases.__file__, str(results), str(program)]
    bench.commands.append(f"{program} --gtest_filter='{':'.join(patterns)}'")
    try:
        with bench.on_cores():
            done = subprocess.run(command, env={**os.environ, "GTEST_FILTER": ":".join(patterns)}, timeout=timeout_s,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise CannotMeasure(f"timeout of {timeout_s} s: {bench.commands[-1]}") from None
    if not results.exists():
        raise CannotMeasure(f"status {done.returncode} and no results from {bench.commands[-1]}")
    outcomes = count_tests.of_program(results.read_text(encoding="utf-8").splitlines())
    bad = [name for name, outcome, _ in outcomes if outcome != "passed"]
    for name in bad:
        print(f"          {name} did not pass", flush=True)
    if done.returncode != 0 and not bad:
        raise CannotMeasure(f"status {done.returncode} from {bench.commands[-1]}, though all tests passed")
    return len(bad)
