// SPDX-License-Identifier: Apache-2.0
// The memory of PackedParts.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/codec/pack_sums.hpp"

namespace gpups::kernels {

// Returns the first multiple of kPackedAlignment that is not below `bytes`.
GPUPS_ANY_FN constexpr std::size_t packed_aligned(std::size_t bytes) {
  return (bytes + kPackedAlignment - 1) / kPackedAlignment * kPackedAlignment;
}

// Returns a result with memory for any widths, whose sizes are not known yet.
inline PackedParts packed_memory(std::span<PackSums const> parts) {
  std::size_t most = 0;
  for (auto const& part : parts) most += packed_aligned(packed_rows_bytes_max(part.order.size(), part.sums.columns()));
  Device const device = parts.front().sums.device();
  return {.memory = Array<std::uint8_t>(device, most),
          .places = Array<std::uint64_t>(device, 2 * parts.size() + 1),
          .first = {},
          .size = {}};
}

}  // namespace gpups::kernels
