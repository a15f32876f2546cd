// SPDX-License-Identifier: Apache-2.0
// The Gramian of rows: the sum of their outer products with themselves. Costs n * dim^2 multiply-adds.
#pragma once

#include "gpups/array.hpp"

namespace gpups::kernels {

// The sums are in the order of rows, so the split of the work does not change their bits.
struct Gramian {
  MatrixView<float const> rows;  // (n, dim)
  MatrixView<float> out;         // (dim, dim)
};
void gramian(Stream& stream, Gramian const& arguments);

}  // namespace gpups::kernels
