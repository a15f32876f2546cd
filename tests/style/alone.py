#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compiles each changed header and source of host code alone, with only what it includes. A build with GPUPS_UNITY does
not show what is missing: it compiles several sources at a time, after a precompiled header.

usage: alone.py BUILD [PATH...] -- COMPILER...

COMPILER may begin with a launcher, such as ccache. The flags are those of BUILD/compile_commands.json, without
optimisation and sanitizers; objects are made only since ccache does not know -fsyntax-only. `tools/changed` says which
files changed since yesterday; with CI_ALL=1 it names all. A header is compiled by the source of the same name if that
includes it first. Otherwise it is included twice and nothing else is, so a header without an include guard does not
compile. PATH selects folders; by default, all of them.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("include", "kernels", "comm", "cache", "trainer", "tools", "tests")
FOR_NVCC = re.compile(r"/(device_[^/]*|[^/]*_device)\.hpp$")
INCLUDE = re.compile(r'^#include "([^"]+)"', re.MULTILINE)
WITH_ARGUMENT = ("-o", "-MT", "-MF", "-include")
DROPPED = re.compile(r"(-c|-MD|-Winvalid-pch|-O.|-g.?|-f(no-)?sanitize.*)$")


def flags_of(command, compiler, source):
    """Returns the command's arguments after the compiler, without the source, the outputs and a precompiled header."""
    words = iter(command[command.index(compiler) + 1:])
    flags = []
    for word in words:
        if word in WITH_ARGUMENT:
            next(words)
        elif not DROPPED.match(word) and word != source:
            flags.append(word)
    return flags


def read_commands(build, compiler):
    """Returns {path: (folder, flags)} for the sources that the build does not compile alone, and for the templates of
    headers."""
    commands = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        command, source = shlex.split(entry["command"]), pathlib.Path(entry["file"])
        if compiler not in command or source.suffix != ".cpp":
            continue
        flags = (entry["directory"], flags_of(command, compiler, entry["file"]))
        if source.is_relative_to(build):  # generated: it only includes sources
            for path in INCLUDE.findall(source.read_text()) if source.is_file() else ():
                commands.setdefault(path, flags)
            commands.setdefault(source.name, flags)
        elif "-include" in command:
            commands.setdefault(str(source.relative_to(ROOT)), flags)
    return commands


def source_of(header):
    """Returns the source of the same name that includes the header first, or None."""
    for suffix in (".cpp", ".cu"):
        source = header.with_suffix(suffix)
        if (ROOT / source).is_file():
            first = INCLUDE.search(re.sub(r"^#include <.*", '#include "<>"', (ROOT / source).read_text(), flags=re.M))
            if first and first[1] == str(header):
                return source
    return None


def units_of(changed, has_cuda):
    """Returns {path: text} of what to compile for the changed files; a template's name comes with the text of a header
    alone."""
    units = {}
    for path in map(pathlib.PurePosixPath, changed):
        if path.parts[0] not in FOLDERS or not (ROOT / path).is_file():
            continue
        if path.suffix in (".cpp", ".cu"):
            units[str(path)] = str(path)
        elif path.suffix == ".hpp" and not FOR_NVCC.search(str(path)):
            if source := source_of(path):
                units[str(source)] = str(source)
            elif has_cuda or path.parts[:2] != ("tests", "emulator"):  # which includes headers of CUDA
                units[str(path)] = "public_headers.cpp" if path.parts[0] == "include" else "inner_headers.cpp"
    return units


def compile_alone(path, compiler, output, folder, flags):
    """Returns the messages of the compiler, or nothing if the file compiles."""
    source = pathlib.Path(output, path + ".alone.cpp")
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(f'#include "{path.removeprefix("include/")}"\n' * (2 if path.endswith(".hpp") else 1))
    made = source.with_suffix(".o")
    done = subprocess.run([*compiler, *flags, "-O0", "-MD", "-MF", made.with_suffix(".d"), "-c", source, "-o", made],
                          cwd=folder, text=True, stderr=subprocess.PIPE)
    made.unlink(missing_ok=True)
    return f"{path} does not compile alone:\n{done.stderr}" if done.returncode else ""


def main(arguments):
    if "--" not in arguments[1:-1]:
        raise SystemExit(__doc__)
    end = arguments.index("--")
    build, compiler = pathlib.Path(arguments[0]).resolve(), arguments[end + 1:]
    changed = subprocess.run([ROOT / "tools/changed", *arguments[1:end]], stdout=subprocess.PIPE, text=True,
                             check=True).stdout.split()
    commands = read_commands(build, compiler[-1])
    has_cuda = any(path.startswith("tests/emulator/") for path in commands)
    units = sorted(units_of(changed, has_cuda).items())
    jobs = [(path, compiler, build / "alone", *commands[key]) for path, key in units if key in commands]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        problems = [problem for problem in pool.map(lambda job: compile_alone(*job), jobs) if problem]
    print("\n".join([*problems, f"{len(jobs)} files compiled alone, {len(problems)} with errors"]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
