# SPDX-License-Identifier: Apache-2.0
"""Links between the processes of an mpirun on this machine, each link in its own network namespace.

A process that ends with this program keeps the namespace alive, so nothing is left behind if this program is killed.
All processes of an mpirun are in one namespace: a shaped link has one token bucket for all of them, as a hub has, and
the counters of the namespace are those of the link.
"""
import contextlib
import dataclasses

from cluster_jobs import folders, mpirun, namespaces

SHAPE = "tc qdisc add dev lo root tbf rate 1gbit burst 256kb latency 50ms"


@dataclasses.dataclass
class Link:
    name: str
    text: str
    mpi: tuple  # options of mpirun
    env: dict  # environment for UCX
    shape: str = ""  # command that limits the rate, run in the namespace
    pause_ms: float = 0  # time in which its token bucket fills


PLAIN = ("--mca", "pml", "ob1")  # the transports of Open MPI itself, without UCX
TCP = (*PLAIN, "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo")
LINKS = [
    Link("shm", "shared memory", (*PLAIN, "--mca", "btl", "vader,self"), {}),
    Link("tcp", "TCP over loopback", TCP, {"UCX_TLS": "tcp,self"}),
    Link("1gbit", "TCP at 1 Gbit/s, one token bucket for all ranks", TCP, {"UCX_TLS": "tcp,self"}, SHAPE,
         pause_ms=3),
]


def missing():
    """Returns what these links need and this machine lacks, as a list of texts."""
    return mpirun.missing() + namespaces.missing()


@contextlib.contextmanager
def inside(link):
    """Sets up the link, and yields the arguments with which mpirun.job() runs across it."""
    held = folders.Temporary("link")
    host = None
    try:
        hosts_file = held.path / "hosts"
        hosts_file.write_text("127.0.0.1 localhost link\n")
        host = namespaces.Host("link", hosts_file, False)
        if link.shape:
            host.run(link.shape.split())
        # gpups measures the link in each run: costs cached for another link would have the same name.
        yield {"env": {**link.env, "GPUPS_CACHE_DIR": ""}, "options": link.mpi, "within": host.command}
    finally:
        if host:
            host.end()
        held.remove()
