// SPDX-License-Identifier: Apache-2.0
// The bags of pooled look-ups: whether offsets cut entries into bags, a copy of them, and the bag of each entry. Moves
// 8 bytes per bag and 4 per entry.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"

namespace gpups::kernels {

struct BagPart {
  View<std::uint32_t const> offsets;  // (bags + 1): should be 0 first, the number of entries last, and never fall
  View<std::uint32_t> kept;           // (bags + 1), a copy
  View<std::uint32_t> bag_of;         // (entries), undefined where offsets are not as they should
};

struct ValidateBags {
  std::span<BagPart const> parts;
  View<std::uint32_t> bad_offsets;  // (parts): the first place where the part's offsets are wrong, or kNoRow
};
void validate_bags(Stream& stream, ValidateBags const& arguments);

}  // namespace gpups::kernels
