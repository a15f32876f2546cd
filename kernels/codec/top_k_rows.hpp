// SPDX-License-Identifier: Apache-2.0
// Top-k of rows: selects columns of each row, moves them to narrower rows, and adds such rows to others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/rows/selected_rows.hpp"

namespace gpups::kernels {

// Selects the k elements of each row with the largest magnitudes, exactly, and computes the residual. Also for the
// buckets of a long vector. A row stays in the caches of a core, or of a team, during the search for its threshold.

// Selects the min(k, dim) elements of each row of x = values + residual, floats, with the largest magnitudes; of equal
// magnitudes those with lower columns. After the call residual = x, and 0 at the selected elements.
struct TopKRows {
  MatrixView<float const> values;   // (n, dim), dim < 2^32
  MatrixView<float> residual = {};  // (n, dim), or without rows: x = values
  std::size_t k;                    // at least 1
  View<std::uint32_t> columns;      // (n, min(k, dim)), ascending in each row
  View<float> kept;                 // (n, min(k, dim)), x at these columns
  // (n), or empty: a magnitude for each row that all selected elements reach, and other elements only if they are equal
  // to it. The search starts from its previous value: that of a similar row saves a third of the time. The result does
  // not depend on it.
  View<float> thresholds = {};
};
void top_k_rows(Stream& stream, TopKRows const& arguments);

// Moves some columns of each row of sums to a narrower row, and adds them to other rows. The columns of a row are
// written as a bitmap.

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
