#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that files of a folder include only folders to its left, and that CUDA, TBB and kernel launches are used only
in the folders that they belong to.

    include/gpups  <-  kernels  <-  comm  <-  cache  <-  trainer  <-  tools, tests, bench

The rooms of kernels, comm, cache and trainer, which are their folders, have an order too: see ROOMS. A folder within a
room belongs to the room.

usage: layers.py FOLDER    of the repository
"""
import pathlib
import re
import sys

KERNEL_FACE = {"gpups", "kernels"}
STORE_FACE = KERNEL_FACE | {"comm", "cache"}
ALL = STORE_FACE | {"trainer", "tools", "tests", "bench"}
# The folders that files of a folder may include with quotes.
MAY_INCLUDE = {
    "include": {"gpups"},
    "kernels": KERNEL_FACE,
    "comm": KERNEL_FACE | {"comm"},
    "cache": STORE_FACE,
    "trainer": KERNEL_FACE | {"trainer"},  # uses the public Store only, as every application does
    "tools": STORE_FACE | {"trainer", "tools"},
    "tests": ALL - {"tools", "bench"},
    "bench": ALL - {"tools"},
    "examples": {"gpups"},
}
# The rooms of a folder, from left to right.
ROOMS = {
    "kernels": ("base", "runtime", "rows", "index", "placement", "codec", "sparse", "sum", "update", "pool", "score",
                "dense", "factor", "words"),
    "comm": ("base", "bootstrap", "ucx", "transport", "bulk", "nccl", "progress", "sim", "onesided", "collectives",
             "group"),
    "cache": ("wire", "files", "placement", "rows", "feedback", "batch", "protocol", "checkpoint", "store"),
    "trainer": ("base", "input", "dense", "config", "placement", "accounts", "step", "saved", "tasks", "run", "report",
                "trials", "doctor"),
}
CUDA_HEADER = re.compile(r"(cuda|cub/|thrust/|cooperative_groups|nvtx3/|cublas|curand)")
CUDA_WORD = re.compile(r"\b(__CUDACC__|__global__|__device__|__host__|__shared__|__CUDA_ARCH__|cuda[A-Z]\w*)\b")
STANDARD_HEADER = re.compile(r"[a-z_0-9]+$")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|("(?:\\.|[^"\\\n])*")', re.DOTALL)
LAUNCHES = "kernels/runtime/launch.hpp"


def without_comments(text):
    return COMMENT.sub(lambda match: match.group(1) or re.sub(r"[^\n]", "", match.group(0)), text)


def without_strings(text):
    return re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text)


def room_problem(path, quoted):
    """Returns what is wrong with the rooms of the file `path` and of the header that it includes, or None."""
    top = path.parts[0]
    order = ROOMS[top]
    rooms = [parts[1] if len(parts) > 2 else None for parts in (path.parts, quoted.split("/"))]
    for file, room in zip((path.as_posix(), quoted), rooms):
        if room not in order:
            return (f"{file} is in no room of {top} (the order of rooms cannot be checked): "
                    f"the rooms are {', '.join(order)}")
    if order.index(rooms[1]) > order.index(rooms[0]):
        return (f"{rooms[0]} includes {quoted} (a room of {top} includes only those to its left): "
                f"the order is {', '.join(order)}")
    return None


def problems_of(path, text):
    """Yields the problems of the file `path`, a pathlib path relative to the repository."""
    top = path.parts[0]
    uses_cuda = top == "kernels" or path.parts[:2] == ("tests", "emulator")
    code = without_comments(text)
    for match in INCLUDE.finditer(code):
        quoted, angled = match.groups()
        line = code.count("\n", 0, match.start()) + 1
        folder = quoted.split("/")[0] if quoted else ""
        if quoted and "/" not in quoted and top == "examples":
            continue  # a header of the example itself
        if quoted and "/" not in quoted:
            yield f"{path}:{line}: \"{quoted}\" has no folder (its layer cannot be checked): write the whole path"
        elif quoted and folder not in MAY_INCLUDE[top]:
            yield (f"{path}:{line}: {top} includes {quoted} (a folder includes only those to its left): "
                   f"allowed are {', '.join(sorted(MAY_INCLUDE[top]))}")
        elif folder == top and top in ROOMS and (problem := room_problem(path, quoted)):
            yield f"{path}:{line}: {problem}"
        elif angled and top == "include" and not STANDARD_HEADER.match(angled):
            yield (f"{path}:{line}: <{angled}> in a public header (an application would need that library too): "
                   "include it in a .cpp file")
        elif angled and not uses_cuda and CUDA_HEADER.match(angled):
            yield f"{path}:{line}: <{angled}> outside kernels (only kernels/ uses CUDA): call a kernel"
        elif angled and top not in ("kernels", "bench") and re.match(r"(tbb|oneapi)/", angled):
            yield (f"{path}:{line}: <{angled}> outside kernels (work is split by Arena only): "
                   "use kernels/runtime/arena.hpp")
    for number, line in enumerate(without_strings(code).splitlines(), 1):
        if "<<<" in line and path.as_posix() != LAUNCHES and path.parts[:2] != ("tests", "emulator"):
            yield f"{path}:{number}: a launch outside {LAUNCHES} (no other file may launch): use each()"
        word = CUDA_WORD.search(line)
        if word and not uses_cuda:
            yield f"{path}:{number}: {word.group(0)} outside kernels (only kernels/ uses CUDA): call a kernel"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    files = [file for top in MAY_INCLUDE for file in sorted((root / top).rglob("*"))
             if file.suffix in (".hpp", ".cpp", ".cu", ".in") and file.is_file()]
    problems = [problem for file in files
                for problem in problems_of(file.relative_to(root), file.read_text(encoding="utf-8"))]
    print("\n".join(problems + [f"{len(files)} files, {len(problems)} problems"]))
    sys.exit(1 if problems or not files else 0)


if __name__ == "__main__":
    main()
