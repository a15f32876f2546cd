// SPDX-License-Identifier: Apache-2.0
// How much memory the host still has for this process.
#pragma once

#include <cstdint>
#include <filesystem>

namespace gpups::kernels {

// Bytes, of the machine or of a control group that this process is in, whichever is less: what it takes beyond them may
// end it, or others. Nothing where Linux does not say.
struct HostMemory {
  std::uint64_t total = UINT64_MAX;
  std::uint64_t available = UINT64_MAX;
};

// How many of the bytes that processes keep for later should go back before `bytes` more are taken: an eighth of all
// memory is to stay available, since others may take some at the same time.
std::uint64_t memory_shortage(HostMemory const& memory, std::uint64_t bytes);

// Reads a few small files: some tens of microseconds. root: below which /proc and /sys are, for tests.
HostMemory host_memory(std::filesystem::path const& root = "/");

}  // namespace gpups::kernels
