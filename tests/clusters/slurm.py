# SPDX-License-Identifier: Apache-2.0
"""A real Slurm cluster on this machine: its daemons run on the hosts of namespaces.py. Needs the rights of root."""
import os
import pathlib
import secrets
import subprocess

import folders
import namespaces
from processes import Job, clean_environment, leashed, missing as missing_programs, wait_until

CONFIGURATION = """ClusterName=gpups
SlurmctldHost=node1
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
TmpFS={folder}/tmp-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
KillWait=2
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """Returns what these jobs need and this machine lacks, as a list of texts."""
    found = namespaces.missing() + missing_programs("munged", "slurmctld", "slurmd", "srun", "sbatch", "sinfo")
    if not any(plugin for pattern in ("slurm*", "*/slurm*")
               for plugin in pathlib.Path("/usr").glob(f"lib*/{pattern}/mpi_pmix*.so")):
        found.append("Slurm's plugin mpi_pmix")
    return found


class Cluster:
    """Nodes node1, node2, ..., each with all cores of this machine. node1 is the controller too. A context manager."""

    def __init__(self, nodes=2):
        self.nodes = nodes
        self._network = namespaces.Network(nodes, name="node", own_processes=True)
        self._held = folders.Temporary("slurm")
        self._folder = self._held.path
        self._daemons = []
        self._env = clean_environment(SLURM_CONF=self._folder / "slurm.conf")

    def __enter__(self):
        try:
            self._network.__enter__()
            self._write_files()
            self._start_daemons()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception):
        self._network.__exit__()  # ends all processes of its hosts
        for daemon in self._daemons:
            daemon.wait()
        self._held.remove()

    def _write_files(self):
        self._folder.chmod(0o755)  # munged requires that all users can reach its socket
        key = self._folder / "munge.key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(128))
        for name in ["state", *(f"tmp-node{node + 1}" for node in range(self.nodes))]:
            (self._folder / name).mkdir()
        lines = [f"NodeName=node{node + 1} NodeAddr={self._network.address(node)} CPUs={os.cpu_count()} State=UNKNOWN"
                 for node in range(self.nodes)]
        (self._folder / "slurm.conf").write_text(CONFIGURATION.format(folder=self._folder, nodes="\n".join(lines)))

    def _start_daemons(self):
        at = self._folder
        self._start(0, "munged", ["munged", "--foreground", "--force", f"--socket={at}/munge.socket",
                                  f"--key-file={at}/munge.key", f"--pid-file={at}/munged.pid",
                                  f"--log-file={at}/munged.log", f"--seed-file={at}/munge.seed"])
        wait_until((at / "munge.socket").exists, 60, self._logs)
        self._start(0, "slurmctld", ["slurmctld", "-D"])
        for node in range(self.nodes):
            self._start(node, f"slurmd-node{node + 1}", ["slurmd", "-D", "-N", f"node{node + 1}"])
        wait_until(self._all_idle, 120, self._logs)

    def _start(self, node, name, command):
        with open(self._folder / f"{name}.txt", "wb") as log:
            self._daemons.append(subprocess.Popen(leashed(self._network.hosts[node].command(command)), env=self._env,
                                                  stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT))

    def _all_idle(self):
        states = subprocess.run(self._network.hosts[0].command(["sinfo", "--noheader", "--format=%T %D"]),
                                env=self._env, capture_output=True, text=True)
        return states.stdout.split() == ["idle", str(self.nodes)]

    def _logs(self):
        return "all nodes idle\n" + "".join(f"--- {log.name}\n{log.read_text(errors='replace')[-2000:]}\n"
                                            for log in sorted(self._folder.glob("*.txt")))

    def srun(self, command, ranks, cwd=None, env=None):
        """Starts a job and returns it. Its ranks are spread over all nodes; Job.signal() cannot be used."""
        made = Job(ranks)
        self._launch(made, ["srun", "--mpi=pmix", f"--nodes={self.nodes}", f"--ntasks={ranks}",
                            f"--output={made.folder}/rank.%t.txt", *map(str, command)], cwd, env)
        return made

    def sbatch(self, script, arguments=(), options=(), cwd=None, env=None):
        """Starts a batch job and returns it. Its output is that of the launcher, which waits for it."""
        made = Job(0)
        self._launch(made, ["sbatch", "--wait", f"--output={made.folder}/launcher.txt", "--open-mode=append", *options,
                            str(script), *map(str, arguments)], cwd, env)
        return made

    def scancel(self, signal_name):
        """Sends a signal to all ranks of all jobs."""
        subprocess.run(self._network.hosts[0].command(["scancel", "--me", f"--signal={signal_name}"]), env=self._env,
                       check=True)

    def _launch(self, job, command, cwd, env):
        # With TCP alone UCX treats the nodes as two hosts, although both have one kernel.
        its_env = {**self._env, "UCX_TLS": "tcp,self", **(env or {})}
        job.start_launcher(self._network.hosts[0].command(command, cwd), its_env)
