# SPDX-License-Identifier: Apache-2.0
"""Links between the processes of an mpirun on this machine, each in a network namespace of its own.

A namespace is held by a process that ends with us: nothing is left behind, whatever happens to us. All processes are in
the same one, so that a shaped link has one token bucket for all of them, as a hub has, and its counters are theirs.
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
    env: dict  # for UCX
    shape: str = ""  # a command inside
    pause_ms: float = 0  # in which its token bucket fills


PLAIN = ("--mca", "pml", "ob1")  # Open MPI's own transports, not UCX below it
TCP = (*PLAIN, "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo")
LINKS = [
    Link("shm", "shared memory", (*PLAIN, "--mca", "btl", "vader,self"), {}),
    Link("tcp", "TCP over loopback", TCP, {"UCX_TLS": "tcp,self"}),
    Link("1gbit", "TCP at 1 Gbit/s, one token bucket for all ranks", TCP, {"UCX_TLS": "tcp,self"}, SHAPE,
         pause_ms=3),
]


def missing():
    """What is not here that these links need, as a list of texts."""
    return mpirun.missing() + namespaces.missing()


@contextlib.contextmanager
def inside(link):
    """Makes the link; gives what mpirun.job needs to be told to run across it."""
    held = folders.Temporary("link")
    host = None
    try:
        hosts_file = held.path / "hosts"
        hosts_file.write_text("127.0.0.1 localhost link\n")
        host = namespaces.Host("link", hosts_file, False)
        if link.shape:
            host.run(link.shape.split())
        # Links are measured each time: what is kept of another would have the same name.
        yield {"env": {**link.env, "GPUPS_CACHE_DIR": ""}, "options": link.mpi, "within": host.command}
    finally:
        if host:
            host.end()
        held.remove()
