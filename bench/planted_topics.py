#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures word vectors by topics that were planted in a text. Each word is of one topic, and is called tTOPICwRANK.

`text FILE SEED` writes a text of a million words, 20 in a line. Words are drawn in proportion to 1 / RANK: of a line,
three in five from the words of the line's topic, the others from all words.
`score VECTORS` reads a text file of word2vec, and prints as JSON the share of the ten nearest neighbours, by cosine and
among all words of the file, that are of the word's topic: the mean over frequent words (ranks 100 to 1300), and over
rare words (ranks 1500 to 3500). Needs numpy.

usage: planted_topics.py text FILE SEED | planted_topics.py score VECTORS
"""
import json
import re
import sys

import numpy as np

WORDS, TOPICS, LINES, LINE_WORDS, OF_TOPIC = 20_000, 50, 50_000, 20, .6
RANKS = {"frequent": (100, 1300), "rare": (1500, 3500)}
NEIGHBOURS = 10


def write_text(path, seed):
    random = np.random.default_rng(seed)
    topic_of, share = random.integers(TOPICS, size=WORDS), 1 / np.arange(1, WORDS + 1)
    topic_of_line = np.repeat(random.integers(TOPICS, size=LINES), LINE_WORDS)
    text = random.choice(WORDS, size=LINES * LINE_WORDS, p=share / share.sum())
    of_topic = random.random(text.size) < OF_TOPIC
    for topic in range(TOPICS):
        words, at = np.flatnonzero(topic_of == topic), np.flatnonzero(of_topic & (topic_of_line == topic))
        text[at] = random.choice(words, size=at.size, p=share[words] / share[words].sum())
    names = np.array([f"t{topic}w{rank}" for rank, topic in enumerate(topic_of, 1)])
    with open(path, "w") as file:
        file.writelines(" ".join(line) + "\n" for line in names[text].reshape(LINES, LINE_WORDS))


def score(path):
    with open(path) as lines:
        next(lines)  # their number and dim
        rows = [line.split() for line in lines]
    topics, ranks = np.array([[int(n) for n in re.fullmatch(r"t(\d+)w(\d+)", row[0]).groups()] for row in rows]).T
    vectors = np.array([row[1:] for row in rows], dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = {}
    for name, (first, last) in RANKS.items():
        words = np.flatnonzero((first <= ranks) & (ranks <= last))
        cosines = vectors[words] @ vectors.T
        cosines[np.arange(len(words)), words] = -np.inf  # a word is not its own neighbour
        nearest = np.argpartition(-cosines, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
        found[name] = float((topics[nearest] == topics[words, None]).mean())
    return found


def main():
    command, arguments = (sys.argv[1:2] or [""])[0], sys.argv[2:]
    if command == "text" and len(arguments) == 2:
        write_text(arguments[0], int(arguments[1]))
    elif command == "score" and len(arguments) == 1:
        print(json.dumps(score(arguments[0])))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
