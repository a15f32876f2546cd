// SPDX-License-Identifier: Apache-2.0
// Checks that the machine, or the container, gives ranks the resources and permissions that they need.
#include <fmt/format.h>

#include <algorithm>

#include "trainer/base/progress_reporter.hpp"
#include "trainer/doctor/checks.hpp"

namespace gpups::trainer {

Findings check_binding(Facts const& facts) {
  if (!facts.binding) return {};
  BindingFacts const& place = *facts.binding;
  Findings found{ok(fmt::format("local rank {} of {} on this machine ({}), bound to cores {}", place.local_rank,
                                place.local_ranks, place.host, place.bound_cores))};
  if (place.cores_shared_by > 1) {
    std::string const of_all =
        facts.machine.cores < facts.machine.machine_cores
            ? fmt::format("{} of this machine's {}", facts.machine.cores,
                          with_count(static_cast<std::uint64_t>(facts.machine.machine_cores), "core"))
            : "this machine's " + with_count(static_cast<std::uint64_t>(facts.machine.cores), "core");
    found.push_back(
        warning(fmt::format("{} ranks share {} (they slow each other down): start fewer ranks on this machine, or let "
                            "the launcher give them more cores",
                            place.cores_shared_by, of_all)));
  }
  std::size_t const gpus = facts.gpu.gpus.size();
  bool const on_gpu = facts.run ? facts.run->device.starts_with("cuda") : true;
  if (on_gpu && gpus > 0 && static_cast<std::size_t>(place.local_ranks) > gpus) {
    found.push_back(
        warning(fmt::format("{} ranks share this machine's {} (they slow each other down): start one rank for each GPU",
                            place.local_ranks, with_count(gpus, "GPU"))));
  }
  return found;
}

namespace {

constexpr std::uint64_t kSharedMemoryLeast = std::uint64_t{512} << 20;  // enough for a few ranks
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
  Findings found{ok(fmt::format("{} of {} can be used: {}", m.cores,
                                with_count(static_cast<std::uint64_t>(m.machine_cores), "core"), m.allowed_cores))};
  if (m.cpu_limit && *m.cpu_limit < m.cores) {
    found.push_back(warning(
        fmt::format("the container may use the time of {:.3g} of its {} (its threads are paused often): raise the "
                    "limit, or give the container its own cores, for example with --cpuset-cpus",
                    *m.cpu_limit, with_count(static_cast<std::uint64_t>(m.cores), "core"))));
  }
  return found;
}

Findings check_shared_memory(Facts const& facts) {
  MachineFacts const& m = facts.machine;
  if (!m.shared_memory_bytes || !m.shared_memory_free_bytes) {
    return {warning("there is no /dev/shm (ranks of a machine exchange data through it): mount a tmpfs at /dev/shm")};
  }
  std::string const size = short_bytes(*m.shared_memory_bytes), free = short_bytes(*m.shared_memory_free_bytes);
  if (*m.shared_memory_bytes < kSharedMemoryLeast) {
    return {
        warning(fmt::format("/dev/shm has {} (ranks of a machine exchange data through it, and fail when it is full): "
                            "start the container with --shm-size=2g or --ipc=host",
                            size))};
  }
  if (*m.shared_memory_free_bytes < kSharedMemoryLeast) {
    return {
        warning(fmt::format("/dev/shm has {} free of {} (ranks of a machine exchange data through it, and fail when it "
                            "is full): remove unused files from it",
                            free, size))};
  }
  return {ok(fmt::format("/dev/shm has {} free of {}", free, size))};
}

Findings check_locked_memory(Facts const& facts) {
  auto const& limit = facts.machine.locked_bytes;
  if (!limit) return {ok("a process can lock memory without limit")};
  if (*limit >= kLockedLeast || !has_rdma(facts)) {
    return {ok(fmt::format("a process can lock {} of memory", short_bytes(*limit)))};
  }
  return {
      warning(fmt::format("a process can lock only {} of memory (RDMA devices access locked memory only): set "
                          "ulimit -l unlimited, or start the container with --ulimit memlock=-1",
                          short_bytes(*limit)))};
}

Findings check_memory_access(Facts const& facts) {
  MachineFacts const& m = facts.machine;
  if (m.memory_readable) return {ok("processes of this machine can read each other's memory")};
  std::string const why = m.ptrace_scope.value_or(0) == 0
                              ? "the container runtime forbids it"
                              : fmt::format("kernel.yama.ptrace_scope is {}", *m.ptrace_scope);
  return {warning(
      fmt::format("processes of this machine cannot read each other's memory ({}, so bulk data between ranks is "
                  "copied twice): {}start the container with --cap-add=SYS_PTRACE",
                  why, m.ptrace_scope.value_or(0) == 0 ? "" : "set kernel.yama.ptrace_scope to 0 by sysctl, or "))};
}

Findings check_open_files(Facts const& facts) {
  std::uint64_t const limit = facts.machine.open_files;
  // Each rank has connections to all other ranks, with a few descriptors each.
  std::uint64_t const least = std::max(kOpenFilesLeast, 256 + 8 * static_cast<std::uint64_t>(facts.rendezvous.size));
  if (limit >= least) return {ok(fmt::format("{} files can be open at the same time", limit))};
  return {warning(fmt::format("{} can be open at the same time (each connection counts as a file): set ulimit -n {}",
                              with_count(limit, "file"), std::max<std::uint64_t>(least, 4096)))};
}

}  // namespace gpups::trainer
