# SPDX-License-Identifier: Apache-2.0
"""The goals of workloads with published results: quality with the recommended configurations."""
import statistics

from goal import CORES, CannotMeasure, Goal, all_equal, at_most, reported

FOLDS, SEEDS = range(1, 6), range(1, 4)
OVERFIT_EPOCHS, OVERFIT_RATE = 30, .1


def movielens(bench, fold):
    """Returns settings for a fold of MovieLens 100K below --data."""
    folder = bench.data and bench.data / "ml-100k"
    if folder is None or not folder.exists():
        raise CannotMeasure("MovieLens 100K is missing: use --data FOLDER with ml-100k/u1.base and the others in it")
    return {"data.folder": folder, "data.train": f"u{fold}.base", "data.test": f"u{fold}.test"}


def ratings(bench):
    def mean(seed, settings):
        tests = [bench.train("ratings.toml", f"workloads/ratings/{fold}", {**movielens(bench, fold), **settings,
                                                                          "train.seed": seed})["test"]["rmse"]
                 for fold in FOLDS]
        return tests, statistics.mean(tests)

    runs = [mean(seed, {}) for seed in SEEDS]
    found = {"RMSE, mean of five folds": [run[1] for run in runs]}
    for fold in FOLDS:
        found[f"RMSE, u{fold}"] = [run[0][fold - 1] for run in runs]
    return found


def keep_best(bench):
    """A run that overfits: the best validation is long before the last step."""
    settings = {**movielens(bench, 1), "data.valid_share": .1, "model.dim": 32, "model.init_scale": .1,
                "optimizer.kind": "adagrad", "optimizer.learning_rate": OVERFIT_RATE, "optimizer.l2": 0,
                "train.epochs": OVERFIT_EPOCHS}
    runs = [bench.train("ratings.toml", f"workloads/keep-best/{ranks}", {**settings, "run.ranks": ranks,
                                                                       "run.threads": CORES // ranks})
            for ranks in (1, 2)]
    evaluated = [bench.output([bench.program("gpu_train"), "eval", bench.work / f"workloads/keep-best/{ranks}"])["rmse"]
                 for ranks in (1, 2)]
    return {"epoch of the best validation": [run["best"]["epoch"] for run in runs],
            "RMSE of the last step / best, validation": [run["valid"]["rmse"] / run["best"]["valid"]["rmse"]
                                                         for run in runs],
            "RMSE, test, and of eval": [run["test"]["rmse"] for run in runs] + evaluated,
            "table hash of the best": [run["best"]["table_hash"] for run in runs]}


GOALS = [
    Goal("ratings", "MovieLens 100K, the five folds, examples/configs/ratings.toml, three seeds: RMSE at most .925 "
         "(Surprise publishes .934 for its SVD)", ratings,
         {"RMSE, mean of five folds": at_most(.925), **{f"RMSE, u{fold}": reported() for fold in FOLDS}}),
    Goal("keep-best", f"MovieLens 100K, {OVERFIT_EPOCHS} epochs without l2: the result is the model of the best "
         "validation, with equal hashes on one rank and two", keep_best,
         {"epoch of the best validation": at_most(OVERFIT_EPOCHS - 1),
          "RMSE of the last step / best, validation": reported(), "RMSE, test, and of eval": all_equal(),
          "table hash of the best": all_equal()}),
]
