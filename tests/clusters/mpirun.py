# SPDX-License-Identifier: Apache-2.0
"""Jobs started by Open MPI's mpirun on this machine. Ranks find each other by PMIx; MPI itself is not used."""
from processes import Job, clean_environment, missing as missing_programs


def missing():
    """What is not here that these jobs need, as a list of texts."""
    return missing_programs("mpirun", "setpriv")


def job(command, ranks, cwd=None, env=None, bind_to="none", options=(), within=lambda command: command):
    """A running job. bind_to: what mpirun binds each rank to ("core", "none", ...). options: more of its options.
    within: turns mpirun's command into one that runs it elsewhere, such as in a namespace."""
    made = Job(ranks)
    # No remote machines: without this mpirun fails where there is no ssh. Its own files go to the job's folder.
    its_env = clean_environment(TMPDIR=made.folder, OMPI_MCA_plm="isolated", **(env or {}))
    launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", bind_to, *options, "-n", ranks]
    made.start_launcher(within([*launcher, *made.in_rank_files(command, "PMIX_RANK")]), its_env, cwd)
    return made
