// SPDX-License-Identifier: Apache-2.0
// The k elements of a long vector that are largest by magnitude, and what is left of the vector, exactly. On the host
// all elements are read once, where no sample of them misleads; on a GPU about five times.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gpups/array.hpp"

namespace gpups::kernels {

// Keeps elements of x = values + residual, floats: those of largest magnitude, of equal ones those of lower index. A
// zero is never kept. NaN counts as larger than infinity. After the call residual = x, and 0 where x was kept.
struct TopK {
  View<float const> values;   // (n), n < 2^32 - 1
  View<float> residual = {};  // (n), or empty: x = values
  std::size_t k;
  View<std::uint32_t> indices;  // (>= min(k, n)), ascending
  View<float> kept;             // (>= min(k, n)), x of these
  float guess = 0;              // about the threshold, as the last call returned it: saves the host the sample. 0 or
                                // less: no idea. No guess changes the result.
};
struct TopKResult {
  std::size_t count;  // k, or the number of elements that are not 0 if there are fewer
  float threshold;    // the least magnitude kept; infinite where none is. Later vectors of about the same
                      // distribution have about k elements of this magnitude: see select_above.hpp
};

// Waits for `stream`.
TopKResult wait_top_k(Stream& stream, TopK const& arguments);

}  // namespace gpups::kernels
