# SPDX-License-Identifier: Apache-2.0
"""Jobs whose ranks find each other by RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as processes of this machine."""
import os
import secrets

import processes


def missing():
    """Returns what these jobs need and this machine lacks, as a list of texts."""
    return processes.missing("setpriv")


def write_token(folder):
    """Writes a new token to a file that only its owner may read. A command line would show the token to all users."""
    path = folder / "token"
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_hex(32) + "\n")
    return path


def variables(rank, ranks, address, port, token_file):
    return {"RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": address, "MASTER_PORT": port,
            "GPUPS_TOKEN_FILE": token_file}


def job(command, ranks, cwd=None, env=None):
    """Starts a job and returns it."""
    made = processes.Job(ranks)
    token_file, port = write_token(made.folder), processes.free_port()
    for rank in range(ranks):
        its_env = processes.clean_environment(**variables(rank, ranks, "127.0.0.1", port, token_file), **(env or {}))
        made.start_rank(rank, command, its_env, cwd)
    return made
