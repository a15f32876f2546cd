# SPDX-License-Identifier: Apache-2.0
"""Jobs started by Open MPI's mpirun on this machine. Ranks find each other by PMIx; MPI itself is not used."""
from processes import Job, clean_environment, missing as missing_programs


def missing():
    """What is not here that these jobs need, as a list of texts."""
    return missing_programs("mpirun", "setpriv")


def job(command, ranks, cwd=None, env=None, bind_to="none"):
    """A running job. bind_to: what mpirun binds each rank to ("core", "none", ...)."""
    made = Job(ranks)
    # No remote machines: without this mpirun fails where there is no ssh. Its own files go to the job's folder.
    its_env = clean_environment(TMPDIR=made.folder, OMPI_MCA_plm="isolated", **(env or {}))
    made.start_launcher(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", bind_to, "-n", ranks,
                         *made.in_rank_files(command, "PMIX_RANK")], its_env, cwd)
    return made
