// SPDX-License-Identifier: Apache-2.0
// Encodes rows of exact sums: quantized, or as they are.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/codec/format.hpp"

namespace gpups::kernels {

// Quantizes rows of exact sums. Residuals are integers too, so nothing is ever lost: decoded units + new residual =
// sums + old residual, exactly. Reads 16 and writes 8 bytes per element, and writes the codes.

// Encodes t = sums + residual, and sets residual = t - decoded units. A unit is 2^grid_log2. Formats with a scale have
// a whole number of units as scale; the others encode the value, float(t * 2^grid_log2). Errors are those of the
// format, times at most 1 + 2^-12, plus half a unit (one unit with stochastic rounding); that of a float is 2^-24 |x|.
// Integer formats have no error if all magnitudes of a row, in units, are at most the largest integer of the format.
struct QuantizeSums {
  MatrixView<std::int64_t const> sums;  // (n, dim), or without rows: t = residual
  MatrixView<std::int64_t> residual;    // (n, dim), the same stride
  EncodedRows encoded;                  // n rows of the same dim
  int grid_log2;                        // at most 0
  // (1), kNoRow before the call. The call sets it to the smallest row with a t outside of -2^62 .. 2^62; codes and
  // residuals of such rows are undefined.
  View<std::uint32_t> bad_row;
  Rounding rounding = Rounding::kNearest;
  RoundingKey rounding_key = {};
};
void quantize_sums(Stream& stream, QuantizeSums const& arguments);

// Rows of sums as bytes, without encoding or padding: 8 bytes for each number.

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
