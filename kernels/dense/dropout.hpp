// SPDX-License-Identifier: Apache-2.0
// Dropout (Srivastava et al., JMLR 2014), in place: a value becomes zero with probability `rate`, the others are
// divided by 1 - rate. The same call on gradients is its backward pass.
//
// Whether a value is dropped is a function of what it is - seed, layer, clock, sample, column - so that neither the
// microbatch nor the rank that computes a sample matters, and nothing is kept for the backward pass.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::kernels {

struct Dropout {
  MatrixView<float> values;  // (m, columns)
  float rate;                // in [0, 1), rounded to a multiple of 2^-16
  std::uint64_t seed;
  std::uint32_t layer;  // a number of its own for each use of dropout in a model
  Clock clock;
  View<std::uint32_t const> sample_numbers;  // (m), in the global batch
};
void dropout(Stream& stream, Dropout const& arguments);

}  // namespace gpups::kernels
