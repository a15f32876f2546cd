# SPDX-License-Identifier: Apache-2.0
"""The goals of an exchange under faults: rows read while they are written, lost ranks, changed bytes, fuzzers."""
import json
import multiprocessing.pool
import re
import sys

import by_tests
from goal import ROOT, CannotMeasure, Goal, at_least, each_at_most, none, reported
from cluster_jobs import mpirun, need, note
from goals_processes import by_mpirun
import losses  # of tests/clusters, which cluster_jobs has made known

READS, INPUTS, FUZZ_SECONDS = 100_000_000, 10_000, 3600
LOSSES = ["LostInAllreduce.*"]
SLACK_S = 5  # a closed connection is detected at once, a silent rank after the timeout
CHANGES = ["InTransit.*", "ForeignProcess.DataOverUcxIsIgnored", "HeaderMac.*", "Checksum.*", "HostileStream.*",
           "HostileLink.ChangedDataEnds*"]
FUZZ = ROOT / "tests" / "fuzz"
sys.path.append(str(FUZZ))
import corpus  # noqa: E402


def reads(bench):
    """Reads between threads, and between two processes. The program exits with 1 if the check misses a torn row."""
    need(mpirun)
    command = [bench.program("one_sided"), "--reads", READS]
    threads = json.loads(bench.run_for_output(command, 1800)[1].splitlines()[-1])
    texts = "".join(by_mpirun(bench, 2, command)).splitlines()
    processes = [json.loads(text) for text in texts if text.startswith("{")]
    if [line["windows"] for line in processes] != ["ucx, processes"]:  # without UCX each process runs alone
        raise CannotMeasure("no process has read rows of another: build with UCX")
    both = [threads, *processes]
    return {"reads": [line["reads"] for line in both],
            "missed torn rows": [sum(line["got_through"] for line in both)],
            "detected torn rows": [line["caught"] for line in both]}


def lose(bench):
    """Runs all losses and returns their outcomes; prints the reason of each failure."""
    for way in losses.WAYS:
        need(way.harness())
    program, outcomes = bench.program("work_until_lost"), []
    if absent := losses.MUST_BE_LISTED - set(losses.works(program)):
        raise CannotMeasure(f"{program} does not have {', '.join(sorted(absent))}: build the current sources")
    note(bench, f"RANK=0..{losses.RANKS - 1} WORLD_SIZE={losses.RANKS}", [program, "WORK", losses.PEER_TIMEOUT_S])
    with bench.on_cores():
        for outcome in losses.all_losses(program):
            outcomes.append(outcome)
            if outcome.problems or outcome.aborted_by_ucx or outcome.late_s() > SLACK_S:
                print(f"          {outcome.line()}\n{outcome.output}", end="", flush=True)
    return outcomes


def faults(bench):
    outcomes = lose(bench)
    seconds = {way: [outcome.late_s() for outcome in outcomes if outcome.way == way.name] for way in losses.WAYS}
    return {"losses": [len(outcomes)],
            "losses without all errors": [
                sum(bool(outcome.problems or outcome.aborted_by_ucx) for outcome in outcomes)],
            "seconds after a kill, four hosts": seconds[losses.KILL_OF_HOST],
            "seconds after a kill, one host": seconds[losses.KILL],
            "seconds over the timeout after a cut": seconds[losses.CUT],
            "seconds over the timeout of a rank that hangs": seconds[losses.STOP],
            "seconds until all ranks had ended": [outcome.ended_s for outcome in outcomes],
            "failed tests of losses": by_tests.failures(bench, LOSSES),
            "failed tests of changed bytes": by_tests.failures(bench, CHANGES)}


def fuzzer(bench, name):
    program = bench.fuzz_build / "tests" / "fuzz" / f"fuzz_{name}"
    if not program.exists():
        raise CannotMeasure(f"there is no {program}: cmake --preset fuzz && cmake --build --preset fuzz")
    return program


def explore(bench, name, program, seconds):
    """Runs a fuzzer for this many seconds. Returns the seconds that it ran, and the number of inputs."""
    found, known = bench.work / "found" / name, bench.fresh_folder(f"corpus/{name}")
    found.mkdir(parents=True, exist_ok=True)
    corpus.unpack(corpus.CORPORA / f"{name}.zip", known)
    taken, text = bench.run_for_output(
        [program, found, known, f"-max_total_time={seconds}", "-max_len=600", "-malloc_limit_mb=256",
         "-rss_limit_mb=2048", f"-artifact_prefix={found}-", "-print_final_stats=1"], seconds + 600)
    return taken, int(re.search(r"number_of_executed_units: (\d+)", text)[1])


def fuzz(bench):
    """Runs each target with its corpus and changed copies of it, then the fuzzer itself. The targets share the time,
    and as many of them run at a time as there are cores."""
    names = re.findall(r"^gpups_fuzz\((\w+)", (FUZZ / "CMakeLists.txt").read_text(), re.MULTILINE)
    programs = {name: fuzzer(bench, name) for name in names}
    changed = []
    for name in names:
        text = bench.run_for_output([bench.program(f"fuzz_{name}"), INPUTS, corpus.CORPORA / f"{name}.zip"], 1800)[1]
        changed.append(int(re.search(r"and (\d+) others passed", text)[1]))
    share = max(1, -(-bench.fuzz_seconds // len(programs)))  # rounded up
    with multiprocessing.pool.ThreadPool(len(bench.cores)) as pool:
        runs = pool.starmap(explore, [(bench, name, program, share) for name, program in programs.items()], chunksize=1)
    return {"targets": [len(names)], "fewest inputs made from a corpus": [min(changed)],
            "seconds of fuzzers": [sum(taken for taken, _ in runs)],
            "inputs of each fuzzer": [inputs for _, inputs in runs]}


GOALS = [
    Goal("reads", "10^8 rows are read while another rank writes them with one-sided puts, between threads and between "
         "processes: the check misses no torn row", reads,
         {"reads": at_least(READS), "missed torn rows": none(), "detected torn rows": reported()}),
    Goal("faults", "a rank is killed or hangs, or a link is cut, during any sum, look-up, step, checkpoint or other "
         f"collective call: all other ranks name the lost rank, within {SLACK_S} s after a kill, otherwise within the "
         f"peer timeout ({losses.PEER_TIMEOUT_S} s) + {SLACK_S} s; changed messages are detected", faults,
         {"losses": reported(), "losses without all errors": none(),
          **{name: each_at_most(SLACK_S) for name in (
              "seconds after a kill, four hosts", "seconds after a kill, one host",
              "seconds over the timeout after a cut", "seconds over the timeout of a rank that hangs")},
          "seconds until all ranks had ended": reported(),
          "failed tests of losses": none(), "failed tests of changed bytes": none()}),
    Goal("fuzz", "10,000 inputs for each external format, and an hour of fuzzing: no failure",
         fuzz,
         {"targets": reported(), "fewest inputs made from a corpus": at_least(INPUTS),
          "seconds of fuzzers": at_least(FUZZ_SECONDS), "inputs of each fuzzer": reported()}),
]
