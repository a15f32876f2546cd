# SPDX-License-Identifier: Apache-2.0
"""The goals of the basic configuration: static placement, synchronous training on the host, ranks as threads."""
import itertools
import shlex

from goal import CORES, ROOT, CannotMeasure, Goal, all_equal, at_least, at_most

SPEED_RUNS, QUALITY_SEEDS, SIMULATION_SEEDS, STEPS = 5, 5, 2000, 200


def fb15k(bench):
    """Returns settings for FB15k-237 below --data: a folder fb15k-237, or its archive, which is unpacked."""
    if bench.data is None:
        raise CannotMeasure("FB15k-237 is missing: use --data FOLDER with fb15k-237/train.txt or fb15k-237.tar.zst")
    places = [bench.data / "fb15k-237", bench.work / "fb15k-237"]
    archive = bench.data / "fb15k-237.tar.zst"
    if not any(files(place) for place in places) and archive.exists():
        places[1].mkdir(parents=True, exist_ok=True)
        bench.run(["tar", "--zstd", "-xf", archive, "-C", places[1]])
    for place in places:
        if files(place):
            return {"data.folder": files(place)}
    raise CannotMeasure(f"there is no fb15k-237 in {bench.data}")


def files(folder):
    """Returns the first folder at or below this one that contains train.txt, or None."""
    found = sorted(folder.rglob("train.txt")) if folder.exists() else []
    return found[0].parent if found else None


def kge100k(bench):
    """Returns settings for the synthetic knowledge graph kge100k, and generates it at the first call."""
    folder = bench.work / "kge100k"
    if not (folder / "test.del").exists():
        if bench.kge_generator is None:
            raise CannotMeasure("kge100k is missing: use --kge-generator COMMAND, which writes it")
        bench.work.mkdir(parents=True, exist_ok=True)
        bench.run([*shlex.split(bench.kge_generator), 15000, 200, 100000, 1000, 7, folder])
    return {"data.folder": folder}


def short_run(bench):
    """Returns settings for a run of STEPS steps without evaluation."""
    return {**kge100k(bench), "train.steps": STEPS, "data.valid": "", "data.test": ""}


def quality(bench):
    settings = {**fb15k(bench), "train.validate_every": 0, "eval.samples_max": 0, "run.threads": CORES}
    result = bench.train("fb15k-237.toml", "quality", settings)
    return {"test MRR": [result["test"]["mrr"]], "seconds": [result["wall_seconds"]]}


def bits(bench):
    settings, hashes = short_run(bench), []
    for ranks, threads, lookahead in itertools.product((1, 2, 3, 4), (1, 2), (4, 16)):
        ways = {"run.ranks": ranks, "run.threads": threads, "train.lookahead": lookahead}
        run = f"bits/{ranks}-{threads}-{lookahead}"
        hashes.append(bench.train("kge100k.toml", run, {**settings, **ways})["table_hash"])
    return {"table hash": hashes}


def speed(bench):
    settings = {**kge100k(bench), "data.valid": "", "data.test": "", "train.epochs": 20, "train.checkpoint_every": 0,
                "run.threads": CORES}
    return {"triples/s": [bench.train("kge100k.toml", f"speed/{i}", settings)["samples_per_s"]
                          for i in range(SPEED_RUNS)]}


def early_quality(bench):
    """Trains with the configuration of the speed goal on real data."""
    settings = {**fb15k(bench), "data.train": "train.txt", "data.valid": "valid.txt", "data.test": "",
                "train.epochs": 5, "train.checkpoint_every": 0, "eval.sample": "first", "eval.samples_max": 2000,
                "run.threads": CORES}
    return {"valid MRR": [
        bench.train("kge100k.toml", f"early/{seed}", {**settings, "train.seed": seed})["valid"]["mrr"]
        for seed in range(1, QUALITY_SEEDS + 1)]}


def simulation(bench):
    program = bench.program("cache_simulation_tests")
    bench.run([program, "--gtest_filter=StoreSimulation.*"], env={"GPUPS_SIM_SEEDS": str(SIMULATION_SEEDS)})
    return {"seeds": [SIMULATION_SEEDS]}


def resumed(bench):
    """Compares an uninterrupted run with runs that stopped and continued with the same or another number of ranks."""
    settings = short_run(bench)
    hashes = [bench.train("kge100k.toml", "resume/whole", settings)["table_hash"]]
    for stop in (1, 97, 199):
        for before, after in ((1, 1), (2, 2), (1, 3), (4, 2)):
            run = f"resume/{stop}-{before}-{after}"
            bench.train("kge100k.toml", run, {**settings, "run.ranks": before, "train.steps": stop})
            rest = bench.train("kge100k.toml", run, {**settings, "run.ranks": after}, resume=True)
            hashes.append(rest["table_hash"])
    return {"table hash": hashes}


def quick_start(bench):
    """Runs in a new clone, so that everything is built; a compiler cache may speed this up."""
    clone = bench.fresh_folder("clone")
    bench.run(["git", "clone", "-q", ROOT, clone])
    return {"seconds": [bench.run([clone / "tools" / "quickstart"])]}


GOALS = [
    Goal("quality", "ComplEx on FB15k-237: filtered test MRR of .28 in 15 minutes on two cores", quality,
         {"test MRR": at_least(.28), "seconds": at_most(900)}),
    Goal("bits", f"tables after {STEPS} steps have the same bits on 1, 2, 3, 4 ranks, 1, 2 threads, lookahead 4, 16",
         bits, {"table hash": all_equal()}),
    Goal("speed", "kge100k, ComplEx, dim 100: 700,000 triples/s on two cores", speed,
         {"triples/s": at_least(700_000)}),
    Goal("early-quality",
         "the speed goal's settings on FB15k-237, 5 epochs: filtered MRR of .175 on the first 2,000 validation triples",
         early_quality, {"valid MRR": at_least(.175)}),
    Goal("simulation", f"{SIMULATION_SEEDS:,} seeds of the simulated network: no update is lost or added", simulation,
         {"seeds": at_least(SIMULATION_SEEDS)}),
    Goal("resume", "a resumed run ends with the bits of an uninterrupted run, on any number of ranks", resumed,
         {"table hash": all_equal()}),
    Goal("quick-start", "tools/quickstart takes less than 5 minutes on two cores", quick_start,
         {"seconds": at_most(300)}),
]
