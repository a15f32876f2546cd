// SPDX-License-Identifier: Apache-2.0
// Dropout (Srivastava et al., JMLR 2014), in place: sets a value to zero with probability `rate`, and divides the
// others by 1 - rate. The same call on gradients is the backward pass.
//
// Whether a value is dropped depends on seed, layer, clock, sample and column alone. So it does not depend on the
// microbatch or the rank that computes a sample, and the backward pass needs no stored mask.
#pragma once

#include <cstdint>

#include "gpups/array.hpp"
#include "gpups/types.hpp"

namespace gpups::kernels {

struct Dropout {
  MatrixView<float> values;  // (m, columns)
  float rate;                // in [0, 1), rounded to a multiple of 2^-16
  std::uint64_t seed;
  std::uint32_t layer;  // a different number for each use of dropout in a model
  Clock clock;
  View<std::uint32_t const> sample_numbers;  // (m): the number of each sample in the global batch; or empty
  std::uint32_t first_number = 0;            // if it is empty: row i has the number first_number + i
};
void dropout(Stream& stream, Dropout const& arguments);

}  // namespace gpups::kernels
