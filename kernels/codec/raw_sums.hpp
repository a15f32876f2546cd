// SPDX-License-Identifier: Apache-2.0
// Rows of sums on the wire without encoding or padding: 8 bytes for each number.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Copies the rows to `words`, and sets them to zero.
struct ExtractSums {
  MatrixView<std::int64_t> rows;  // (n, dim)
  View<std::int64_t> words;       // (n, dim)
};
void extract_sums(Stream& stream, ExtractSums const& arguments);

// into.row(slots[i]) += row i of the words, which wraps around on overflow. Padding does not change.
struct AddRawSums {
  View<std::int64_t const> words;   // (n, dim)
  View<std::uint32_t const> slots;  // (n), distinct; empty: row i is added to row i
  MatrixView<std::int64_t> into;    // (rows, dim)
};
void add_raw_sums(Stream& stream, AddRawSums const& arguments);

}  // namespace gpups::kernels
