// SPDX-License-Identifier: Apache-2.0
// Quantizes rows of floats and computes the residual in one pass. Reads 8 and writes 4 bytes per element, and writes
// the codes.
#pragma once

#include "gpups/array.hpp"
#include "kernels/codec/format.hpp"

namespace gpups::kernels {

// Encodes s = values + residual, a float, and sets residual = s - decoded. The sum s is rounded, by at most 2^-24 |s|.
// With kNearest the difference is exact, except for 2^-24 of itself if a value is near the middle of two codes; with
// kStochastic it is rounded to a float. So decoded + new residual differs from values + old residual by at most 2^-24
// (|s| + |s - decoded|). If s is not finite, or the scale of its row is NaN, the residual does not change.
struct QuantizeRows {
  MatrixView<float const> values;          // (n, dim)
  MatrixView<float> residual = {};         // (n, dim), or without rows: nothing is added, and errors are lost
  WireRows wire;                           // n rows of the same dim
  Rounding rounding = Rounding::kNearest;  // kStochastic only with integer formats
  RoundingKey rounding_key = {};           // for kStochastic
};
void quantize_rows(Stream& stream, QuantizeRows const& arguments);

}  // namespace gpups::kernels
