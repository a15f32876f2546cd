// SPDX-License-Identifier: Apache-2.0
// The arguments of a matrix product that oneDNN or cuBLASLt computes, for linear.cu.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// The numbers that are multiplied. Products are added as 32-bit floats.
enum class ProductPrecision : std::uint8_t {
  kFp32,
  kTf32,      // rounded to 11 significant bits, on a GPU
  kBFloat16,  // rounded to 8 significant bits, on a GPU
};

// out = a * b. a is (rows, k), or (k, rows) if transposed; b is (k, columns), or (columns, k) if transposed.
struct MatrixProduct {
  MatrixView<float const> a;
  bool transpose_a;
  MatrixView<float const> b;
  bool transpose_b;
  MatrixView<float> out;    // (rows, columns)
  bool accumulate = false;  // out += a * b
  ProductPrecision precision = ProductPrecision::kFp32;

  // Returns k.
  std::size_t inner() const { return transpose_a ? a.rows() : a.columns(); }
  // Returns whether the shapes of a, b and out match.
  bool fits() const {
    return out.rows() == (transpose_a ? a.columns() : a.rows()) &&
           out.columns() == (transpose_b ? b.rows() : b.columns()) && inner() == (transpose_b ? b.columns() : b.rows());
  }
};

}  // namespace gpups::kernels
