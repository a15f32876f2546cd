// SPDX-License-Identifier: Apache-2.0
// Numbers of 16 bits as floats. Moves 6 bytes per number.
#pragma once

#include "gpups/array.hpp"
#include "kernels/number_matrix.hpp"

namespace gpups::kernels {

struct Widen {
  NumberView from;        // (n, dim), of Half or BFloat16
  MatrixView<float> out;  // (n, dim), stride row_stride(dim); padding is written too
};
void widen(Stream& stream, Widen const& arguments);

}  // namespace gpups::kernels
