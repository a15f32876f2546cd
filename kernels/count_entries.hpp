// SPDX-License-Identifier: Apache-2.0
// Counts the entries of given rows of a batch. Reads 12 and writes 8 bytes per row.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// counts[i] = offsets[rows[i] + 1] - offsets[rows[i]] for i < n; the other counts are set to 0.
struct CountEntries {
  View<std::uint32_t const> offsets;
  View<std::uint32_t const> rows;  // (n)
  View<std::int64_t> counts;       // (>= n)
};
void count_entries(Stream& stream, CountEntries const& arguments);

}  // namespace gpups::kernels
