#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Classifies nodes by their vectors, as DeepWalk's authors do: half of the nodes, drawn at random, train a logistic
regression for each label, one against the rest; of each other node, as many labels are predicted as it has. Prints the
means of micro-F1 and macro-F1 over ten draws, as JSON. Needs scikit-learn.

usage: node_labels.py VECTORS LABELS    VECTORS: a text file of word2vec; LABELS: lines of a node and a label
"""
import json
import sys
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning, UndefinedMetricWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.preprocessing import MultiLabelBinarizer

DRAWS = 10
PENALTY = 10  # scikit-learn's C, chosen within the training half


def vectors_of(path):
    """Returns the vector of each node."""
    with open(path) as lines:
        next(lines)  # their number and dim
        rows = (line.split() for line in lines)
        return {row[0]: np.array(row[1:], dtype=np.float32) for row in rows}


def labels_of(path):
    """Returns the set of labels of each node."""
    labels = {}
    with open(path) as lines:
        for line in lines:
            node, label = line.split()[:2]
            labels.setdefault(node, set()).add(label)
    return labels


def scores(vectors, truth, train, test):
    """Returns the micro-F1 and macro-F1 of a draw. truth: a row for each node, with 1 for each of its labels."""
    decisions = np.full((len(test), truth.shape[1]), -np.inf)
    for label in range(truth.shape[1]):
        if 0 < truth[train, label].sum() < len(train):
            model = LogisticRegression(solver="liblinear", C=PENALTY).fit(vectors[train], truth[train, label])
            decisions[:, label] = model.decision_function(vectors[test])
    predicted = np.zeros((len(test), truth.shape[1]), dtype=int)
    best_first = np.argsort(-decisions, axis=1)
    for row, node in enumerate(test):
        predicted[row, best_first[row, :truth[node].sum()]] = 1
    return [f1_score(truth[test], predicted, average=average) for average in ("micro", "macro")]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", UndefinedMetricWarning)
    vectors, labels = vectors_of(sys.argv[1]), labels_of(sys.argv[2])
    nodes = [node for node in labels if node in vectors]
    matrix = np.array([vectors[node] for node in nodes])
    truth = MultiLabelBinarizer().fit_transform([sorted(labels[node]) for node in nodes])
    found = []
    for seed in range(DRAWS):
        order = np.random.default_rng(seed).permutation(len(nodes))
        found.append(scores(matrix, truth, order[:len(nodes) // 2], order[len(nodes) // 2:]))
    micro, macro = np.mean(found, axis=0)
    print(json.dumps({"micro": micro, "macro": macro, "nodes": len(nodes)}))


if __name__ == "__main__":
    main()
