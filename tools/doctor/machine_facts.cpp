// SPDX-License-Identifier: Apache-2.0
#include <netdb.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "comm/base/host_name.hpp"
#include "comm/bootstrap/core_affinity.hpp"
#include "gpups/error.hpp"
#include "tools/doctor/facts.hpp"

namespace gpups::tools {
namespace {

template <class Value>
std::optional<Value> first_value_in(char const* file) {
  std::ifstream in(file);
  Value value{};
  return in >> value ? std::optional(value) : std::nullopt;
}

// Returns the limit of control groups (version 2 or 1), in cores.
std::optional<double> cpu_limit() {
  std::ifstream in("/sys/fs/cgroup/cpu.max");
  double quota = 0, period = 0;
  if (in >> quota >> period && period > 0) return quota / period;  // "max" is not a number
  auto const old_quota = first_value_in<double>("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  auto const old_period = first_value_in<double>("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (old_quota && old_period && *old_quota > 0 && *old_period > 0) return *old_quota / *old_period;
  return std::nullopt;
}

// Whether a child process can read the memory of this process. This is tried, since it depends on the kernel, the
// container and the sandbox.
bool memory_readable() {
  char const secret = 'x';
  pid_t const parent = getpid();
  prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);  // as UCX does
  pid_t const child = fork();
  if (child == 0) {
    char copy = 0;
    iovec const local{&copy, 1}, remote{const_cast<char*>(&secret), 1};
    _exit(process_vm_readv(parent, &local, 1, &remote, 1, 0) == 1 && copy == secret ? 0 : 1);
  }
  int status = 1;
  bool const readable = child > 0 && waitpid(child, &status, 0) == child && status == 0;
  prctl(PR_SET_PTRACER, 0);
  return readable;
}

bool resolves(std::string const& host) {
  addrinfo* found = nullptr;
  bool const there = getaddrinfo(host.c_str(), nullptr, nullptr, &found) == 0;
  if (there) freeaddrinfo(found);
  return there;
}

}  // namespace

trainer::MachineFacts read_machine() {
  trainer::MachineFacts facts;
  facts.host = comm::host_name();
  facts.host_resolves = resolves(facts.host);
  try {
    auto const cores = comm::allowed_cores();
    facts.cores = static_cast<int>(cores.size());
    facts.allowed_cores = comm::format_core_list(cores);
  } catch (Error const&) {
    facts.allowed_cores = "not known";
  }
  facts.machine_cores = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  facts.cpu_limit = cpu_limit();
  struct statvfs space {};
  if (statvfs("/dev/shm", &space) == 0) {
    facts.shared_memory_bytes = std::uint64_t{space.f_blocks} * space.f_frsize;
    facts.shared_memory_free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  }
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) facts.locked_bytes = limit.rlim_cur;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) facts.open_files = limit.rlim_cur;
  facts.ptrace_scope = first_value_in<int>("/proc/sys/kernel/yama/ptrace_scope");
  facts.memory_readable = memory_readable();
  return facts;
}

}  // namespace gpups::tools
