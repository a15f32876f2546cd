// SPDX-License-Identifier: Apache-2.0
// A product of matrices by the library of the space at work, for linear.cu.
#pragma once

#include "gpups/array.hpp"

namespace gpups::kernels {

// out = a * b, where a is (rows, k) or, transposed, (k, rows), and b is (k, columns) or, transposed, (columns, k).
struct MatrixProduct {
  MatrixView<float const> a;
  bool transpose_a;
  MatrixView<float const> b;
  bool transpose_b;
  MatrixView<float> out;    // (rows, columns)
  bool accumulate = false;  // out += a * b

  std::size_t inner() const { return transpose_a ? a.rows() : a.columns(); }
  bool fits() const {
    return out.rows() == (transpose_a ? a.columns() : a.rows()) &&
           out.columns() == (transpose_b ? b.rows() : b.columns()) && inner() == (transpose_b ? b.columns() : b.rows());
  }
};

}  // namespace gpups::kernels
