// SPDX-License-Identifier: Apache-2.0
// Copies some keys of a list. Moves 20 bytes for each.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::kernels {

// to[i] = from[numbers[i]].
struct GatherKeys {
  View<Key const> from;
  View<std::uint32_t const> numbers;  // (n)
  View<Key> to;                       // (n)
};
void gather_keys(Stream& stream, GatherKeys const& arguments);

}  // namespace gpups::kernels
