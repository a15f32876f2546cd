// SPDX-License-Identifier: Apache-2.0
// Checks that offsets cut entries into bags, copies the offsets, and finds the bag of each entry. Moves 8 bytes per bag
// and 4 per entry.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"

namespace gpups::kernels {

struct BagPart {
  View<std::uint32_t const> offsets;  // (bags + 1); valid if non-decreasing from 0 to the number of entries
  View<std::uint32_t> kept;           // (bags + 1), output: a copy
  View<std::uint32_t> bag_of;         // (entries), output; undefined if an offset is not valid
};

struct ValidateBags {
  std::span<BagPart const> parts;
  View<std::uint32_t> bad_offsets;  // (parts), output: index of the first offset that is not valid, or kNoRow
};
void validate_bags(Stream& stream, ValidateBags const& arguments);

}  // namespace gpups::kernels
