#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks what every text file of the project has or must not have: licence line, leftover markers, plain characters,
length of lines.

usage: words.py FOLDER    of the repository
"""
import os
import pathlib
import re
import sys

SOURCES = {".hpp", ".cpp", ".cu", ".in", ".py", ".sh", ".cmake", ".toml", ".yaml", ".sbatch"}
TEXTS = SOURCES | {".md", ".json", ".txt", ""}
SKIPPED_FOLDERS = {".git", "build", "runs", "__pycache__", "corpus"}  # the last: bytes for fuzz targets
# Written in parts, so that this file does not find itself.
LEFTOVER = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
LINES_MAX = 400
COLUMNS_MAX = 120


def is_source(path, text):
    return path.suffix in SOURCES or path.name == "CMakeLists.txt" or text.startswith("#!")


def is_prose(path, line):
    """A table has a line for each row, however long."""
    return path.suffix == ".md" and not line.lstrip().startswith("|")


def problems_of(path, text):
    """What is wrong with the file `path`, a pathlib path relative to the repository."""
    lines = text.splitlines()
    if is_source(path, text):
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:2]):
            yield f"{path}:1: no SPDX line (its licence is not stated): add it on top"
        if path.suffix == ".hpp" and "#pragma once" not in lines:
            yield f"{path}:1: no #pragma once (it could be included twice): add it"
        if len(lines) > LINES_MAX:
            yield f"{path}:{LINES_MAX}: {len(lines)} lines (a file is one idea): split it"
    for number, line in enumerate(lines, 1):
        if LEFTOVER.search(line):
            yield f"{path}:{number}: {LEFTOVER.search(line).group(0)} (work left over): finish it"
        if not line.isascii():
            yield f"{path}:{number}: not ASCII (it may look different elsewhere): spell it in plain characters"
        if line != line.rstrip() or "\t" in line:
            yield f"{path}:{number}: a tab or a trailing space (diffs get noisy): remove it"
        if len(line) > COLUMNS_MAX and (is_source(path, text) or is_prose(path, line)):
            yield f"{path}:{number}: {len(line)} columns (more than {COLUMNS_MAX} do not fit side by side): break it"
    if text and not text.endswith("\n"):
        yield f"{path}:{len(lines)}: no newline at the end (diffs get noisy): add one"


def text_files(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(set(folders) - SKIPPED_FOLDERS)
        for name in sorted(names):
            path = pathlib.Path(folder, name)
            if path.suffix in TEXTS and name not in ("LICENSE", ".git"):
                yield path


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    files = list(text_files(root))
    problems = [problem for file in files
                for problem in problems_of(file.relative_to(root), file.read_text(encoding="utf-8"))]
    print("\n".join(problems + [f"{len(files)} files, {len(problems)} problems"]))
    sys.exit(1 if problems or not files else 0)


if __name__ == "__main__":
    main()
