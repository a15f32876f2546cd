// SPDX-License-Identifier: Apache-2.0
// Prefetches for loops over items that read memory at random places.
#pragma once

#include <cstddef>

#include "kernels/base/function.hpp"

namespace gpups::kernels {

// How many items ahead a loop prefetches.
inline constexpr std::size_t kItemsAhead = 32;

// Prefetches what a later item will read. A GPU hides the latency with other threads instead. Always inlined, because
// g++ drops calls of a function that only prefetches.
GPUPS_INLINED_FN void prefetch([[maybe_unused]] void const* from) {
#ifndef __CUDACC__
  __builtin_prefetch(from);
#endif
}

}  // namespace gpups::kernels
