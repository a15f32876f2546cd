#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the cases of a GoogleTest program in one process, and records the outcome of each.

usage: run_cases.py RESULTS.jsonl PROGRAM [FILTER]

FILTER selects cases as GTEST_FILTER does, where that is not set; it is an error if it selects none.
A case fails if it ends the process (by a crash, a sanitizer's report or exit), or takes longer than GPUPS_CASE_SECONDS
(600); the cases after it run in a new process. Prints the output of failed cases only. GTEST_FILTER,
GTEST_TOTAL_SHARDS and GTEST_SHARD_INDEX select cases as usual. GPUPS_CASE_RUNNER is a command that runs PROGRAM, such
as an emulator of its processor. The exit status is 1 if a case failed.

Lines of RESULTS.jsonl. Each is written at once, so that none is lost if this program is ended:
  {"cases": [NAME, ...]}      the cases to run
  {"started": NAME}
  {"case": NAME, "outcome": "passed", "failed" or "skipped", "why": TEXT}
"""
import json
import os
import pathlib
import re
import selectors
import shlex
import signal
import subprocess
import sys
import tempfile
import time

RUNNER = shlex.split(os.environ.get("GPUPS_CASE_RUNNER", ""))
PROCESSES_MAX = 20  # each case that ends its process needs one more
STARTED = re.compile(r"\[ RUN      \] (\S+)$")
ENDED = re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] ([^\s,]+).* \(\d+ ms\)$")
SHARDS = {"GTEST_TOTAL_SHARDS": "1", "GTEST_SHARD_INDEX": "0"}
OUTCOMES = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}


def cases_of(program):
    """Returns the names of the cases that the environment selects."""
    done = subprocess.run([*RUNNER, program, "--gtest_list_tests"], stdout=subprocess.PIPE, text=True, check=True)
    names, suite = [], None
    for line in done.stdout.splitlines():
        name = line.split("#")[0].rstrip()
        if not line.startswith(" "):
            suite = name if name.endswith(".") else None  # other lines are no suites: "Running main() from ..."
        elif suite and not suite.startswith("DISABLED_") and not name.strip().startswith("DISABLED_"):
            names.append(suite + name.strip())
    return names


def share_of(cases):
    """Returns the cases of the environment's shard, since GoogleTest lists those of all shards."""
    total, index = (int(os.environ.get(name, default)) for name, default in SHARDS.items())
    return cases[index::total]


def reason_of_skip(lines):
    """Returns the message of GTEST_SKIP."""
    for i, line in enumerate(lines[:-1]):
        if re.search(r":\d+: Skipped$", line):
            return lines[i + 1].strip()
    return "no reason given"


def end_of(status):
    """Returns how a process ended, in words."""
    if status >= 0:
        return f"its process ended with status {status}"
    try:
        return f"its process was ended by {signal.Signals(-status).name}"
    except ValueError:
        return f"its process was ended by signal {-status}"


class Record:
    """The outcome of each case, in a file and in memory."""

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
    """A process of the program, in a new process group, so that processes started by its cases end with it."""

    def __init__(self, program, cases):
        # The names are in a file, since a command line may be too short for them.
        self.flags = tempfile.NamedTemporaryFile("w", suffix=".flags")
        self.flags.write("--gtest_filter=" + ":".join(cases) + "\n")
        self.flags.flush()
        command = [*RUNNER, program, "--gtest_color=no", f"--gtest_flagfile={self.flags.name}"]
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
        """Returns the lines that are written within some seconds; None if the process has ended and all were read."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.pipe, selectors.EVENT_READ)
            selector.select(min(1, max(0, seconds)))
        ended = self.process.poll() is not None  # before reading: if it has ended, all its output can be read
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
    """Runs cases until the process ends. Returns whether it ran all cases and ended with the right status."""
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
    # The process ended outside of cases: after the last one, for example, because of a leak.
    name = pathlib.Path(program).name
    why = f"outside of cases it took longer than {seconds:g} s" if hangs else f"outside of cases {end_of(status)}"
    print("\n".join(text + [f"{name}: {why}"]), flush=True)
    record.end(name, "failed", why)
    return False


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    results, program = pathlib.Path(sys.argv[1]), sys.argv[2]
    has_filter = len(sys.argv) == 4 and "GTEST_FILTER" not in os.environ
    if has_filter:
        os.environ["GTEST_FILTER"] = sys.argv[3]
    results.parent.mkdir(parents=True, exist_ok=True)
    record = Record(results)
    try:
        all_cases = cases_of(program)
    except (OSError, subprocess.CalledProcessError) as error:
        record.end(pathlib.Path(program).name, "failed", f"its cases cannot be listed: {error}")
        sys.exit(f"the cases of {program} cannot be listed: {error}")
    if has_filter and not all_cases:
        record.end(pathlib.Path(program).name, "failed", "no case is selected")
        sys.exit(f"FILTER selects no case of {program} (nothing would be tested): correct it")
    cases = share_of(all_cases)
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
