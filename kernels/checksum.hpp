// SPDX-License-Identifier: Apache-2.0
// A number that differs where bytes have changed by accident: XXH3, as fast as this machine can (the library that is
// installed serves any machine, and takes twice as long). It proves nothing of who made them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gpups::kernels {

// Of memory of the host.
std::uint64_t checksum(void const* data, std::size_t bytes, std::uint64_t seed = 0);
inline std::uint64_t checksum(std::span<std::byte const> bytes, std::uint64_t seed = 0) {
  return checksum(bytes.data(), bytes.size(), seed);
}

}  // namespace gpups::kernels
