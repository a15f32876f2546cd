#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a GoogleTest program in one process, and records what became of each.

usage: run_cases.py RESULTS.jsonl PROGRAM

A case that ends the process (a crash, a sanitizer's report, exit) or takes longer than GPUPS_CASE_SECONDS (600) has
failed; the cases after it run in a new process. Prints the output of failed cases alone. GTEST_FILTER,
GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX choose cases as usual. Exit status 1 where a case failed.

Lines of RESULTS.jsonl, each written as it happens, so that nothing is lost when this program is ended too:
  {"cases": [NAME, ...]}      what is to run
  {"started": NAME}
  {"case": NAME, "outcome": "passed", "failed" or "skipped", "why": TEXT}
"""
import json
import os
import pathlib
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time

PROCESSES_MAX = 20  # one more for each case that ends its process
STARTED = re.compile(r"\[ RUN      \] (\S+)$")
ENDED = re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] ([^\s,]+).* \(\d+ ms\)$")
SHARDS = {"GTEST_TOTAL_SHARDS": "1", "GTEST_SHARD_INDEX": "0"}
OUTCOMES = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


def cases_of(program):
    """The names of the cases that the environment chooses."""
    done = subprocess.run([program, "--gtest_list_tests"], stdout=subprocess.PIPE, text=True, check=True)
    names, suite = [], None
    for line in done.stdout.splitlines():
        name = line.split("#")[0].rstrip()
        if not line.startswith(" "):
            suite = name if name.endswith(".") else None  # else a line that is no suite: "Running main() from ..."
        elif suite and not suite.startswith("DISABLED_") and not name.strip().startswith("DISABLED_"):
            names.append(suite + name.strip())
    return names


def share_of(cases):
    """Those of the shard that the environment names: GoogleTest lists all."""
    total, index = (int(os.environ.get(name, default)) for name, default in SHARDS.items())
    return cases[index::total]


def reason_of_skip(lines):
    """GTEST_SKIP's message."""
    for i, line in enumerate(lines[:-1]):
        if re.search(r":\d+: Skipped$", line):
            return lines[i + 1].strip()
    return "no reason given"


def end_of(status):
    """How a process ended, in words."""
    if status >= 0:
        return f"its process ended with status {status}"
    try:
        return f"its process was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"its process was ended by signal {-status}"


class Record:
    """What has become of which case."""

    def __init__(self, path):
        self.file = open(path, "w", encoding="utf-8")
        self.outcomes = {}

    def write(self, **what):
        self.file.write(json.dumps(what) + "\n")
        self.file.flush()

    def end(self, case, outcome, why=""):
        self.outcomes[case] = outcome
        self.write(case=case, outcome=outcome, why=why)


class Process:
    """A process of the program, in a group of its own: what its cases leave behind ends with it."""

    def __init__(self, program, cases):
        # By a file: the names may be more than fits on a command line.
        self.flags = tempfile.NamedTemporaryFile("w", suffix=".flags")
        self.flags.write("--gtest_filter=" + ":".join(cases) + "\n")
        self.flags.flush()
        command = [program, "--gtest_color=no", f"--gtest_flagfile={self.flags.name}"]
        environment = {name: value for name, value in os.environ.items() if name not in SHARDS}
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, env=environment, start_new_session=True)
        self.pipe = self.process.stdout.fileno()
        os.set_blocking(self.pipe, False)
        self.rest = b""

    def kill(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def lines(self, seconds):
        """What comes within a time, as lines; None: the process has ended, and nothing is left."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.pipe, selectors.EVENT_READ)
            selector.select(min(1, max(0, seconds)))
        ended = self.process.poll() is not None  # looked at first: what it has written is there then
        data = b""
        while True:
            try:
                more = os.read(self.pipe, 1 << 16)
            except BlockingIOError:
                break
            if not more:
                break
            data += more
        *whole, self.rest = (self.rest + data).split(b"\n")
        if ended and not data:
            if self.rest:
                whole, self.rest = [self.rest], b""
            elif not whole:
                return None
        return [line.decode(errors="replace") for line in whole]


def run(program, cases, record, seconds):
    """Runs cases until the process ends. Returns whether it ended as it should, having run all it was to run."""
    process = Process(program, cases)

    def stop(number, frame):
        process.kill()
        sys.exit(128 + number)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    case, text, hangs, failures = None, [], False, 0
    deadline = time.monotonic() + seconds
    while (lines := process.lines(deadline - time.monotonic())) is not None:
        for line in lines:
            text.append(line)
            if started := STARTED.search(line):
                case, text = started.group(1), [line]
                record.write(started=case)
                deadline = time.monotonic() + seconds
            elif case and (ended := ENDED.search(line)) and ended.group(2) == case:
                outcome = OUTCOMES[ended.group(1)]
                record.end(case, outcome, reason_of_skip(text) if outcome == "skipped" else "")
                if outcome == "failed":
                    failures += 1
                    print("\n".join(text), flush=True)
                case, text = None, []
                deadline = time.monotonic() + seconds
        if not hangs and time.monotonic() > deadline:
            hangs = True
            process.kill()
    status = process.process.wait()
    process.kill()
    if case:
        why = f"it took longer than {seconds:g} s" if hangs else end_of(status)
        print("\n".join(text + [f"{case}: {why}"]), flush=True)
        record.end(case, "failed", why)
        return False
    if status == (1 if failures else 0):
        return True
    # Between cases, before the first or after the last: a leak, for example.
    name = pathlib.Path(program).name
    why = f"outside of cases it took longer than {seconds:g} s" if hangs else f"outside of cases {end_of(status)}"
    print("\n".join(text + [f"{name}: {why}"]), flush=True)
    record.end(name, "failed", why)
    return False


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    results, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    results.parent.mkdir(parents=True, exist_ok=True)
    record = Record(results)
    try:
        cases = share_of(cases_of(program))
    except (OSError, subprocess.CalledProcessError) as error:
        record.end(pathlib.Path(program).name, "failed", f"its cases cannot be listed: {error}")
        sys.exit(f"the cases of {program} cannot be listed: {error}")
    record.write(cases=cases)
    seconds = float(os.environ.get("GPUPS_CASE_SECONDS", "600"))
    left = cases
    for _ in range(PROCESSES_MAX):
        whole = not left or run(program, left, record, seconds)
        now_left = [case for case in cases if case not in record.outcomes]
        if whole or len(now_left) in (0, len(left)):
            break
        left = now_left
    for case in cases:
        if case not in record.outcomes:
            record.end(case, "failed", "it did not run")
    counts = {outcome: list(record.outcomes.values()).count(outcome) for outcome in OUTCOMES.values()}
    print(", ".join(f"{count} {outcome}" for outcome, count in counts.items()))
    sys.exit(1 if counts["failed"] else 0)


if __name__ == "__main__":
    main()
