// SPDX-License-Identifier: Apache-2.0
// Does the machine, or the container on it, allow what ranks need?
#include <fmt/format.h>

#include <algorithm>

#include "trainer/doctor/checks.hpp"
#include "trainer/progress_reporter.hpp"

namespace gpups::trainer {
namespace {

constexpr std::uint64_t kSharedMemoryLeast = std::uint64_t{512} << 20;  // for some ranks on a machine
constexpr std::uint64_t kLockedLeast = std::uint64_t{1} << 30;
constexpr std::uint64_t kOpenFilesLeast = 1024;

bool has_rdma(Facts const& facts) {
  return std::any_of(facts.transport.resources.begin(), facts.transport.resources.end(),
                     [](TransportFacts::Resource const& way) {
                       return way.kind == TransportFacts::Resource::Kind::kNetwork && way.name != "tcp";
                     });
}

}  // namespace

Findings check_cores(Facts const& facts) {
  MachineFacts const& m = facts.machine;
  Findings found{ok(fmt::format("{} of {} may be used: {}", m.cores,
                                with_count(static_cast<std::uint64_t>(m.machine_cores), "core"), m.allowed_cores))};
  if (m.cpu_limit && *m.cpu_limit < m.cores) {
    found.push_back(warning(
        fmt::format("the container may use the time of {:.3g} of its {} (threads stand still while others work): raise "
                    "the limit, or give it cores of its own, as by --cpuset-cpus",
                    *m.cpu_limit, with_count(static_cast<std::uint64_t>(m.cores), "core"))));
  }
  return found;
}

Findings check_shared_memory(Facts const& facts) {
  MachineFacts const& m = facts.machine;
  if (!m.shared_memory_bytes || !m.shared_memory_free_bytes) {
    return {warning("there is no /dev/shm (ranks of a machine exchange data there): mount a tmpfs at /dev/shm")};
  }
  std::string const size = short_bytes(*m.shared_memory_bytes), free = short_bytes(*m.shared_memory_free_bytes);
  if (*m.shared_memory_bytes < kSharedMemoryLeast) {
    return {
        warning(fmt::format("/dev/shm has {} (ranks of a machine exchange data there, and fail when it is full): "
                            "start the container with --shm-size=2g or --ipc=host",
                            size))};
  }
  if (*m.shared_memory_free_bytes < kSharedMemoryLeast) {
    return {
        warning(fmt::format("/dev/shm has {} left of {} (ranks of a machine exchange data there, and fail when it "
                            "is full): remove files that nobody uses from it",
                            free, size))};
  }
  return {ok(fmt::format("/dev/shm has {} left of {}", free, size))};
}

Findings check_locked_memory(Facts const& facts) {
  auto const& limit = facts.machine.locked_bytes;
  if (!limit) return {ok("memory can be locked without limit")};
  if (*limit >= kLockedLeast || !has_rdma(facts)) {
    return {ok(fmt::format("{} of memory can be locked", short_bytes(*limit)))};
  }
  return {
      warning(fmt::format("a process may lock {} of memory (RDMA devices read and write locked memory only): set "
                          "ulimit -l unlimited, or start the container with --ulimit memlock=-1",
                          short_bytes(*limit)))};
}

Findings check_memory_access(Facts const& facts) {
  MachineFacts const& m = facts.machine;
  if (m.memory_readable) return {ok("processes of this machine can read each other's memory")};
  std::string const why = m.ptrace_scope.value_or(0) == 0
                              ? "what runs the container forbids it"
                              : fmt::format("kernel.yama.ptrace_scope is {}", *m.ptrace_scope);
  return {warning(
      fmt::format("processes of this machine cannot read each other's memory ({}, so that bulk data between "
                  "ranks is copied twice): {}start the container with --cap-add=SYS_PTRACE",
                  why, m.ptrace_scope.value_or(0) == 0 ? "" : "set kernel.yama.ptrace_scope to 0 by sysctl, or "))};
}

Findings check_open_files(Facts const& facts) {
  std::uint64_t const limit = facts.machine.open_files;
  // Each rank is connected with all others, by a few descriptors.
  std::uint64_t const least = std::max(kOpenFilesLeast, 256 + 8 * static_cast<std::uint64_t>(facts.rendezvous.size));
  if (limit >= least) return {ok(fmt::format("{} files can be open at once", limit))};
  return {warning(fmt::format("{} can be open at once (connections and data are files too): set ulimit -n {}",
                              with_count(limit, "file"), std::max<std::uint64_t>(least, 4096)))};
}

}  // namespace gpups::trainer
