# SPDX-License-Identifier: Apache-2.0
"""Hosts with a network between them, made of Linux namespaces on this machine. Needs the rights of root.

Each host has its own network, host name, shared memory and /etc/hosts, and a link of limited rate to a switch, which is
a bridge in its own namespace. Namespaces have no names that could collide, and each is held by a process that ends with
this program, so nothing is left behind, even if this program is killed.
"""
import os
import subprocess

import environment
import folders
from processes import Job, clean_environment, missing as missing_programs

PORT = 29500

# Prints the pid of this process outside of its namespaces, then holds them until its input is closed.
HOLD = """set -e
read -r pid rest < /proc/self/stat
hostname "$1"
mount --bind "$2" /etc/hosts
mount -t tmpfs tmpfs /dev/shm
if [ $$ = 1 ]; then mount -t proc proc /proc; fi
ip link set lo up
echo $pid
while read -r line; do :; done
"""
# Run in the switch: makes a link to the namespace of process $1, as port $2, of rate $3, with address $4 at its far
# end.
LINK = """set -e
ip link add "$2" type veth peer name eth0 netns "$1"
ip link set "$2" master switch up
tc qdisc add dev "$2" root tbf rate "$3" burst 256kb latency 50ms
nsenter --target "$1" --net bash -ec '
  ip address add "$2" dev eth0
  ip link set eth0 up
  tc qdisc add dev eth0 root tbf rate "$1" burst 256kb latency 50ms' bash "$3" "$4"
"""
PROBE = """set -e
mount -t tmpfs tmpfs /dev/shm
ip link add switch type bridge
ip link add port0 type veth peer name eth0
tc qdisc add dev port0 root tbf rate 1gbit burst 256kb latency 50ms
"""


def missing():
    """Returns what these jobs need and this machine lacks, as a list of texts."""
    programs = missing_programs("unshare", "nsenter", "setpriv", "ip", "tc", "bash")
    if programs:
        return programs
    done = subprocess.run(["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "bash", "-c", PROBE],
                          capture_output=True, text=True)
    return [f"the right to make namespaces and links ({done.stderr.strip()})"] if done.returncode else []


class Host:
    """A simulated machine. own_processes: it has its own pids, and all its processes end with it."""

    def __init__(self, name, hosts_file, own_processes):
        kinds = ["--net", "--uts", "--ipc", "--mount"]
        fork = ["--pid", "--fork", "--kill-child=KILL"] if own_processes else []
        self._holder = subprocess.Popen(["unshare", *kinds, *fork, "bash", "-c", HOLD, "bash", name, str(hosts_file)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self._holder.stdout.readline()
        if not line:
            self.end()
            raise RuntimeError("namespaces cannot be made; see above")
        self.pid = int(line)
        self._kinds = kinds + (["--pid"] if own_processes else [])

    def command(self, command, cwd=None):
        """Returns a command that runs `command` on this host. Without own_processes both have the same pid."""
        return ["nsenter", "--target", str(self.pid), *self._kinds, f"--wdns={cwd or os.getcwd()}", *map(str, command)]

    def run(self, command, **options):
        return subprocess.run(self.command(command), check=True, **options)

    def end(self):
        self._holder.stdin.close()
        self._holder.wait()
        self._holder.stdout.close()


class Network:
    """Some hosts on one switch: host i has the name NAME(i+1) and the address 10.77.0.(i+1). A context manager."""

    def __init__(self, hosts, rate="1gbit", name="host", own_processes=False):
        self._count, self._rate, self._name, self._own_processes = hosts, rate, name, own_processes
        self._held = folders.Temporary("network")
        self.hosts, self._switch = [], None

    @staticmethod
    def address(host):
        return f"10.77.0.{host + 1}"

    def __enter__(self):
        try:
            hosts_file = self._held.path / "hosts"
            hosts_file.write_text("127.0.0.1 localhost\n" + "".join(
                f"{self.address(host)} {self._name}{host + 1}\n" for host in range(self._count)))
            self._switch = Host("switch", hosts_file, False)
            self._switch.run(["ip", "link", "add", "switch", "up", "type", "bridge"])
            for host in range(self._count):
                self.hosts.append(Host(f"{self._name}{host + 1}", hosts_file, self._own_processes))
                self._switch.run(["bash", "-c", LINK, "bash", self.hosts[host].pid, f"port{host}", self._rate,
                                  f"{self.address(host)}/24"])
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *exception):
        for host in [*self.hosts, self._switch]:
            if host:
                host.end()
        self._held.remove()

    def cut(self, host):
        """Cuts the link of a host at the switch: packets are dropped, and no process gets an error."""
        self._switch.run(["ip", "link", "set", f"port{host}", "down"])

    def restore_link(self, host):
        self._switch.run(["ip", "link", "set", f"port{host}", "up"])

    def job(self, command, cwd=None, env=None):
        """Starts a job with a rank on each host, and returns it. TCP alone: other transports ignore hosts."""
        made = Job(self._count)
        token_file = environment.write_token(made.folder)
        for rank, host in enumerate(self.hosts):
            its_env = {"UCX_TLS": "tcp,self", **(env or {}),
                       **environment.variables(rank, self._count, self.address(0), PORT, token_file)}
            made.start_rank(rank, host.command(command, cwd), clean_environment(**its_env))
        return made
