// SPDX-License-Identifier: Apache-2.0
// Counts the entries of given rows of a batch, of many tables in one launch. Reads 12 and writes 8 bytes per row.
#pragma once

#include <cstdint>
#include <span>

#include "gpups/array.hpp"

namespace gpups::kernels {

// counts[i] = offsets[rows[i] + 1] - offsets[rows[i]] for i < n; the other counts are set to 0.
struct CountEntries {
  View<std::uint32_t const> offsets;
  View<std::uint32_t const> rows;  // (n)
  View<std::int64_t> counts;       // (>= n)
};
void count_entries(Stream& stream, std::span<CountEntries const> parts);
inline void count_entries(Stream& stream, CountEntries const& part) { count_entries(stream, {&part, 1}); }

}  // namespace gpups::kernels
