// SPDX-License-Identifier: Apache-2.0
// Encodes rows of floats, and decodes them: see format.hpp.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/codec/format.hpp"

namespace gpups::kernels {

// Quantizes rows of floats and computes the residual in one pass. Reads 8 and writes 4 bytes per element, and writes
// the codes.

// Encodes s = values + residual, a float, and sets residual = s - decoded. The sum s is rounded, by at most 2^-24 |s|.
// With kNearest the difference is exact, except for 2^-24 of itself if a value is near the middle of two codes; with
// kStochastic it is rounded to a float. So decoded + new residual differs from values + old residual by at most 2^-24
// (|s| + |s - decoded|). If s is not finite, or the scale of its row is NaN, the residual does not change.
struct QuantizeRows {
  MatrixView<float const> values;          // (n, dim)
  MatrixView<float> residual = {};         // (n, dim), or without rows: nothing is added, and errors are lost
  EncodedRows encoded;                     // n rows of the same dim
  Rounding rounding = Rounding::kNearest;  // kStochastic only with integer formats
  RoundingKey rounding_key = {};           // for kStochastic
};
void quantize_rows(Stream& stream, QuantizeRows const& arguments);

// Decodes rows to floats, or to whole units of a grid, into an array or added to rows of a table. Reads
// the codes and writes 4 or 8 bytes per element; adding reads as many. Padding does not change.

// out.row(i) = decoded row i. The product of code and scale is exact.
struct DequantizeRows {
  EncodedRowsIn encoded;  // n rows
  MatrixView<float> out;  // (>= n, dim)
};
void dequantize_rows(Stream& stream, DequantizeRows const& arguments);

// into.row(slots[i]) += decoded row i, with one float addition for each element.
struct AddDequantized {
  EncodedRowsIn encoded;
  View<std::uint32_t const> slots;  // (n), distinct; empty: row i is added to row i
  MatrixView<float> into;           // (rows, dim)
};
void add_dequantized(Stream& stream, AddDequantized const& arguments);

// into.row(slots[i]) += decoded row i in units of 2^grid_log2, which are exactly the units that quantize_sums() has
// removed from the sums. Additions wrap around on overflow.
struct AddDequantizedSums {
  EncodedRowsIn encoded;
  View<std::uint32_t const> slots;  // (n), distinct; empty: row i is added to row i
  MatrixView<std::int64_t> into;    // (rows, dim)
  int grid_log2;                    // the grid of the sums
};
void add_dequantized_sums(Stream& stream, AddDequantizedSums const& arguments);

}  // namespace gpups::kernels
