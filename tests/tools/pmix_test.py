#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts ranks with mpirun and checks that they join. Skipped (exit status 77) without mpirun.

usage: pmix_test.py PMIX_JOIN    the program
"""
import os
import shutil
import subprocess
import sys

RANKS = 3


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    mpirun = shutil.which("mpirun")
    if mpirun is None:
        print("there is no mpirun (nothing can start the ranks): install openmpi-bin")
        sys.exit(77)
    known = ("RANK", "WORLD_SIZE", "PMIX_", "OMPI_", "SLURM_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(known)}
    environment["ASAN_OPTIONS"] = "detect_leaks=0"  # PMIx itself leaks some bytes
    done = subprocess.run([mpirun, "--allow-run-as-root", "--oversubscribe", "-n", str(RANKS), sys.argv[1], str(RANKS)],
                          env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300,
                          check=False)
    print(done.stdout + done.stderr)
    sys.exit(0 if done.returncode == 0 and done.stdout.count("right") == RANKS else 1)


if __name__ == "__main__":
    main()
