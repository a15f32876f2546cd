// SPDX-License-Identifier: Apache-2.0
// The bag that each entry of a pooled look-up belongs to. Writes 4 bytes per entry.
#pragma once

#include "gpups/array.hpp"

namespace gpups::kernels {

struct BagSources {
  View<std::uint32_t const> offsets;  // (bags + 1), non-decreasing, from 0 to n
  View<std::uint32_t> sources;        // (n)
};
void bag_sources(Stream& stream, BagSources const& arguments);

}  // namespace gpups::kernels
