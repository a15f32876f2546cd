// SPDX-License-Identifier: Apache-2.0
// From "the row of each entry" to "the entries of each row": a stable counting sort. Moves 12 bytes per entry.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

struct Transpose {
  View<std::uint32_t const> positions;  // (n), each < rows, n < 2^31
  View<std::uint32_t> offsets;          // (rows + 1)
  View<std::uint32_t> order;            // (n), row r has the entries order[offsets[r] .. offsets[r + 1]), ascending
};

// Waits for `stream`.
void wait_transpose(Stream& stream, Transpose const& arguments);

}  // namespace gpups::kernels
