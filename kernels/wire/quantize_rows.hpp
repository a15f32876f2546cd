// SPDX-License-Identifier: Apache-2.0
// Rows of floats in a format of the wire, and what that leaves out, in one pass. Reads 8 and writes 4 bytes per
// element, and writes the codes.
#pragma once

#include "gpups/array.hpp"
#include "kernels/wire/format.hpp"

namespace gpups::kernels {

// Encodes s = values + residual, a float, and sets residual = s - decoded. The first sum rounds, to 2^-24 |s| at most.
// The second is exact with kNearest but for 2^-24 of itself where a value is near the middle of two codes; with
// kStochastic it rounds likewise. So decoded + new residual differ from values + old residual by at most
// 2^-24 (|s| + |s - decoded|). Where s is not finite, or its row has the scale NaN, the residual stays as it was.
struct QuantizeRows {
  MatrixView<float const> values;          // (n, dim)
  MatrixView<float> residual = {};         // (n, dim), or without rows: nothing is added, and what is left out is lost
  WireRows wire;                           // n rows of the same dim
  Rounding rounding = Rounding::kNearest;  // kStochastic is for the formats of integers
  RoundingKey rounding_key = {};           // for kStochastic
};
void quantize_rows(Stream& stream, QuantizeRows const& arguments);

}  // namespace gpups::kernels
