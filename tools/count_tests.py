#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what ctest wrote with --output-junit: failed tests by name, skipped ones with their reasons, then one line.

usage: count_tests.py JUNIT.xml [FOLDER]
FOLDER has what run_cases.py wrote of test programs, NAME.jsonl for the entry NAME of ctest: each of their cases counts.
Other entries are one test. Exit status 1 where a test failed or there is none.
"""
import json
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def outcome(case):
    """'passed', 'failed' or 'skipped' for a <testcase>. A test that could not be run is a failed one."""
    if case.get("status") == "run":
        return "passed"
    skipped = case.find("skipped")
    if skipped is not None and skipped.get("message", "").startswith("SKIP_"):
        return "skipped"
    return "failed"


def reason(case):
    """Why a test was skipped: the last line that a script printed."""
    lines = [line.strip() for line in (case.findtext("system-out") or "").splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"


def of_program(lines):
    """(name, outcome, why) for each case of a test program, from what run_cases.py wrote. Cases without an outcome have
    failed: run_cases.py itself was ended."""
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
    """(name, outcome, why) for each test of an entry of ctest."""
    name, result = entry.get("name"), outcome(entry)
    written = folder and folder / f"{name}.jsonl"
    if not written or not written.exists():
        return [(name, result, reason(entry) if result == "skipped" else "")]
    cases = of_program(written.read_text(encoding="utf-8").splitlines())
    if result == "failed" and all(each != "failed" for _, each, _ in cases):
        cases.append((name, "failed", "it failed, though none of its cases did"))
    return cases


def report(root, folder=None):
    """The lines to print, and whether all is well."""
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
