# SPDX-License-Identifier: Apache-2.0
"""The goals of an exchange that meets the worst: rows read while written, lost ranks, changed bytes, fuzzers."""
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
SLACK_S = 5  # a closed connection is noticed at once, and silence when the timeout is over
CHANGES = ["InTransit.*", "ForeignProcess.DataOverUcxIsIgnored", "HeaderMac.*", "Checksum.*", "HostileStream.*",
           "HostileLink.ChangedDataEnds*"]
FUZZ = ROOT / "tests" / "fuzz"
sys.path.append(str(FUZZ))
import corpus  # noqa: E402


def reads(bench):
    """Between threads, and between two processes. A torn row that is taken for whole ends the program with 1."""
    need(mpirun)
    command = [bench.program("one_sided"), "--reads", READS]
    threads = json.loads(bench.run_for_output(command, 1800)[1].splitlines()[-1])
    texts = "".join(by_mpirun(bench, 2, command)).splitlines()
    processes = [json.loads(text) for text in texts if text.startswith("{")]
    if [line["windows"] for line in processes] != ["ucx, processes"]:  # without UCX each process is alone
        raise CannotMeasure("no process has read what another put: build with UCX")
    both = [threads, *processes]
    return {"reads": [line["reads"] for line in both],
            "torn rows taken for whole": [sum(line["got_through"] for line in both)],
            "torn rows that were seen": [line["caught"] for line in both]}


def lose(bench):
    """What came of each loss; of those that went wrong also prints why."""
    for way in losses.WAYS:
        need(way.harness())
    program, outcomes = bench.program("work_until_lost"), []
    if absent := losses.MUST_BE_LISTED - set(losses.works(program)):
        raise CannotMeasure(f"{program} knows no {', '.join(sorted(absent))}: build it")
    note(bench, f"RANK=0..{losses.RANKS - 1} WORLD_SIZE={losses.RANKS}", [program, "WORK", losses.PEER_TIMEOUT_S])
    with bench.on_cores():
        for outcome in losses.all_losses(program):
            outcomes.append(outcome)
            if outcome.problems or outcome.late_s() > SLACK_S:
                print(f"          {outcome.line()}\n{outcome.output}", end="", flush=True)
    return outcomes


def faults(bench):
    outcomes = lose(bench)
    seconds = {way: [outcome.late_s() for outcome in outcomes if outcome.way == way.name] for way in losses.WAYS}
    return {"losses": [len(outcomes)], "that not all named": [sum(bool(outcome.problems) for outcome in outcomes)],
            "seconds after a kill, four hosts": seconds[losses.KILL_OF_HOST],
            "seconds after a kill, one host": seconds[losses.KILL],
            "seconds over the timeout after a cut": seconds[losses.CUT],
            "seconds over the timeout of a rank that hangs": seconds[losses.STOP],
            "seconds until all had ended": [outcome.ended_s for outcome in outcomes],
            "tests of losses not passed": by_tests.failures(bench, LOSSES),
            "tests of changed bytes not passed": by_tests.failures(bench, CHANGES)}


def fuzzer(bench, name):
    program = bench.fuzz_build / "tests" / "fuzz" / f"fuzz_{name}"
    if not program.exists():
        raise CannotMeasure(f"there is no {program}: cmake --preset fuzz && cmake --build --preset fuzz")
    return program


def explore(bench, name, program, seconds):
    """Seconds that a fuzzer ran for, and how many inputs it made."""
    found, known = bench.work / "found" / name, bench.fresh_folder(f"corpus/{name}")
    found.mkdir(parents=True, exist_ok=True)
    corpus.unpack(corpus.CORPORA / f"{name}.zip", known)
    taken, text = bench.run_for_output(
        [program, found, known, f"-max_total_time={seconds}", "-max_len=600", "-malloc_limit_mb=256",
         "-rss_limit_mb=2048", f"-artifact_prefix={found}-", "-print_final_stats=1"], seconds + 600)
    return taken, int(re.search(r"number_of_executed_units: (\d+)", text)[1])


def fuzz(bench):
    """What is there and changed copies of it by each target, then the fuzzer itself: the time is shared by all targets,
    of which as many run at a time as there are cores."""
    names = re.findall(r"^gpups_fuzz\((\w+)", (FUZZ / "CMakeLists.txt").read_text(), re.MULTILINE)
    programs = {name: fuzzer(bench, name) for name in names}
    changed = []
    for name in names:
        text = bench.run_for_output([bench.program(f"fuzz_{name}"), INPUTS, corpus.CORPORA / f"{name}.zip"], 1800)[1]
        changed.append(int(re.search(r"and (\d+) others passed", text)[1]))
    share = max(1, -(-bench.fuzz_seconds // len(programs)))  # rounded up
    with multiprocessing.pool.ThreadPool(len(bench.cores)) as pool:
        runs = pool.starmap(explore, [(bench, name, program, share) for name, program in programs.items()], chunksize=1)
    return {"targets": [len(names)], "fewest inputs made of what is there": [min(changed)],
            "seconds of fuzzers": [sum(taken for taken, _ in runs)],
            "inputs of each, by the fuzzer": [inputs for _, inputs in runs]}


GOALS = [
    Goal("reads", "10^8 rows read while another rank writes them by one-sided puts, over threads and over processes: "
         "none is torn", reads,
         {"reads": at_least(READS), "torn rows taken for whole": none(), "torn rows that were seen": reported()}),
    Goal("faults", "a rank that is killed or hangs, or a link that is cut, in the middle of any sum, look-up, step, "
         f"checkpoint or other call of all ranks: all others name it, within {SLACK_S} s after a kill, else within the "
         f"peer timeout ({losses.PEER_TIMEOUT_S} s) + {SLACK_S} s; a changed message is found", faults,
         {"losses": reported(), "that not all named": none(),
          **{name: each_at_most(SLACK_S) for name in (
              "seconds after a kill, four hosts", "seconds after a kill, one host",
              "seconds over the timeout after a cut", "seconds over the timeout of a rank that hangs")},
          "seconds until all had ended": reported(),
          "tests of losses not passed": none(), "tests of changed bytes not passed": none()}),
    Goal("fuzz", "10,000 inputs of each format from outside, and an hour of the fuzzer: nothing is found",
         fuzz,
         {"targets": reported(), "fewest inputs made of what is there": at_least(INPUTS),
          "seconds of fuzzers": at_least(FUZZ_SECONDS), "inputs of each, by the fuzzer": reported()}),
]
