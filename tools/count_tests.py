#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts what ctest wrote with --output-junit: failed tests by name, skipped ones with their reasons, then one line.

usage: count_tests.py JUNIT.xml
Exit status 1 where a test failed or there is none.
"""
import re
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
    """Why a test was skipped: GTEST_SKIP's message, or the last line that a script printed."""
    lines = [line.strip() for line in (case.findtext("system-out") or "").splitlines() if line.strip()]
    for i, line in enumerate(lines[:-1]):
        if re.search(r":\d+: Skipped$", line):
            return lines[i + 1]
    return lines[-1] if lines else "no reason given"


def report(root):
    """The lines to print, and whether all is well."""
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    lines = []
    for case in root.iter("testcase"):
        result = outcome(case)
        counts[result] += 1
        if result == "failed":
            lines.append(f"failed: {case.get('name')}")
        elif result == "skipped":
            lines.append(f"skipped: {case.get('name')}: {reason(case)}")
    lines.append(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return lines, counts["failed"] == 0 and counts["passed"] > 0


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    lines, well = report(ElementTree.parse(sys.argv[1]).getroot())
    print("\n".join(lines))
    sys.exit(0 if well else 1)


if __name__ == "__main__":
    main()
