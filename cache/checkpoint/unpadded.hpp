// SPDX-License-Identifier: Apache-2.0
// Rows without padding, as files have them.
#pragma once

#include <algorithm>
#include <vector>

#include "gpups/array.hpp"

namespace gpups::cache {

// Returns the elements of a matrix on the host, (rows, columns), without padding. Waits for `stream`.
inline std::vector<float> wait_unpadded(Stream& stream, MatrixView<float const> from) {
  auto const padded = to_host(stream, from.flat());
  std::vector<float> values(from.rows() * from.columns());
  for (std::size_t i = 0; i < from.rows(); ++i) {
    std::copy_n(padded.data() + i * from.stride(), from.columns(), values.data() + i * from.columns());
  }
  return values;
}

}  // namespace gpups::cache
