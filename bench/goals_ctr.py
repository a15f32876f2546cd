# SPDX-License-Identifier: Apache-2.0
"""The goals of click-through models: speed relative to bare products, quality, equal bits, reading."""
import itertools
import json

from cluster_jobs import mpirun, need, note, wait_well
from goal import CORES, ROOT, CannotMeasure, Goal, all_equal, at_least, at_most, overrides, reported, summary

SPEED_RUNS, QUALITY_SEEDS, STEPS = 5, 5, 200
CONFIG = ROOT / "examples" / "configs" / "clicks.toml"
SPLIT = ("prepare", "wait_ready", "pull", "forward_backward", "push", "begin_allreduce", "advance_clock", "wait_apply")
SPEED_SAMPLES, QUALITY_SAMPLES, READING_SAMPLES = 200_000, 2_500_000, 500_000


def text(bench, samples):
    """Returns a file of synthetic click data as text, and the metrics of the best possible predictions of its last
    fifth. Generates them at the first call."""
    file = bench.work / f"clicks-{samples}.tsv"
    best = file.with_suffix(".json")
    if not best.exists():
        bench.work.mkdir(parents=True, exist_ok=True)
        best.write_text(json.dumps(bench.output([bench.program("make_clicks"), samples, 1, file])["last_fifth"]))
    return file, json.loads(best.read_text())


def binary(bench, samples):
    """Returns the same data as a binary file, which training reads fastest."""
    file = bench.work / f"clicks-{samples}.bin"
    if not file.exists():
        bench.run([bench.program("gpu_train"), "convert", text(bench, samples)[0], file])
    return file


def speed(bench):
    runs = [bench.output([bench.program("ctr_bench"), binary(bench, SPEED_SAMPLES), "--threads", CORES])
            for _ in range(SPEED_RUNS)]
    found = {"products / step": [run["products_to_step"] for run in runs],
             "samples/s": [run["samples_per_s"] for run in runs],
             "ms per step": [1e3 * run["step_s"] for run in runs],
             "ms, products": [1e3 * run["products_s"] for run in runs]}
    for stage in SPLIT:
        found[f"ms, {stage}"] = [1e3 * run["stages_s"][stage] for run in runs]
    return found


def criteo(bench):
    """Returns settings for the part of Criteo's data below --data."""
    file = bench.data and bench.data / "criteo-110k.tsv.zst"
    if file is None or not file.exists():
        raise CannotMeasure("Criteo's samples are missing: use --data FOLDER with criteo-110k.tsv.zst in it")
    return {"data.folder": file.parent, "data.train": file.name}


def quality_criteo(bench):
    tests = {name: [bench.train(f"{name}.toml", f"ctr/{name}/{seed}", {**criteo(bench), "train.seed": seed,
                                                                      "run.threads": CORES})["test"]
                    for seed in range(1, QUALITY_SEEDS + 1)] for name in ("criteo", "criteo-logistic")}
    return {"AUC": [test["auc"] for test in tests["criteo"]],
            "log-loss": [test["log_loss"] for test in tests["criteo"]],
            "AUC, logistic": [test["auc"] for test in tests["criteo-logistic"]]}


def generated(bench, samples):
    file = binary(bench, samples)
    return {"data.folder": file.parent, "data.train": file.name}


def quality_generated(bench):
    best = text(bench, QUALITY_SAMPLES)[1]["auc"]
    result = bench.train(CONFIG.name, "ctr/generated", {**generated(bench, QUALITY_SAMPLES), "run.threads": CORES})
    return {"AUC": [result["test"]["auc"]], "best possible": [best],
            "best possible - AUC": [best - result["test"]["auc"]], "samples/s": [result["samples_per_s"]]}


def bits(bench):
    need(mpirun)
    settings = {**generated(bench, SPEED_SAMPLES), "train.steps": STEPS, "data.test_share": 0}
    ways = [{"run.ranks": ranks, "run.threads": threads, "train.prefetch_thread": str(ahead).lower()}
            for ranks, threads, ahead in itertools.product((1, 2, 3, 4), (1, 2), (True, False))]
    plain = {"data.train": text(bench, SPEED_SAMPLES)[0].name}
    ways += [{**plain, "run.reader_threads": threads} for threads in (1, 2)]
    found = [bench.train(CONFIG.name, f"ctr/bits/{i}", {**settings, **way}) for i, way in enumerate(ways)]
    folder = bench.fresh_folder("ctr/bits/processes")
    command = [bench.program("gpu_train"), "train", CONFIG, "--run", folder, *overrides(settings)]
    note(bench, "mpirun -n 2 --bind-to none", command)
    with bench.on_cores():
        wait_well(mpirun.job(command, 2, cwd=ROOT))
    found.append(summary(folder))
    return {name: [run[name.replace(" ", "_")] for run in found] for name in ("table hash", "dense hash")}


def reading(bench):
    folder = bench.work / "reading"
    folder.mkdir(parents=True, exist_ok=True)
    runs = [bench.output([bench.program("data_bench"), text(bench, READING_SAMPLES)[0], folder])
            for _ in range(SPEED_RUNS)]
    return {"MB/s of text per core": [run["text_1_threads"]["MB_per_core_s"] for run in runs],
            "MB/s of zstd per core": [run["zstd_1_threads"]["MB_per_core_s"] for run in runs],
            "binary / read(2)": [run["binary"]["columns_to_read"] for run in runs]}


GOALS = [
    Goal("speed",
         "DLRM, 26 categories of dim 16, batches of 4,096, two cores: bare products take at least half of a step",
         speed,
         {"products / step": at_least(.5), "samples/s": reported(), "ms per step": reported(),
          "ms, products": reported(), **{f"ms, {stage}": reported() for stage in SPLIT}}),
    Goal("quality-criteo", "110,000 samples of Criteo's data: AUC and log-loss of DCN-v2, AUC of logistic regression",
         quality_criteo,
         {"AUC": at_least(.764), "log-loss": at_most(.480), "AUC, logistic": at_least(.7586)}),
    Goal("quality-generated", "two million synthetic samples: AUC at most .002 below the best possible AUC",
         quality_generated,
         {"AUC": reported(), "best possible": reported(), "best possible - AUC": at_most(.002),
          "samples/s": reported()}),
    Goal("bits", f"after {STEPS} steps tables and layers have the same bits on 1, 2, 3, 4 ranks, in 2 processes, with "
         "1, 2 threads, with and without a prefetch thread, from the binary file or from text read by 1, 2 threads",
         bits,
         {"table hash": all_equal(), "dense hash": all_equal()}),
    Goal("reading", "one core reads text at 150 MB/s, and the binary file at .8 of the speed of read(2)", reading,
         {"MB/s of text per core": at_least(150), "MB/s of zstd per core": reported(),
          "binary / read(2)": at_least(.8)}),
]
