# SPDX-License-Identifier: Apache-2.0
"""The goals of workloads with published results: quality with the recommended configurations."""
import statistics
import sys

from goal import CORES, ROOT, CannotMeasure, Goal, all_equal, at_least, at_most, reported
from goals_slice import fb15k

FOLDS, SEEDS = range(1, 6), range(1, 4)
OVERFIT_EPOCHS, OVERFIT_RATE = 30, .1
# Of the text with planted topics: one epoch, with all words as candidates.
TOPICS = {"model.min_count": 1, "model.negatives": 15, "model.shared_negatives": 18,
          "optimizer.kind": "rowwise_adagrad", "optimizer.learning_rate": .08, "optimizer.schedule": "constant",
          "train.epochs": 1, "train.batch_size": 96}


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
                "optimizer.kind": "adagrad", "optimizer.learning_rate": OVERFIT_RATE, "model.l2": 0,
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


def reciprocal(bench, config):
    """Settings were chosen on the validation triples; all test triples count, also those with unseen names."""
    runs = [bench.train(config, f"workloads/{config}", {
        **fb15k(bench), "train.seed": seed, "train.validate_every": 0, "eval.samples_max": 0, "run.threads": CORES})
        for seed in SEEDS]
    return {"test MRR": [run["test"]["mrr"] for run in runs], "seconds": [run["wall_seconds"] for run in runs]}


def distance_speed(bench):
    """Trains the same steps with ComplEx and with distances, one after the other."""
    settings = {**fb15k(bench), "data.valid": "", "data.test": "", "model.dim": 256, "model.negatives": 500,
                "model.n3": 0, "train.steps": 200, "train.validate_every": 0, "train.checkpoint_every": 0,
                "run.threads": CORES}

    def speed(model):
        run = bench.train("fb15k-237-reciprocal.toml", "workloads/speed", {**settings, "model.name": model})
        return run["samples_per_s"]

    found = {"RotatE": [], "TransE": []}
    for _ in SEEDS:
        of_complex = speed("complex")
        for name, speeds in found.items():
            speeds.append(speed(name.lower()) / of_complex)
    return {f"{name} / ComplEx, samples per second": speeds for name, speeds in found.items()}


def recommendations(bench, config, settings=()):
    """Settings were chosen on a part of the training interactions; the test is that of LightGCN."""
    folder = bench.data and bench.data / "gowalla"
    if folder is None or not (folder / "test.txt").exists():
        raise CannotMeasure("Gowalla is missing: use --data FOLDER with gowalla/train.txt and test.txt in it")
    runs = [bench.train(config, f"workloads/{config}", {
        "data.folder": folder, "data.train": "train.txt", "data.test": "test.txt", "train.seed": seed,
        "train.validate_every": 0, "run.threads": CORES, **dict(settings)}) for seed in SEEDS]
    return {"recall@20": [run["test"]["recall@20"] for run in runs],
            "ndcg@20": [run["test"]["ndcg@20"] for run in runs],
            "recall@20 of the most popular items": [runs[0]["test"]["popularity"]["recall@20"]],
            "seconds": [run["wall_seconds"] for run in runs]}


def words(bench):
    """Trains on the first 30 MB of enwiki, and answers questions-words.txt."""
    folder = bench.data
    if folder is None or not all((folder / name).exists() for name in ("enwiki-30mb.txt", "questions-words.txt")):
        raise CannotMeasure("the text is missing: use --data FOLDER with enwiki-30mb.txt and questions-words.txt in it")
    runs = [bench.train("words.toml", "workloads/words", {
        "data.folder": folder, "data.train": "enwiki-30mb.txt", "data.test": "questions-words.txt", "train.seed": seed,
        "run.threads": CORES}) for seed in SEEDS]
    return {"accuracy of analogies": [run["test"]["accuracy"] for run in runs],
            "words/s": [run["words_per_s"] for run in runs], "seconds": [run["wall_seconds"] for run in runs]}


def exported_vectors(bench, run):
    """Exports the vectors of a run in the text format of word2vec, and returns the file."""
    folder = bench.fresh_folder("workloads/vectors")
    bench.run([bench.program("gpu_train"), "export", bench.work / run, folder, "--format", "word2vec"])
    return folder / "vectors.txt"


def topics(bench):
    """Trains on texts with planted topics, and counts the neighbours of words that are of the same topic."""
    script, folder = ROOT / "bench/planted_topics.py", bench.fresh_folder("workloads/topics")
    folder.mkdir()
    runs, found = [], []
    for seed in SEEDS:
        bench.run([sys.executable, script, "text", folder / "text.txt", seed])
        runs.append(bench.train("words.toml", "workloads/topics/run", {
            **TOPICS, "data.folder": folder, "train.seed": seed, "run.threads": CORES}))
        vectors = exported_vectors(bench, "workloads/topics/run")
        found.append(bench.output([sys.executable, script, "score", vectors]))
    return {"words/s": [run["words_per_s"] for run in runs],
            "neighbours of frequent words": [each["frequent"] for each in found],
            "neighbours of rare words": [each["rare"] for each in found]}


# The network is sparse, so more numbers, lower rates and larger batches are better than those of nodes.toml.
OF_WIKIPEDIA_NETWORK = {"model.dim": 256, "model.l2": 0.1, "optimizer.learning_rate": 0.005, "train.batch_size": 64}


