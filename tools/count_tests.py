#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads what ctest wrote with --output-junit. Prints failed tests, skipped tests with reasons, then a line of counts.

usage: count_tests.py JUNIT.xml [FOLDER]
FOLDER has the files of run_cases.py, NAME.jsonl for the entry NAME of ctest: each case counts as a test.
Every other entry is one test. The exit status is 1 if a test failed or none passed.
"""
import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def outcome(case):
    """Returns 'passed', 'failed' or 'skipped' for a <testcase>. A test that could not be run has failed."""
    if case.get("status") == "run":
        return "passed"
    skipped = case.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "failed"


def reason(case):
    """Returns why a test was skipped: the last line that its script printed."""
    lines = [line.strip() for line in (case.findtext("system-out") or "").splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def of_program(lines):
    """Returns (name, outcome, why) for each case of a test program, from the lines of run_cases.py. Cases without an
    outcome have failed: run_cases.py itself was ended."""
    cases, running, known = [], None, {}
    for line in lines:
        what = json.loads(line)
        cases += what.get("cases", [])
        if "started" in what:
            running = what["started"]
        elif "case" in what:
            known[what["case"]] = (what["outcome"], what["why"])
            running = None
    for case in cases:
        known.setdefault(case, ("failed", "it was running when its program was ended" if case == running else
                                "it did not run"))
    return [(case, *rest) for case, rest in known.items()]


def results_of(entry, folder):
    """Returns (name, outcome, why) for each test of an entry of ctest."""
    name, result = entry.get("name"), outcome(entry)
    written = folder and folder / f"{name}.jsonl"
    if not written or not written.exists():
        return [(name, result, reason(entry) if result == "skipped" else "")]
    cases = of_program(written.read_text(encoding="utf-8").splitlines())
    if result == "failed" and all(each != "failed" for _, each, _ in cases):
        cases.append((name, "failed", "it failed, although none of its cases failed"))
    return cases


def report(root, folder=None):
    """Returns the lines to print, and whether tests passed and none failed."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    lines = []
    for entry in root.iter("testcase"):
        for name, result, why in results_of(entry, folder):
            counts[result] += 1
            if result != "passed":
                lines.append(f"{result}: {name}" + (f": {why}" if why else ""))
    lines.append(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return lines, counts["failed"] == 0 and counts["passed"] > 0


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[2]) if len(sys.argv) == 3 else None
    lines, well = report(ElementTree.parse(sys.argv[1]).getroot(), folder)
    print("\n".join(lines))
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
