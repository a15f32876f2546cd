#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every text file of the project: licence line, markers of unfinished work, ASCII characters, length of lines,
and words that another one has replaced (tests/style/retired_words.tsv). Checks that each type name in the product's
headers is the name of one type.

usage: words.py FOLDER    of the repository
"""
import collections
import fnmatch
import os
import pathlib
import re
import sys

SOURCES = {".hpp", ".cpp", ".cu", ".in", ".py", ".sh", ".cmake", ".toml", ".yaml", ".sbatch"}
TEXTS = SOURCES | {".md", ".json", ".txt", ""}
SKIPPED_FOLDERS = {".git", "build", "runs", "__pycache__", "corpus"}  # the last: bytes for fuzz targets
# The words are split here so that this file does not report itself.
LEFTOVER = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"]) + r")\b")
LINES_MAX = 400
COLUMNS_MAX = 120

# A word: an identifier, or a part of one.
WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# The parts of an identifier: kUcxKinds has the parts k, ucx, kinds; HTTPHeader has http, header.
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]*|[a-z]+|[0-9]+")

# The folders whose headers are part of one program. Each example, benchmark and test is a separate program.
PRODUCT = ("include", "kernels", "comm", "cache", "trainer", "tools")
# Names that several classes may use for a nested type; templates require the last ones.
CONVENTIONAL = {"Impl", "Options", "Kind", "State", "Entry", "Id", "Result", "Ref", "Time", "Clock", "Seconds",
                "SteadyClock",
                "Value", "Number", "Relation", "Score", "Search", "Source"}
# Other names that two headers may define, and the reasons.
SHARED_NAMES = {}


def is_source(path, text):
    return path.suffix in SOURCES or path.name == "CMakeLists.txt" or text.startswith("#!")


def is_prose(path, line):
    """Rows of tables are not prose: they are one line of any length."""
    return path.suffix == ".md" and not line.lstrip().startswith("|")


def problems_of(path, text):
    """Yields the problems of the file `path`, a pathlib path relative to the repository."""
    lines = text.splitlines()
    if is_source(path, text):
        if not any("SPDX-License-Identifier: Apache-2.0" in line for line in lines[:2]):
            yield f"{path}:1: no SPDX line (its licence is not stated): add it at the top"
        if path.suffix == ".hpp" and "#pragma once" not in lines:
            yield f"{path}:1: no #pragma once (it could be included twice): add it"
        if len(lines) > LINES_MAX:
            yield f"{path}:{LINES_MAX}: {len(lines)} lines (more than {LINES_MAX} are hard to read): split it"
    for number, line in enumerate(lines, 1):
        if LEFTOVER.search(line):
            yield f"{path}:{number}: {LEFTOVER.search(line).group(0)} (a marker of unfinished work): finish the work"
        if not line.isascii():
            yield f"{path}:{number}: not ASCII (other editors may show it differently): use ASCII characters"
        if line != line.rstrip() or "\t" in line:
            yield f"{path}:{number}: a tab or a trailing space (it causes needless diffs): remove it"
        if len(line) > COLUMNS_MAX and (is_source(path, text) or is_prose(path, line)):
            yield f"{path}:{number}: {len(line)} columns (more than {COLUMNS_MAX} do not fit side by side): break it"
    if text and not text.endswith("\n"):
        yield f"{path}:{len(lines)}: no newline at the end (it causes needless diffs): add one"


def parts_of(word):
    return tuple(part.lower() for part in PART.findall(word))


class RetiredWords:
    """A list of words that must not be used any more. A line has old word, new word, and where, separated by tabs.

    where: "all" (all files except the change log, the list of former configuration keys and the tests of style), or
    folders, or globs of paths, separated by commas; a glob that begins with "!" excludes files.
    An old word is found in text and in identifiers, as the whole word or as consecutive parts of it: "turn_soon" in
    TurnSoon and in turn_soon_, but "turn" not in "return". An old word with spaces is found in text only.
    """

    def __init__(self, lines):
        self.by_first_part = collections.defaultdict(list)
        self.phrases = []
        for number, line in enumerate(lines, 1):
            if not line.strip() or line.startswith("#"):
                continue
            fields = line.rstrip("\n").split("\t")
            if len(fields) != 3 or not all(fields):
                raise ValueError(f"line {number}: {line!r} is not old word, new word and where, separated by tabs")
            old, new, where = fields
            entry = (parts_of(old), old, new, self.globs_of(where))
            if " " in old:
                pattern = r"(?:\s|//|#)+".join(re.escape(word) for word in old.split(" "))
                self.phrases.append((re.compile(rf"(?<!\w){pattern}(?!\w)", re.IGNORECASE), old, new, entry[3]))
            elif entry[0]:
                self.by_first_part[entry[0][0]].append(entry)
            else:
                raise ValueError(f"line {number}: {old!r} is no word")

    @staticmethod
    def globs_of(where):
        if where == "all":
            return ["*", "!CHANGELOG.md", "!tests/style/*"]
        return [glob if set(glob) & set("*?[!.") else f"{glob}/*" for glob in where.split(",")]

    @staticmethod
    def is_in(path, globs):
        name = path.as_posix()
        return (any(fnmatch.fnmatchcase(name, glob) for glob in globs if not glob.startswith("!"))
                and not any(fnmatch.fnmatchcase(name, glob[1:]) for glob in globs if glob.startswith("!")))

    def in_word(self, path, word):
        """Yields (old, new) for each retired word in `word`."""
        parts = parts_of(word)
        for i, part in enumerate(parts):
            for retired, old, new, globs in self.by_first_part.get(part, ()):
                if parts[i:i + len(retired)] == retired and self.is_in(path, globs):
                    yield old, new

    def problems_of(self, path, text):
        for match in WORD.finditer(text):
            for old, new in self.in_word(path, match.group(0)):
                line = text.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: {match.group(0)} (the word {old} is retired): use {new}"
        for pattern, old, new, globs in self.phrases:
            for match in pattern.finditer(text) if self.is_in(path, globs) else ():
                line = text.count("\n", 0, match.start()) + 1
                yield f"{path}:{line}: \"{old}\" (these words are retired): use {new}"


COMMENT_OR_STRING = re.compile(r"//[^\n]*|/\*.*?\*/|R\"\(.*?\)\"|\"(?:\\.|[^\"\\\n])*\"|"
                               r"(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'|"
                               r"^[ \t]*#(?:[^\n\\]|\\.)*", re.DOTALL | re.MULTILINE)
DECLARATION = re.compile(
    r"(?P<open>\{)|(?P<close>\})|\bnamespace\b[\w:\s]*(?P<namespace>\{)|\benum\s+(?:class\s+)?(?P<enum>\w+)[^;{}()]*\{|"
    r"\busing\s+(?P<alias>\w+)\s*=|"
    r"(?<!enum )\b(?:class|struct)\s+(?:\[\[\w+\]\]\s*|alignas\([^()]*\)\s*|GPUPS_\w+\s+)?"
    r"(?P<type>[\w:]+)(?P<rest>[^;{}()=]*)\{")


def blanked(text):
    return re.sub(r"[^\n]", " ", text)


def without_template_heads(code):
    """Blanks heads of templates, since `class T` in them defines no class."""
    parts, at = [], 0
    for head in re.finditer(r"\btemplate\s*(?=<)", code):
        if head.start() < at:
            continue
        end, depth = head.end(), 0
        while end < len(code):
            depth += {"<": 1, ">": -1}.get(code[end], 0)
            end += 1
            if depth == 0:
                break
        parts += [code[at:head.start()], blanked(code[head.start():end])]
        at = end
    return "".join(parts + [code[at:]])


def types_defined(text):
    """Yields (line, enclosing classes, name) of each type that a header defines at namespace or class scope. Aliases
    count; forward declarations, specializations and types within functions do not."""
    code = without_template_heads(COMMENT_OR_STRING.sub(lambda match: blanked(match.group(0)), text))
    scopes = []  # a class's name; "" for a namespace; None for anything else
    for match in DECLARATION.finditer(code):
        if match["close"]:
            if scopes:
                scopes.pop()
            continue
        defines = None not in scopes
        classes = [scope for scope in scopes if scope]
        if match["namespace"]:
            scopes.append("")
        elif match["open"]:
            scopes.append(None)
        elif match["alias"]:
            if defines:
                yield code.count("\n", 0, match.start("alias")) + 1, classes, match["alias"]
        else:
            name = match["enum"] or match["type"]
            *outer, last = name.split("::")
            is_specialization = match["type"] and match["rest"].lstrip().startswith("<")
            if defines and not is_specialization:
                yield code.count("\n", 0, match.start()) + 1, classes + outer, last
            scopes.append(None if match["enum"] else last)


def problems_of_types(headers):
    """Yields type names that several headers define, since a reader has to look up each use of them.

    headers: a list of (path, text)."""
    places = collections.defaultdict(dict)
    for path, text in headers:
        for line, classes, name in types_defined(text):
            places[name].setdefault(path, (line, classes))
    for name, found in sorted(places.items()):
        if len(found) == 1 or len(name) <= 2 or name in SHARED_NAMES:
            continue
        if name in CONVENTIONAL and all(classes for _, classes in found.values()):
            continue
        first, *others = sorted(found, key=str)
        for other in others:
            yield (f"{other}:{found[other][0]}: the type name {name} is also defined in {first} (each type needs "
                   "another name): rename one")


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
    with open(pathlib.Path(__file__).with_name("retired_words.tsv"), encoding="utf-8") as lines:
        retired = RetiredWords(lines)
    files = list(text_files(root))
    problems, headers = [], []
    for file in files:
        path, text = file.relative_to(root), file.read_text(encoding="utf-8")
        problems += problems_of(path, text)
        problems += retired.problems_of(path, text)
        if path.suffix == ".hpp" and path.parts[0] in PRODUCT:
            headers.append((path, text))
    problems += problems_of_types(headers)
    print("\n".join(problems + [f"{len(files)} files, {len(problems)} problems"]))
    sys.exit(1 if problems or not files else 0)


if __name__ == "__main__":
    main()