def nodes(bench):
    """Classifies the nodes of a network of Wikipedia pages by their vectors."""
    folder = bench.data and bench.data / "node-embedding"
    if folder is None or not (folder / "Wiki_edgelist.txt").exists():
        raise CannotMeasure("the network is missing: use --data FOLDER with node-embedding/Wiki_edgelist.txt and "
                            "wiki_labels.txt in it")
    found = []
    for seed in SEEDS:
        bench.train("nodes.toml", "workloads/nodes",
                    {"data.folder": folder, "data.train": "Wiki_edgelist.txt", **OF_WIKIPEDIA_NETWORK,
                     "train.seed": seed, "run.threads": CORES})
        vectors = exported_vectors(bench, "workloads/nodes")
        found.append(bench.output([sys.executable, ROOT / "bench/node_labels.py", vectors, folder / "wiki_labels.txt"]))
    return {"micro-F1": [each["micro"] for each in found], "macro-F1": [each["macro"] for each in found]}


GOALS = [
    Goal("reciprocal", "ComplEx with reciprocal relations on FB15k-237, examples/configs/fb15k-237-reciprocal.toml, "
         "three seeds, all test triples: filtered MRR of .345 in an hour (LibKGE publishes .348)",
         lambda bench: reciprocal(bench, "fb15k-237-reciprocal.toml"),
         {"test MRR": at_least(.345), "seconds": at_most(3600)}),
    Goal("distmult", "DistMult with reciprocal relations on FB15k-237, examples/configs/fb15k-237-distmult.toml, three "
         "seeds, all test triples: filtered MRR of .335 in an hour (LibKGE publishes .343)",
         lambda bench: reciprocal(bench, "fb15k-237-distmult.toml"),
         {"test MRR": at_least(.335), "seconds": at_most(3600)}),
    Goal("transe", "TransE with reciprocal relations on FB15k-237, examples/configs/fb15k-237-transe.toml, three "
         "seeds, all test triples: filtered MRR of .30 (LibKGE publishes .313)",
         lambda bench: reciprocal(bench, "fb15k-237-transe.toml"),
         {"test MRR": at_least(.30), "seconds": reported()}),
    Goal("rotate", "RotatE with reciprocal relations on FB15k-237, examples/configs/fb15k-237-rotate.toml, three "
         "seeds, all test triples: filtered MRR of .32 (Sun et al. 2019 publish .338)",
         lambda bench: reciprocal(bench, "fb15k-237-rotate.toml"),
         {"test MRR": at_least(.32), "seconds": reported()}),
    Goal("distance-speed", "FB15k-237, dim 256, 500 shared negatives, softmax: RotatE and TransE train at least a "
         "quarter as fast as ComplEx", distance_speed,
         {"RotatE / ComplEx, samples per second": at_least(.25),
          "TransE / ComplEx, samples per second": at_least(.25)}),
    Goal("bpr", "Gowalla, examples/configs/bpr.toml with dimension 64, three seeds: recall@20 of .149 and ndcg@20 of "
         ".123 over all items (LightGCN publishes .129 and .111 for its baseline of this dimension)",
         lambda bench: recommendations(bench, "bpr.toml", {"model.dim": 64}),
         {"recall@20": at_least(.149), "ndcg@20": at_least(.123), "recall@20 of the most popular items": reported(),
          "seconds": reported()}),
    Goal("ials", "Gowalla, examples/configs/ials.toml, three seeds: recall@20 of .17 and ndcg@20 of .14 over all items",
         lambda bench: recommendations(bench, "ials.toml"),
         {"recall@20": at_least(.17), "ndcg@20": at_least(.14), "recall@20 of the most popular items": reported(),
          "seconds": reported()}),
    Goal("words", "30 MB of enwiki, examples/configs/words.toml, three seeds: accuracy of analogies of .187 "
         "(gensim with the same settings: .172 to .179)", words,
         {"accuracy of analogies": at_least(.187), "words/s": reported(), "seconds": reported()}),
    Goal("topics", "three synthetic texts of a million words, one epoch: 2 million words/s with AVX-512; of the ten "
         "neighbours of a word, .98 (frequent words) and .95 (rare words) have its topic", topics,
         {"words/s": at_least(2_000_000), "neighbours of frequent words": at_least(.98),
          "neighbours of rare words": at_least(.95)}),
    Goal("nodes", "Wikipedia's network, examples/configs/nodes.toml with more numbers in a vector, three seeds, half "
         "of the labels: micro-F1 of .67 and macro-F1 of .56 (DeepWalk publishes .669 and .560)", nodes,
         {"micro-F1": at_least(.67), "macro-F1": at_least(.56)}),
    Goal("ratings", "MovieLens 100K, the five folds, examples/configs/ratings.toml, three seeds: RMSE at most .925 "
         "(Surprise publishes .934 for its SVD)", ratings,
         {"RMSE, mean of five folds": at_most(.925), **{f"RMSE, u{fold}": reported() for fold in FOLDS}}),
    Goal("keep-best", f"MovieLens 100K, {OVERFIT_EPOCHS} epochs without l2: the result is the model of the best "
         "validation, with equal hashes on one rank and two", keep_best,
         {"epoch of the best validation": at_most(OVERFIT_EPOCHS - 1),
          "RMSE of the last step / best, validation": reported(), "RMSE, test, and of eval": all_equal(),
          "table hash of the best": all_equal()}),
]
