// SPDX-License-Identifier: Apache-2.0
// Moves some columns of each row of sums to a narrower row, and adds them to other rows. The columns of a row are a
// bitmap on the wire.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/rows/selected_rows.hpp"

namespace gpups::kernels {

// Converts integers to the nearest floats.
struct UnitsToFloats {
  MatrixView<std::int64_t const> from;  // (n, dim)
  MatrixView<float> to;                 // (>= n, dim)
};
void units_to_floats(Stream& stream, UnitsToFloats const& arguments);

// kept.row(i) = columns[i * k ..] of row i, which are set to zero in the row.
struct ExtractColumns {
  MatrixView<std::int64_t> rows;      // (n, dim)
  std::size_t k;                      // at most dim
  View<std::uint32_t const> columns;  // (n, k), ascending in each row
  MatrixView<std::int64_t> kept;      // (>= n, k)
  View<std::uint32_t> bitmaps;        // (n, bitmap_words(dim)): bit j % 32 of word j / 32 is set if column j is kept
};
void extract_columns(Stream& stream, ExtractColumns const& arguments);

// rows.row(slots[i]) += kept.row(i), in the columns of bitmap i. Bits after the k-th and bits from dim on, which are
// invalid, are ignored.
struct AddColumns {
  MatrixView<std::int64_t const> kept;  // (n, k)
  View<std::uint32_t const> bitmaps;    // (n, bitmap_words(dim))
  View<std::uint32_t const> slots;      // (n), distinct; empty: row i is added to row i
  MatrixView<std::int64_t> rows;        // (rows, dim)
};
void add_columns(Stream& stream, AddColumns const& arguments);

}  // namespace gpups::kernels
