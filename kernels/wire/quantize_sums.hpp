// SPDX-License-Identifier: Apache-2.0
// Rows of exact sums in a format of the wire, with residuals that are integers too, so that nothing is ever lost: the
// units that are decoded and the new residual are together the sum and the old residual, to the bit. Reads 16 and
// writes 8 bytes per element, and writes the codes.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "kernels/wire/format.hpp"

namespace gpups::kernels {

// Encodes t = sums + residual, and sets residual = t - decoded units. A unit is 2^grid_log2. Formats with a scale have
// it in units, a whole number; the others encode the value, float(t * 2^grid_log2). Errors are those of the format,
// within 2^-12 of themselves, and half a unit (one where rounding is stochastic); a float's is 2^-24 |x|. Formats of
// integers have none where all of a row's magnitudes are at most the format's largest integer.
struct QuantizeSums {
  MatrixView<std::int64_t const> sums;  // (n, dim), or without rows: t = residual
  MatrixView<std::int64_t> residual;    // (n, dim), the same stride
  WireRows wire;                        // n rows of the same dim
  int grid_log2;                        // at most 0
  View<std::uint32_t> bad_row;          // (1), kNoRow before the call; after it the smallest row with a t outside
                                        // -2^62 .. 2^62, if there is any: its codes and residuals are undefined
  Rounding rounding = Rounding::kNearest;
  RoundingKey rounding_key = {};
};
void quantize_sums(Stream& stream, QuantizeSums const& arguments);

}  // namespace gpups::kernels
