// SPDX-License-Identifier: Apache-2.0
// The dot products of all pairs of a sample's vectors, after a copy of its first vector: the interaction layer of DLRM
// (Naumov et al.: "Deep learning recommendation model for personalization and recommendation systems", 2019).
//
// slots * (slots - 1) * dim operations per sample forward, and twice as many backward.
#pragma once

#include <cstddef>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Returns the number of columns of the result: those of vector 0 with its padding, then one for each pair.
constexpr std::size_t interact_pairs_columns(std::size_t slots, std::size_t dim) {
  return row_stride(dim) + slots * (slots - 1) / 2;
}

// Computes the dot products of each sample.
struct InteractPairsForward {
  MatrixView<float const> rows;  // (m, slots * row_stride(dim)): `slots` vectors per sample
  std::size_t slots;             // at least 1
  std::size_t dim;
  // (m, interact_pairs_columns(slots, dim)): vector 0, zeros up to row_stride(dim), then the dot products of vectors i
  // and j for i > j in the order (1, 0), (2, 0), (2, 1), (3, 0) ...; zeros up to the stride.
  MatrixView<float> out;
};
void interact_pairs_forward(Stream& stream, InteractPairsForward const& arguments);

// Computes the gradients of the vectors.
struct InteractPairsBackward {
  MatrixView<float const> rows;  // as above
  std::size_t slots;
  std::size_t dim;
  MatrixView<float const> out_gradient;  // the same shape as out; padding is not read
  MatrixView<float> rows_gradient;       // the same shape as rows; is set, with zeros in the padding of vectors
};
void interact_pairs_backward(Stream& stream, InteractPairsBackward const& arguments);

}  // namespace gpups::kernels
