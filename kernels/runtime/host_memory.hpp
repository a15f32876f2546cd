// SPDX-License-Identifier: Apache-2.0
// Memory of the host: how much is available for this process, and pinned memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "gpups/device.hpp"

namespace gpups::kernels {

// Bytes of the machine, or of a control group of this process if they are fewer. If the process uses more, Linux may
// kill it or other processes. Both are UINT64_MAX if Linux does not report them.
struct HostMemory {
  std::uint64_t total = UINT64_MAX;
  std::uint64_t available = UINT64_MAX;
};

// Returns how many bytes of kept memory a process should return to the system before it allocates `bytes` more. An
// eighth of all memory should stay available, because other processes may allocate at the same time.
std::uint64_t memory_shortage(HostMemory const& memory, std::uint64_t bytes);

// Reads the memory of the host from a few small files, which takes some tens of microseconds. root: the folder that
// contains proc and sys; tests use another one.
HostMemory host_memory(std::filesystem::path const& root = "/");

// Pinned host memory, which GPUs read and write without a further copy. It is used for staging.

struct PinnedDelete {
  int device = -1;  // in whose context it was allocated; -1: it is ordinary memory
  void operator()(std::byte* block) const noexcept;
};
using PinnedPtr = std::unique_ptr<std::byte[], PinnedDelete>;

// Allocates pinned memory for data of a device; ordinary memory if that is the host. Throws Error if there is not
// enough.
PinnedPtr allocate_pinned(Device device, std::size_t bytes);

}  // namespace gpups::kernels
