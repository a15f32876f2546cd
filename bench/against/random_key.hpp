// SPDX-License-Identifier: Apache-2.0
// Keys for the benchmarks of key indices.
#pragma once

#include <cstdint>

#include "gpups/types.hpp"
#include "kernels/base/hash.hpp"

namespace gpups::bench {

// Returns key number n; keys are in no order.
inline Key random_key(std::uint64_t n) { return Key{kernels::mix(n ^ 0x5DEECE66D1234567U)}; }

}  // namespace gpups::bench
