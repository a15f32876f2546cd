// SPDX-License-Identifier: Apache-2.0
// Whether offsets cut entries into bags: 0 first, the number of entries last, never falling. Reads 4 bytes per bag.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

struct CheckBags {
  View<std::uint32_t const> offsets;  // (bags + 1)
  std::size_t entries;
  std::uint32_t* fault;  // lowered to the smallest i whose offsets[i] is wrong
};
void check_bags(Stream& stream, CheckBags const& arguments);

}  // namespace gpups::kernels
