// SPDX-License-Identifier: Apache-2.0
// Selects the k elements of a long vector with the largest magnitudes, exactly, and computes the residual. On the host
// all elements are read once, unless a sample of them is misleading; on a GPU they are read about five times.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Selects the elements of x = values + residual, floats, with the largest magnitudes; of equal magnitudes those with
// lower indices. Zeros are never selected. NaN counts as larger than infinity. After the call residual = x, and 0 at
// the selected elements.
struct TopK {
  View<float const> values;   // (n), n < 2^32 - 1
  View<float> residual = {};  // (n), or empty: x = values
  std::size_t k;
  View<std::uint32_t> indices;  // (>= min(k, n)), ascending
  View<float> kept;             // (>= min(k, n)), x at these indices
  // An estimate of the threshold, for instance that of the last call; it saves the sample on the host. 0 or less: none.
  // The result does not depend on it.
  float guess = 0;
};
struct TopKResult {
  std::size_t count;  // k, or the number of elements that are not 0 if there are fewer
  // The smallest selected magnitude; infinity if none is selected. Later vectors with about the same distribution have
  // about k elements from this magnitude on, so it is a good guess for them.
  float threshold;
};

// Selects. Blocks until `stream` is done.
TopKResult wait_top_k(Stream& stream, TopK const& arguments);

}  // namespace gpups::kernels
