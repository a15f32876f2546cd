// SPDX-License-Identifier: Apache-2.0
// Separates the biases of a factorization from its factors. Reads and writes 4 * stride bytes for each row.
#pragma once

#include "gpups/array.hpp"

namespace gpups::kernels {

// The last column of a row is its bias, whose derivative is 1. So the row with a 1 in this column is what a rating's
// slope is multiplied by to get the gradient of the row on the other side, with its bias.
struct SplitBiases {
  MatrixView<float const> rows;  // (n, dim)
  MatrixView<float> sources;     // (n or more, dim): the rows with 1 as the last column; sets the padding to 0
  View<float> biases;            // (n or more) or empty: mean + the last column
  float mean = 0;                // of all ratings
};
void split_biases(Stream& stream, SplitBiases const& arguments);

}  // namespace gpups::kernels
