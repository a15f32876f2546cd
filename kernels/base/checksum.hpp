// SPDX-License-Identifier: Apache-2.0
// A checksum that detects accidental changes of bytes: XXH3, compiled for the instruction set of this build (the
// installed library supports any machine and takes twice as long). It does not detect deliberate changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gpups::kernels {

// Returns the checksum of bytes in host memory.
std::uint64_t checksum(void const* data, std::size_t bytes, std::uint64_t seed = 0);
inline std::uint64_t checksum(std::span<std::byte const> bytes, std::uint64_t seed = 0) {
  return checksum(bytes.data(), bytes.size(), seed);
}

}  // namespace gpups::kernels
