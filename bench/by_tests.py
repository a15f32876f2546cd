# SPDX-License-Identifier: Apache-2.0
"""Goals that tests hold exactly: they are run by their names, and each must be there and have passed."""
import fnmatch
import re
import subprocess
import xml.etree.ElementTree as xml

from goal import CannotMeasure


def failures(bench, patterns, timeout_s=3600):
    """How many of the tests with such names did not pass, in a list. Nothing is measured where one is missing."""
    listed = subprocess.run(["ctest", "--test-dir", bench.build, "--show-only"], capture_output=True, text=True)
    known = [line.split(": ", 1)[1] for line in listed.stdout.splitlines() if line.lstrip().startswith("Test")
             and "#" in line and ": " in line]
    for pattern in patterns:
        if not fnmatch.filter(known, pattern):
            raise CannotMeasure(f"there is no test {pattern} in {bench.build}: build all tests")
    chosen = sorted({name for pattern in patterns for name in fnmatch.filter(known, pattern)})
    report = bench.work / "tests.xml"
    report.parent.mkdir(parents=True, exist_ok=True)
    report.unlink(missing_ok=True)  # of other tests
    expression = "^(" + "|".join(re.sub(r"([][()*+?^$|.\\])", r"\\\1", name) for name in chosen) + ")$"
    command = ["ctest", "--test-dir", str(bench.build), "-R", expression, "--output-junit", str(report)]
    bench.commands.append(" ".join(command[:4]) + f" '{'|'.join(patterns)}'")
    try:
        with bench.on_cores():
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise CannotMeasure(f"over {timeout_s} s: {bench.commands[-1]}") from None
    if not report.exists():
        raise CannotMeasure(f"status {done.returncode} and no report from {bench.commands[-1]}")
    cases = xml.parse(report).getroot().iter("testcase")
    passed = {case.get("name") for case in cases if case.get("status") == "run"}
    for name in sorted(set(chosen) - passed):
        print(f"          {name} did not pass", flush=True)
    if done.returncode != 0 and passed >= set(chosen):
        raise CannotMeasure(f"status {done.returncode} from {bench.commands[-1]}, though all tests passed")
    return [len(set(chosen) - passed)]
