// SPDX-License-Identifier: Apache-2.0
// Some keys of a list. Moves 20 bytes for each.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::kernels {

// to[i] = from[numbers[i]].
struct TakeKeys {
  View<Key const> from;
  View<std::uint32_t const> numbers;  // (n)
  View<Key> to;                       // (n)
};
void take_keys(Stream& stream, TakeKeys const& arguments);

}  // namespace gpups::kernels
