// SPDX-License-Identifier: Apache-2.0
// The microbatches of a rank: contiguous ranges, as equal as possible.
#pragma once

#include <cstdint>

namespace gpups::trainer {

// Returns the first microbatch of rank `rank`; its last one is first_microbatch(rank + 1, ...) - 1. REQUIRES: rank <=
// ranks.
constexpr std::uint32_t first_microbatch(std::uint64_t rank, std::uint64_t ranks, std::uint64_t microbatches) {
  return static_cast<std::uint32_t>(rank * microbatches / ranks);
}

}  // namespace gpups::trainer
