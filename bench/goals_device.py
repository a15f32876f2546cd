# SPDX-License-Identifier: Apache-2.0
"""The goals of device code on a machine without a GPU: the preset `emulated` executes it."""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

from goal import ROOT, CannotMeasure, Goal, at_least, each_at_most, none, reported

TESTS = ROOT / "tests" / "emulator"
RATIO_MAX, RATIO_SHOWN = 1.25, 1.5
# The kernels that read and write rows, for rows of 256 bytes. A pull of local rows is one call of find_pooled(), which
# finds the keys.
SECTOR_CASES = {
    "find": ["find_keys"],
    "gather": ["gather", "gather_found"],
    "pull": ["find_pooled_float"],
    "pooled": ["pooled_sum", "pooled_mean", "pooled_weighted", "pooled_single"],
    "sum": ["sum_gradients"],
    "update": ["update_sgd", "update_adagrad", "update_rowwise", "update_adam", "update_lamb", "update_ftrl"],
}
COUNTS = re.compile(r"(\d+) passed, (\d+) failed, (\d+) skipped")
MUTATIONS = re.compile(r"(\d+) caught, (\d+) missed")
LOSS = re.compile(r"(\w+): relative error of the loss (\S+)")
TESTS_RUN = re.compile(r"^Ran (\d+) tests? in", re.MULTILINE)


def run_to_end(bench, command, timeout_s, folder=ROOT):
    """Runs a command on the cores of the goals. Returns its status, seconds and output: failures are measured too."""
    command = [str(word) for word in command]
    text = " ".join(command)
    bench.commands.append(text)
    begin = time.monotonic()
    try:
        with bench.on_cores():
            done = subprocess.run(command, cwd=folder, timeout=timeout_s, stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    except subprocess.TimeoutExpired:
        raise CannotMeasure(f"timeout of {timeout_s} s: {text}") from None
    return done.returncode, time.monotonic() - begin, done.stdout


def built(bench, *names):
    """Builds programs in the build of the goals, so that they are those of the sources, and returns the first path."""
    bench.run(["cmake", "--build", bench.build, "--target", *names], timeout_s=7200)
    return bench.program(names[0])


def numbers_of_last_line(output, pattern):
    last = output.splitlines()[-1] if output.strip() else ""
    found = pattern.fullmatch(last.strip())
    if not found:
        raise CannotMeasure(f"the last line is no summary: {last}")
    return [int(number) for number in found.groups()]


def show_lines(output, pattern):
    for line in output.splitlines():
        if re.search(pattern, line):
            print(f"          {line}", flush=True)


def tests(bench):
    _, _, output = run_to_end(bench, ["tools/test", "--preset", "emulated", "--target", "emulated_tests", "--label",
                                      "emulated", "--unity"], 7200)
    show_lines(output, "^(failed|skipped): ")
    passed, failed, skipped = numbers_of_last_line(output, COUNTS)
    return {"passed": [passed], "failed": [failed], "skipped": [skipped]}


def sectors(bench):
    """Returns the bytes of all sectors that a case moves, divided by the bytes that it must move."""
    results = bench.fresh_folder("device") / "sectors.jsonl"
    results.parent.mkdir(parents=True)
    bench.run([built(bench, "bench_emulated"), "--entries", 4096, "--dim", 64, "--jsonl", results])
    ratios = {line["case"]: line["ratio"] for line in map(json.loads, results.read_text().splitlines())}
    for case, ratio in sorted(ratios.items(), key=lambda item: -item[1]):
        if ratio > RATIO_SHOWN:
            print(f"          {case} {ratio:.2f}", flush=True)
    missing = [case for cases in SECTOR_CASES.values() for case in cases if case not in ratios]
    if missing:
        raise CannotMeasure(f"bench_emulated has no case {', '.join(missing)}: correct SECTOR_CASES")
    return {**{name: [ratios[case] for case in cases] for name, cases in SECTOR_CASES.items()},
            f"cases above {RATIO_SHOWN}": [sum(ratio > RATIO_SHOWN for ratio in ratios.values())]}


def trainer(bench):
    """A test fails if the table hashes of two runs differ, or a loss differs from that of the host."""
    program = built(bench, "gpu_train")
    status, _, output = run_to_end(bench, [sys.executable, TESTS / "tests" / "training_test.py", program], 7200)
    losses = LOSS.findall(output)
    ran = TESTS_RUN.search(output)
    if not ran or not losses:
        raise CannotMeasure(f"status {status} from training_test.py\n" + "\n".join(output.splitlines()[-5:]))
    show_lines(output, "^(FAIL|ERROR): |^(AssertionError|.*Error): ")
    failed = {name for kind, name in re.findall(r"^(FAIL|ERROR): (\w+)", output, re.MULTILINE)}
    print(f"          table hashes and losses are right in {int(ran.group(1)) - len(failed)} of {ran.group(1)} tests",
          flush=True)
    return {"runs compared with the host": [len(losses)], "relative difference": [float(loss) for _, loss in losses],
            "failed tests": [max(len(failed), int(status != 0))]}


def mutations(bench):
    folder = built(bench, "kernels_tests", "cache_device_tests").parent
    status, _, output = run_to_end(bench, [sys.executable, TESTS / "tests" / "mutations.py", folder], 4 * 3600)
    show_lines(output, "^MISSED: ")
    caught, missed = numbers_of_last_line(output, MUTATIONS)
    return {"caught": [caught], "missed": [missed], "status": [status]}


def ci_time(bench):
    """Measures a clone of the last commit, as CI does, after a build that fills the cache of the compiler."""
    clone = bench.fresh_folder("device_ci")
    for command, folder in [(["git", "clone", "--quiet", ROOT, clone], ROOT),
                            (["cmake", "--preset", "emulated", "-DGPUPS_UNITY=ON"], clone),
                            (["cmake", "--build", "build/emulated", "--target", "emulated_tests"], clone)]:
        status, _, output = run_to_end(bench, command, 7200, folder)
        if status != 0:
            raise CannotMeasure(f"status {status} from {command[0]}\n" + "\n".join(output.splitlines()[-5:]))
    shutil.rmtree(pathlib.Path(clone, "build"))
    status, seconds, _ = run_to_end(bench, [".ci/run", "emulated"], 7200, clone)
    return {"seconds": [seconds], "status": [status]}


GOALS = [
    Goal("tests", "all tests of device code pass in the emulator, and none is skipped", tests,
         {"passed": at_least(1), "failed": none(), "skipped": none()}),
    Goal("sectors", "kernels that find, gather, pool, sum and update rows move at most "
         f"{RATIO_MAX} x the bytes that they must move, in sectors of 32 bytes, for rows of 256 bytes", sectors,
         {**{name: each_at_most(RATIO_MAX) for name in SECTOR_CASES}, f"cases above {RATIO_SHOWN}": reported()}),
    Goal("trainer", "training on devices gives equal tables for all numbers of ranks, orders of threads and "
         "transports, and the losses of the host up to 1e-6", trainer,
         {"runs compared with the host": at_least(10), "relative difference": each_at_most(1e-6),
          "failed tests": none()}),
    Goal("mutations", "the tests find every error that is planted in device code", mutations,
         {"caught": at_least(1), "missed": none(), "status": none()}),
    Goal("time", "`.ci/run emulated` takes at most ten minutes on two cores, with a filled compiler cache", ci_time,
         {"seconds": each_at_most(600), "status": none()}),
]
