// SPDX-License-Identifier: Apache-2.0
// The memory that the host has available for this process.
#pragma once

#include <cstdint>
#include <filesystem>

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

}  // namespace gpups::kernels
