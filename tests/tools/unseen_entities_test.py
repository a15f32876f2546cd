#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the test metrics of gpu_train with ranks that are computed here from exported rows, for a graph whose test
triples have entities and a relation that training does not have, with and without reciprocal relations.

usage: unseen_entities_test.py PROGRAM
"""
import array
import ast
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = None
CONFIG = """[data]
valid = ""
[model]
name = "distmult"
dim = 12
[train]
epochs = 3
batch_size = 32
[run]
device = "host"
threads = 1
"""
TRAIN = [(f"e{s}", f"by{r}", f"e{(s + r) % 60}") for s in range(60) for r in (1, 7, 20)]
SEEN = TRAIN[:12]
UNSEEN = [("e3", "by7", "new0"), ("new1", "by7", "e3"), ("new1", "by1", "new2"), ("e5", "other", "e9")]


def read_npy(path):
    """Returns the shape and the numbers of a NumPy array."""
    data = path.read_bytes()
    header_end = 10 + int.from_bytes(data[8:10], "little")
    header = ast.literal_eval(data[10:header_end].decode())
    numbers = array.array({"<f4": "f", "<u8": "Q"}[header["descr"]], data[header_end:])
    return header["shape"], numbers


def read_table(folder, table, *files):
    """Returns the row of each name of the exported table, for each file of keys and names."""
    (rows, dim), values = read_npy(folder / "rows" / f"{table}.values.npy")
    _, keys = read_npy(folder / "rows" / f"{table}.keys.npy")
    row_of = {key: values[i * dim:(i + 1) * dim] for i, key in enumerate(keys)}
    named = [[line.split("\t") for line in (folder / file).read_text().splitlines()] for file in files]
    assert len(row_of) == rows == sum(map(len, named)), "one row for each name"
    return [{name: row_of[int(key)] for key, name in lines} for lines in named]


def metrics_of(triples, facts, entities, relations, inverses):
    """Returns the filtered MRR and Hits@1 of the model DistMult. inverses: the rows with which objects ask for
    subjects."""
    def score(s, row, o):
        return sum(a * b * c for a, b, c in zip(entities[s], row, entities[o]))

    ranks = []
    for s, r, o in triples:
        sides = ((relations[r], [(s, r, e) for e in entities]), (inverses[r], [(e, r, o) for e in entities]))
        for row, others in sides:
            right = score(s, row, o)
            ranks.append(1 + sum(score(a, row, b) > right for a, _, b in others if (a, r, b) not in facts))
    return sum(1 / rank for rank in ranks) / len(ranks), sum(rank == 1 for rank in ranks) / len(ranks)


class UnseenEntities(unittest.TestCase):
    def test_metrics_are_those_of_exported_rows(self):
        with tempfile.TemporaryDirectory() as held:
            folder = pathlib.Path(held)
            test = SEEN + UNSEEN
            write = lambda name, triples: (folder / name).write_text("".join("\t".join(t) + "\n" for t in triples))
            write("train.txt", TRAIN[12:])
            write("test.txt", test)
            (folder / "graph.toml").write_text(CONFIG)
            for ranks, reciprocal in ((1, False), (2, False), (1, True), (2, True)):
                name = f"{ranks}{reciprocal}"
                run, exported = folder / f"run{name}", folder / f"exported{name}"
                command = [PROGRAM, "train", folder / "graph.toml", "--ranks", str(ranks), "--run", run]
                if reciprocal:
                    command += ["--set", "model.reciprocal=true", "--set", "model.sampling=shared"]
                subprocess.run(command, check=True)
                subprocess.run([PROGRAM, "export", run, exported, "--format", "npy"], check=True)
                summary = json.loads((run / "summary.json").read_text())
                found = summary["test"]
                description = json.loads((exported / "model.json").read_text())
                self.assertEqual([description[name] for name in ("model", "dim", "steps")],
                                 ["distmult", 12, summary["steps"]])
                self.assertIn(f"reciprocal = {str(reciprocal).lower()}", description["configuration"])
                [entities] = read_table(exported, "entities", "entities.tsv")
                files = ["relations.tsv", "inverse_relations.tsv"] if reciprocal else ["relations.tsv"]
                relations, *inverses = read_table(exported, "relations", *files)
                inverses = inverses[0] if reciprocal else relations
                self.assertEqual(summary["entities"], len(entities))
                self.assertEqual((len(entities), len(relations)), (63, 4))
                mrr, hits = metrics_of(test, set(TRAIN + UNSEEN), entities, relations, inverses)
                self.assertEqual((found["ranked"], found["triples"], found["unseen"]), (32, 16, 4))
                self.assertAlmostEqual(found["mrr"], mrr, 6)
                self.assertAlmostEqual(found["hits@1"], hits, 6)


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
