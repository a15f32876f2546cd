# SPDX-License-Identifier: Apache-2.0
"""Jobs started by Open MPI's mpirun on this machine. Ranks find each other by PMIx; MPI itself is not used."""
from processes import Job, clean_environment, missing as missing_programs


def missing():
    """Returns what these jobs need and this machine lacks, as a list of texts."""
    return missing_programs("mpirun", "setpriv")


def job(command, ranks, cwd=None, env=None, bind_to="none", options=(), within=lambda command: command):
    """Starts a job and returns it. bind_to: what mpirun binds each rank to ("core", "none", ...). options: more.
    within: changes mpirun's command so that it runs elsewhere, for example in a namespace."""
    made = Job(ranks)
    # "isolated" uses no remote machines: otherwise mpirun fails without ssh. Its own files are in the job's folder.
    its_env = clean_environment(TMPDIR=made.folder, OMPI_MCA_plm="isolated", **(env or {}))
    launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", bind_to, *options, "-n", ranks]
    made.start_launcher(within([*launcher, *made.in_rank_files(command, "PMIX_RANK")]), its_env, cwd)
    return made
