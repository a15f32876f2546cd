#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Unpacks and packs the corpora of fuzz targets. A corpus is an archive, tests/fuzz/corpus/NAME.zip, whose files are
stored without compression, so that replay.cpp can read it. libFuzzer needs a folder.

usage: corpus.py unpack NAME FOLDER    writes the files of the corpus NAME into FOLDER, creating it if needed
       corpus.py pack NAME FOLDER      makes the corpus NAME of FOLDER; equal files give equal archives
"""
import pathlib
import sys
import zipfile

CORPORA = pathlib.Path(__file__).resolve().parent / "corpus"
FILES_MAX = 200
EARLIEST = (1980, 1, 1, 0, 0, 0)


def unpack(archive, folder):
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(folder)


def pack(archive, folder):
    files = sorted(path for path in folder.iterdir() if path.is_file())
    if not 0 < len(files) <= FILES_MAX:
        sys.exit(f"{folder} has {len(files)} files (every run of the tests replays them all): leave 1 to {FILES_MAX}, "
                 "by -set_cover_merge=1 for example")
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_STORED) as packed:
        for file in files:
            packed.writestr(zipfile.ZipInfo(file.name, EARLIEST), file.read_bytes())


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("unpack", "pack"):
        sys.exit(__doc__)
    archive = CORPORA / f"{sys.argv[2]}.zip"
    (unpack if sys.argv[1] == "unpack" else pack)(archive, pathlib.Path(sys.argv[3]))


if __name__ == "__main__":
    main()
